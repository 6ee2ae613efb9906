// A redis-server process of our own: on a unix socket in its directory, every write flushed to its
// append-only file before it is acknowledged. It ends with this object, and with this process however that
// ends.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <hiredis/hiredis.h>
#include <sys/types.h>

#include "facetheory/base/result.h"

namespace facetheory::bench {

struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};
using RedisConnection = std::unique_ptr<redisContext, FreeContext>;

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using RedisReply = std::unique_ptr<redisReply, FreeReply>;

class RedisServer {
 public:
  // Starts it and waits until it answers.
  static Result<std::unique_ptr<RedisServer>> start(const std::filesystem::path& directory);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  pid_t pid() const { return pid_; }

  // A connection that waits for its answers, ten seconds at most; or one that never waits.
  enum class Mode { blocking, non_blocking };
  Result<RedisConnection> connect(Mode mode) const;

 private:
  RedisServer(pid_t pid, int directory) : pid_(pid), directory_(directory) {}

  pid_t pid_;
  int directory_;  // Opened, because a socket's own path is limited to 107 bytes.
};

// Sends one command and waits for its answer; an error reply is an error.
Result<RedisReply> command(redisContext& connection, const std::vector<std::string>& words);

}  // namespace facetheory::bench
