// trial_relay: stands before a store and makes it fail, while it runs.
//
//   trial_relay --upstream PORT [--port N] [--seed N]
//
// Prints "PORT CONTROL" and relays until it is killed. The control port is trial_origin's: `state`, `fault NAME
// [PERCENT] [MILLISECONDS]`; what PERCENT does not meet goes through. Faults:
//   refuse    connections are refused, those there are broke
//   reset     connections are reset when a request arrives
//   hang      nothing goes through until the fault is lifted
//   hang_writes  the same of requests that write, to DynamoDB or S3; others go through
//   slow      what clients send goes through after MILLISECONDS
//   cut       answers are reset after their first bytes
//   throttle  answers of a DynamoDB table whose capacity is used up
//   busy      answers of an S3 that asks to slow down
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trial_loop.h"

namespace trials {
namespace {

constexpr std::array<std::string_view, 9> kFaults = {"none", "refuse", "reset",    "hang", "hang_writes",
                                                     "slow", "cut",    "throttle", "busy"};
constexpr std::array<std::string_view, 5> kWritesOfDynamoDb = {"PutItem", "UpdateItem", "DeleteItem",
                                                               "TransactWriteItems", "BatchWriteItem"};

constexpr std::string_view kThrottled =
    R"({"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"The level of )"
    R"(configured provisioned throughput for the table was exceeded."})";
constexpr std::string_view kBusy =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>SlowDown</Code><Message>Please reduce your "
    "request "
    "rate.</Message></Error>";

constexpr std::array<std::string_view, 5> kMethods = {"GET ", "HEAD ", "PUT ", "POST ", "DELETE "};

// DynamoDB's requests are all POST, and the target says so; S3's method does.
bool is_write(const Head& head) {
  const std::string_view target = head.field("x-amz-target");
  if (!target.empty())
    return std::find(kWritesOfDynamoDb.begin(), kWritesOfDynamoDb.end(),
                     target.substr(target.find('.') + 1)) != kWritesOfDynamoDb.end();
  return !head.first_line.starts_with("GET ") && !head.first_line.starts_with("HEAD ");
}

class RelayedClient;

struct Relay {
  Loop loop;
  std::mt19937_64 random;
  std::uint16_t port = 0;
  std::uint16_t upstream = 0;
  std::shared_ptr<Listener> listener;
  std::unordered_map<RelayedClient*, std::weak_ptr<RelayedClient>> clients;

  std::string fault = "none";
  std::uint64_t percent = 100;
  Milliseconds delay{0};
  std::uint64_t connections = 0;
  std::uint64_t faults = 0;

  bool meets() {
    if (fault == "none" || random() % 100 >= percent) return false;
    ++faults;
    return true;
  }
};

// A socket with what is still to be written to it.
class Pipe : public Watched {
 public:
  Pipe(Loop& loop, int socket) : Watched(socket), loop_(loop) {}

  void write_all(std::string_view bytes) {
    out_.append(bytes);
    flush();
  }

 protected:
  // The bytes that have arrived; none when the other side has closed or broken the connection.
  std::string arrived() {
    std::array<char, 65536> piece;
    const ssize_t got = recv(descriptor(), piece.data(), piece.size(), 0);
    is_over_ = got == 0 || (got < 0 && errno != EAGAIN);
    return got > 0 ? std::string(piece.data(), static_cast<std::size_t>(got)) : "";
  }

  bool is_over() const { return is_over_; }

  void flush() {
    while (!out_.empty()) {
      const ssize_t done = send(descriptor(), out_.data(), out_.size(), MSG_NOSIGNAL);
      if (done < 0) break;  // A broken connection is noticed when it is read.
      out_.erase(0, static_cast<std::size_t>(done));
    }
    loop_.change(*this, out_.empty() ? EPOLLIN | EPOLLRDHUP : EPOLLIN | EPOLLRDHUP | EPOLLOUT);
  }

  Loop& loop_;

 private:
  std::string out_;
  bool is_over_ = false;
};

