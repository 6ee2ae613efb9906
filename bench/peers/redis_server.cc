#include "bench/peers/redis_server.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace facetheory::bench {
namespace {

constexpr timeval kPatience{10, 0};

// Whatever is not said here is Redis's default, but for two settings in its favour: no rewriting of the
// append-only file in the background, and hashes stay compact although s3_key is longer than 64 bytes.
constexpr std::array<const char*, 28> kArguments = {"redis-server",
                                                    "--port",
                                                    "0",
                                                    "--unixsocket",
                                                    "redis.sock",
                                                    "--dir",
                                                    ".",
                                                    "--save",
                                                    "",
                                                    "--appendonly",
                                                    "yes",
                                                    "--appendfsync",
                                                    "always",
                                                    "--daemonize",
                                                    "no",
                                                    "--loglevel",
                                                    "warning",
                                                    "--logfile",
                                                    "redis.log",
                                                    "--auto-aof-rewrite-percentage",
                                                    "0",
                                                    "--hash-max-listpack-value",
                                                    "128",
                                                    "--maxmemory",
                                                    "0",
                                                    "--maxclients",
                                                    "1000",
                                                    nullptr};

Error redis_error(const std::string& what, const redisContext* context) {
  return {ErrorCode::unavailable,
          "redis: " + what + ": " + (context != nullptr ? context->errstr : "out of memory")};
}

[[noreturn]] void become_redis(const char* directory) {
  // A program with threads may do only this little between fork and exec.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (chdir(directory) == 0) execvp(kArguments[0], const_cast<char* const*>(kArguments.data()));
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<RedisServer>> RedisServer::start(const std::filesystem::path& directory) {
  const int opened = open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) {
    return Error{ErrorCode::unavailable, "open " + directory.string() + ": " + std::strerror(errno)};
  }
  const pid_t pid = fork();
  if (pid == 0) become_redis(directory.c_str());
  if (pid < 0) {
    close(opened);
    return Error{ErrorCode::exhausted, std::string("fork: ") + std::strerror(errno)};
  }
  auto server = std::unique_ptr<RedisServer>(new RedisServer(pid, opened));

  Error last;
  for (int attempt = 0; attempt < 500; ++attempt) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) {
      server->pid_ = -1;
      return Error{
          ErrorCode::unavailable,
          WIFEXITED(status) && WEXITSTATUS(status) == 127
              ? "redis-server was not found: install it (Debian: redis-server)"
              : "redis-server ended at once; see " + (directory / "redis.log").string() + " (with --keep)"};
    }
    auto connection = server->connect(Mode::blocking);
    if (connection) {
      auto pong = command(**connection, {"PING"});
      if (pong) return server;
      last = pong.error();
    } else {
      last = connection.error();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return last;
}

RedisServer::~RedisServer() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(directory_);
}

Result<RedisConnection> RedisServer::connect(Mode mode) const {
  const std::string path = "/proc/self/fd/" + std::to_string(directory_) + "/redis.sock";
  RedisConnection connection(mode == Mode::blocking ? redisConnectUnixWithTimeout(path.c_str(), kPatience)
                                                    : redisConnectUnixNonBlock(path.c_str()));
  if (connection == nullptr || connection->err != 0) return redis_error("connect", connection.get());
  if (mode == Mode::blocking && redisSetTimeout(connection.get(), kPatience) != REDIS_OK) {
    return redis_error("set time-out", connection.get());
  }
  return connection;
}

Result<RedisReply> command(redisContext& connection, const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  RedisReply reply(static_cast<redisReply*>(
      redisCommandArgv(&connection, static_cast<int>(words.size()), texts.data(), sizes.data())));
  if (reply == nullptr) return redis_error(words.front(), &connection);
  if (reply->type == REDIS_REPLY_ERROR) {
    return Error{ErrorCode::unavailable, "redis: " + words.front() + ": " + reply->str};
  }
  return reply;
}

}  // namespace facetheory::bench
