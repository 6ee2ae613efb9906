// Redis with `appendfsync always`. A lease is SET NX PX, publishing a script that compares the token, writes
// the hash and deletes the lock.
//
// The client is as cheap as it can be made: one thread, a connection per caller, all of them served from one
// epoll loop, as a program with an event loop would do it; a single caller just waits on its socket.
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <unistd.h>

#include "bench/peers/peer.h"
#include "bench/peers/redis_server.h"

namespace facetheory::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPipelined = 1000;  // Commands under way at once while populating.
constexpr int kPatienceMilliseconds = 10'000;

// An expired lock is gone by itself, so that the token alone tells whether the lease is still held.
constexpr const char* kPublishScript = R"(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], 's3_key', ARGV[2], 'generated_at', ARGV[3], 'revalidate_seconds', ARGV[4],
           'etag', ARGV[5], 'ttl', ARGV[6])
redis.call('DEL', KEYS[1])
return 1
)";

std::string lock_key(std::string_view pk) {
  return std::string(pk).append(":LOCK");
}
std::string meta_key(std::string_view pk) {
  return std::string(pk).append(":META");
}

Error failed(const char* what, const redisContext& context) {
  return {ErrorCode::unavailable, std::string("redis: ") + what + ": " + context.errstr};
}

// Puts a command into the connection's buffer.
template <std::size_t N>
bool append(redisContext& connection, const std::array<std::string_view, N>& words) {
  std::array<const char*, N> texts{};
  std::array<std::size_t, N> sizes{};
  for (std::size_t i = 0; i < N; ++i) {
    texts[i] = words[i].data();
    sizes[i] = words[i].size();
  }
  return redisAppendCommandArgv(&connection, static_cast<int>(N), texts.data(), sizes.data()) == REDIS_OK;
}

bool flush(redisContext& connection) {
  int done = 0;
  while (done == 0) {
    if (redisBufferWrite(&connection, &done) != REDIS_OK) return false;
  }
  return true;
}

bool append_meta(redisContext& connection, std::string_view pk, const Meta& meta) {
  const std::string key = meta_key(pk);
  const std::string generated_at = std::to_string(meta.generated_at);
  const std::string revalidate = std::to_string(meta.revalidate_seconds);
  const std::string ttl = std::to_string(meta.ttl);
  return append<12>(connection, {"HSET", key, "s3_key", meta.s3_key, "generated_at", generated_at,
                                 "revalidate_seconds", revalidate, "etag", meta.etag, "ttl", ttl});
}

// One caller: what it waits for on its connection, and what it does next.
class Caller {
 public:
  Caller(RedisConnection connection, const KeyList& pages, std::string_view script, std::uint64_t seed)
      : connection_(std::move(connection)), pages_(pages), script_(script), random_(seed) {}

  redisContext& connection() { return *connection_; }
  bool finished() const { return finished_; }
  const Tally& tally() const { return tally_; }

  Result<void> acquire() {
    pk_ = draw_one(pages_, random_);
    token_ = uuid_v4(random_);
    lock_ = lock_key(pk_);
    state_ = State::acquiring;
    static const std::string lease = std::to_string(kLeaseSeconds * 1000);
    return send<6>({"SET", lock_, token_, "NX", "PX", lease});
  }

  // Takes the answers that have arrived, waiting for them if the connection is a blocking one.
  Result<void> receive(Deadline until) {
    if (redisBufferRead(connection_.get()) != REDIS_OK) return failed("read", *connection_);
    while (true) {
      void* next = nullptr;
      if (redisGetReplyFromReader(connection_.get(), &next) != REDIS_OK) return failed("reply", *connection_);
      if (next == nullptr) return {};
      const RedisReply reply(static_cast<redisReply*>(next));
      if (reply->type == REDIS_REPLY_ERROR) {
        return Error{ErrorCode::unavailable, std::string("redis: ") + reply->str};
      }
      if (Result<void> went_on = go_on(*reply, until); !went_on) return went_on;
    }
  }