class Upstream : public Pipe {
 public:
  Upstream(Relay& relay, int socket, std::weak_ptr<RelayedClient> client)
      : Pipe(relay.loop, socket), relay_(relay), client_(std::move(client)) {}
  void ready(std::uint32_t events) override;

 private:
  Relay& relay_;
  std::weak_ptr<RelayedClient> client_;
};

class RelayedClient : public Pipe, public std::enable_shared_from_this<RelayedClient> {
 public:
  RelayedClient(Relay& relay, int socket) : Pipe(relay.loop, socket), relay_(relay) {}

  ~RelayedClient() override { relay_.clients.erase(this); }

  void ready(std::uint32_t events) override {
    if ((events & EPOLLOUT) != 0) flush();
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
    const std::string bytes = arrived();
    if (is_over()) return end();
    if (!bytes.empty()) take(bytes);
  }

  void go_on() {
    const std::string held = std::exchange(held_, {}) + std::exchange(begun_, {});
    body_left_ = 0;
    if (!held.empty()) pass(held);
  }

  void reset() {
    reset_when_closed(descriptor());
    end();
  }

  void end() {
    if (const auto upstream = upstream_.lock()) loop_.forget(*upstream);
    loop_.forget(*this);
  }

 private:
  void take(const std::string& bytes) {
    if (!held_.empty() || (relay_.fault == "hang" && relay_.meets())) {
      held_ += bytes;
    } else if (relay_.fault == "hang_writes") {
      begun_ += bytes;
      pass_reads();
    } else if (relay_.fault == "throttle" || relay_.fault == "busy") {
      asked_ += bytes;
      answer_requests();
    } else if ((relay_.fault == "reset" || relay_.fault == "refuse") && relay_.meets()) {
      reset();
    } else if (relay_.fault == "slow" && relay_.meets()) {
      pass_later(bytes);
    } else if (Clock::now() < passes_at_) {
      pass_later(bytes);  // After what is still delayed.
    } else {
      pass(bytes);
    }
  }

  // Request by request. What begins in the middle of one, when the fault begins, belongs to one that is on its way.
  void pass_reads() {
    while (!begun_.empty()) {
      if (body_left_ > 0) {
        const std::size_t some = std::min(body_left_, begun_.size());
        pass(begun_.substr(0, some));
        begun_.erase(0, some);
        body_left_ -= some;
        continue;
      }
      const bool begins = std::any_of(kMethods.begin(), kMethods.end(), [this](std::string_view method) {
        return std::string_view(begun_).starts_with(method.substr(0, begun_.size()));
      });
      if (!begins) return pass(std::exchange(begun_, {}));
      const Head head = head_in(begun_);
      if (head.size == 0) return;
      if (is_write(head) && relay_.meets()) {
        held_ = std::exchange(begun_, {});
        return;
      }
      const std::string length(head.field("content-length"));
      body_left_ = head.size + (length.empty() ? 0 : std::stoul(length));
    }
  }

  void pass_later(const std::string& bytes) {
    const auto now = Clock::now();
    passes_at_ = std::max(now + relay_.delay, passes_at_);
    const auto delay = std::chrono::ceil<Milliseconds>(passes_at_ - now);
    loop_.after(delay, [weak = weak_from_this(), bytes] {
      if (const auto self = weak.lock()) self->pass(bytes);
    });
  }

  void pass(const std::string& bytes) {
    auto upstream = upstream_.lock();
    if (!upstream) {
      const int socket = begin_to_connect(relay_.upstream);
      if (socket < 0) return reset();
      upstream = std::make_shared<Upstream>(relay_, socket, weak_from_this());
      upstream_ = upstream;
      loop_.watch(upstream, EPOLLIN | EPOLLRDHUP);
    }
    upstream->write_all(bytes);
  }