 private:
  enum class State { acquiring, publishing };

  Result<void> go_on(const redisReply& reply, Deadline until) {
    if (state_ == State::acquiring && reply.type == REDIS_REPLY_STATUS) return publish();
    if (state_ == State::acquiring) {
      ++tally_.refused;
    } else if (reply.type == REDIS_REPLY_INTEGER && reply.integer == 1) {
      ++tally_.operations;
    } else {
      return Error{ErrorCode::internal, "redis: a publish under a lease just taken was refused"};
    }
    finished_ = Clock::now() >= until;
    return finished_ ? Result<void>{} : acquire();
  }

  Result<void> publish() {
    const Meta meta = make_meta(pk_, now_seconds(), random_);
    const std::string key = meta_key(pk_);
    const std::string generated_at = std::to_string(meta.generated_at);
    const std::string revalidate = std::to_string(meta.revalidate_seconds);
    const std::string ttl = std::to_string(meta.ttl);
    state_ = State::publishing;
    return send<11>(
        {"EVALSHA", script_, "2", lock_, key, token_, meta.s3_key, generated_at, revalidate, meta.etag, ttl});
  }

  template <std::size_t N>
  Result<void> send(const std::array<std::string_view, N>& words) {
    if (!append(*connection_, words) || !flush(*connection_)) return failed("write", *connection_);
    return {};
  }

  RedisConnection connection_;
  const KeyList& pages_;
  std::string_view script_;
  SeededRandom random_;
  State state_ = State::acquiring;
  bool finished_ = false;
  std::string_view pk_;
  std::string lock_;
  std::string token_;
  Tally tally_;
};

class Epoll {
 public:
  Epoll() : fd_(epoll_create1(EPOLL_CLOEXEC)) {}
  ~Epoll() { close(fd_); }
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;

  void add(Caller& caller) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &caller;
    epoll_ctl(fd_, EPOLL_CTL_ADD, caller.connection().fd, &event);
  }

  // The callers whose connections have something to read.
  template <typename Each>
  Result<void> wait(Each each) {
    std::array<epoll_event, 64> events{};
    const int count = epoll_wait(fd_, events.data(), static_cast<int>(events.size()), kPatienceMilliseconds);
    if (count < 0 && errno == EINTR) return {};
    if (count <= 0) return Error{ErrorCode::unavailable, "redis: no answer within ten seconds"};
    for (int i = 0; i < count; ++i) {
      auto& caller = *static_cast<Caller*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (Result<void> done = each(caller); !done) return done;
    }
    return {};
  }

 private:
  int fd_;
};

// Copies an HGETALL answer into a Meta.
Meta to_meta(const redisReply& reply) {
  Meta meta;
  for (std::size_t i = 0; i + 1 < reply.elements; i += 2) {
    const std::string_view name(reply.element[i]->str, reply.element[i]->len);
    const redisReply& value = *reply.element[i + 1];
    if (name == "s3_key") meta.s3_key.assign(value.str, value.len);
    if (name == "etag") meta.etag.assign(value.str, value.len);
    if (name == "generated_at") meta.generated_at = std::stoll(value.str);
    if (name == "revalidate_seconds") meta.revalidate_seconds = std::stoll(value.str);
    if (name == "ttl") meta.ttl = std::stoll(value.str);
  }
  return meta;
}

class RedisPeer final : public Peer {
 public:
  Result<void> open(const std::filesystem::path& directory) {
    auto server = RedisServer::start(directory);
    if (!server) return server.error();
    server_ = std::move(*server);
    auto connection = server_->connect(RedisServer::Mode::blocking);
    if (!connection) return connection.error();
    connection_ = std::move(*connection);
    auto script = command(*connection_, {"SCRIPT", "LOAD", kPublishScript});
    if (!script) return script.error();
    script_ = (*script)->str;
    auto info = command(*connection_, {"INFO", "server"});
    if (!info) return info.error();
    const std::string text = (*info)->str;
    const std::size_t begin = text.find("redis_version:") + 14;
    version_ =
        "Redis " + text.substr(begin, text.find('\r', begin) - begin) + ", appendfsync always, unix socket";
    return {};
  }