  // Answers in place of the store. Each request that is complete gets its refusal.
  void answer_requests() {
    for (Head head = head_in(asked_); head.size > 0; head = head_in(asked_)) {
      const std::string length(head.field("content-length"));
      const std::size_t whole = head.size + (length.empty() ? 0 : std::stoul(length));
      if (asked_.size() < whole) return;
      asked_.erase(0, whole);
      ++relay_.faults;
      const bool throttled = relay_.fault == "throttle";
      const std::string_view body = throttled ? kThrottled : kBusy;
      std::string answer = throttled
                               ? "HTTP/1.1 400 Bad Request\r\nContent-Type: application/x-amz-json-1.0\r\n"
                               : "HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\n";
      answer.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n").append(body);
      write_all(answer);
    }
  }

  Relay& relay_;
  std::weak_ptr<Upstream> upstream_;
  std::string held_;           // Until the store no longer hangs.
  std::string asked_;          // Requests that are answered here.
  std::string begun_;          // The bytes of a request that may be a write.
  std::size_t body_left_ = 0;  // So much of a request that is no write has still to go through.
  Clock::time_point passes_at_;
};

void Upstream::ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
  const std::string bytes = arrived();
  const auto client = client_.lock();
  if (!client || is_over()) {
    if (client) client->end();
    return loop_.forget(*this);
  }
  if (bytes.empty()) return;
  const bool cut = relay_.fault == "cut" && relay_.meets();
  client->write_all(cut ? bytes.substr(0, 1 + relay_.random() % bytes.size()) : bytes);
  if (cut) client->reset();
}

void appear(Relay& relay) {
  if (relay.listener) return;
  relay.listener = std::make_shared<Listener>(relay.port, [&relay](int socket) {
    ++relay.connections;
    const auto client = std::make_shared<RelayedClient>(relay, socket);
    relay.clients.emplace(client.get(), client);
    relay.loop.watch(client, EPOLLIN | EPOLLRDHUP);
  });
  relay.port = relay.listener->port();
  relay.loop.watch(relay.listener, EPOLLIN);
}

void change_fault(Relay& relay, const std::vector<std::string>& words) {
  relay.fault = words[1];
  relay.percent = words.size() > 2 ? std::strtoull(words[2].c_str(), nullptr, 10) : 100;
  relay.delay = Milliseconds(words.size() > 3 ? std::strtoll(words[3].c_str(), nullptr, 10) : 100);
  std::vector<std::shared_ptr<RelayedClient>> all;
  for (const auto& [key, weak] : relay.clients)
    if (auto client = weak.lock()) all.push_back(std::move(client));
  const bool breaks = relay.fault == "refuse" || relay.fault == "throttle" || relay.fault == "busy";
  if (relay.fault == "refuse" && relay.listener) {
    relay.loop.forget(*relay.listener);
    relay.listener.reset();
  } else if (relay.fault != "refuse") {
    appear(relay);
  }
  for (const auto& client : all) {
    if (breaks)
      client->reset();
    else if (!relay.fault.starts_with("hang"))
      client->go_on();
  }
}

std::string obey(Relay& relay, const std::vector<std::string>& words) {
  const bool changes = words.size() >= 2 && words[0] == "fault" &&
                       std::find(kFaults.begin(), kFaults.end(), words[1]) != kFaults.end();
  if (!changes && (words.size() != 1 || words[0] != "state"))
    return R"({"error":"say: state, or: fault NAME [PERCENT] [MILLISECONDS]"})";
  if (changes) change_fault(relay, words);
  return "{\"fault\":\"" + relay.fault + "\",\"connections\":" + std::to_string(relay.connections) +
         ",\"faults\":" + std::to_string(relay.faults) + "}";
}

int serve(const Options& options) {
  Relay relay;
  relay.random.seed(options.number("seed"));
  relay.upstream = static_cast<std::uint16_t>(options.number("upstream"));
  relay.port = static_cast<std::uint16_t>(options.number("port"));
  appear(relay);
  run_under_control(relay.loop, relay.port,
                    [&relay](const std::vector<std::string>& words) { return obey(relay, words); });
  return 0;
}

}  // namespace
}  // namespace trials

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  return trials::serve(trials::Options(count, arguments, {{"port", "0"}, {"upstream", "0"}, {"seed", "1"}}));
}