  std::string name() const override { return "redis"; }
  std::string version() const override { return version_; }
  std::optional<pid_t> server() const override { return server_->pid(); }

  Result<void> populate(const KeyList& pages, const Progress& progress) override {
    auto relaxed = command(*connection_, {"CONFIG", "SET", "appendfsync", "everysec"});
    if (!relaxed) return relaxed.error();
    SeededRandom random(++seed_);
    for (std::size_t begin = 0; begin < pages.size(); begin += kPipelined) {
      const std::size_t end = std::min(begin + kPipelined, pages.size());
      for (std::size_t i = begin; i < end; ++i) {
        if (!append_meta(*connection_, pages[i], make_meta(pages[i], now_seconds(), random))) {
          return failed("HSET", *connection_);
        }
      }
      for (std::size_t i = begin; i < end; ++i) {
        auto reply = next_reply();
        if (!reply) return reply.error();
      }
      progress(end);
    }
    auto strict = command(*connection_, {"CONFIG", "SET", "appendfsync", "always"});
    if (!strict) return strict.error();
    return {};
  }

  Result<Tally> cycles(const KeyList& pages, int callers, Deadline until) override {
    const auto mode = callers == 1 ? RedisServer::Mode::blocking : RedisServer::Mode::non_blocking;
    std::vector<std::unique_ptr<Caller>> all;
    Epoll epoll;
    for (int i = 0; i < callers; ++i) {
      auto connection = server_->connect(mode);
      if (!connection) return connection.error();
      all.push_back(std::make_unique<Caller>(std::move(*connection), pages, script_, ++seed_));
      epoll.add(*all.back());
      if (Result<void> begun = all.back()->acquire(); !begun) return begun.error();
    }
    int working = callers;
    const auto receive = [&](Caller& caller) -> Result<void> {
      if (Result<void> received = caller.receive(until); !received) return received;
      if (caller.finished()) --working;
      return {};
    };
    while (working > 0) {
      Result<void> went_on = callers == 1 ? receive(*all.front()) : epoll.wait(receive);
      if (!went_on) return went_on.error();
    }
    Tally total;
    for (const auto& caller : all) {
      total.operations += caller->tally().operations;
      total.refused += caller->tally().refused;
    }
    return total;
  }

  Result<Tally> reads(const KeyList& keys, Deadline until) override {
    Tally tally;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i % 64 == 0 && Clock::now() >= until) break;
      if (!append<2>(*connection_, {"HGETALL", meta_key(keys[i])})) return failed("HGETALL", *connection_);
      auto reply = next_reply();
      if (!reply) return reply.error();
      if (!plausible(to_meta(**reply))) {
        return Error{ErrorCode::internal, "redis: page " + std::string(keys[i]) + " is not there"};
      }
      ++tally.operations;
    }
    return tally;
  }

 private:
  Result<RedisReply> next_reply() {
    void* next = nullptr;
    if (redisGetReply(connection_.get(), &next) != REDIS_OK) return failed("reply", *connection_);
    RedisReply reply(static_cast<redisReply*>(next));
    if (reply->type == REDIS_REPLY_ERROR) {
      return Error{ErrorCode::unavailable, std::string("redis: ") + reply->str};
    }
    return reply;
  }

  std::unique_ptr<RedisServer> server_;
  RedisConnection connection_;  // For populating and reading; cycles have their own.
  std::string script_;
  std::string version_;
  std::uint64_t seed_ = 0;
};

}  // namespace

Result<std::unique_ptr<Peer>> open_redis_peer(const std::filesystem::path& directory) {
  auto peer = std::make_unique<RedisPeer>();
  auto opened = peer->open(directory);
  if (!opened) return opened.error();
  return std::unique_ptr<Peer>(std::move(peer));
}

}  // namespace facetheory::bench
