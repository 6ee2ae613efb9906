// trial_origin: an origin whose every page names its own URL (trial_page.h), fast, on one thread, with faults that
// are switched while it runs.
//
//   trial_origin [--port N] [--seed N] [--jitter MILLISECONDS]
//
// Prints "PORT CONTROL" and serves until it is killed. With --jitter some answers take up to so long, so that they
// overtake each other. A path that contains /w<N>/ is answered with Cache-Control: max-age=<N>, one with /s<N>/ may
// also be served stale, one with /p/ is private. Each line sent to the control port is answered with one line of JSON,
// the state:
//
//   state                                  changes nothing
//   fault NAME [PERCENT] [MILLISECONDS]    so many requests of a hundred meet the fault; `fault none` lifts it
//
// Faults:
//   refuse        connections are refused, those there are broke
//   hang          no answer until the fault is lifted
//   slow          the answer comes after MILLISECONDS
//   trickle       the answer comes in eight pieces, MILLISECONDS apart
//   fail          500, with the page as its body
//   cut_head      ends within the head, cleanly or by a reset
//   cut_body      ends within the body, likewise
//   short_length  Content-Length says less than what follows: the rest is nobody's
//   surplus       a whole second answer, of a page that nobody asked for, follows the right one
//   close_idle    connections are closed shortly after an answer, unannounced, and when the next request arrives
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
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
#include "trial_page.h"

namespace trials {
namespace {

constexpr std::array<std::string_view, 11> kFaults = {"none",         "refuse",  "hang",      "slow",
                                                      "trickle",      "fail",    "cut_head",  "cut_body",
                                                      "short_length", "surplus", "close_idle"};
constexpr std::size_t kOneSegment = 16384;  // What surely arrives in one piece on the loopback interface.
constexpr int kTricklePieces = 8;
constexpr std::uint64_t kLateAnswers = 4;  // With --jitter, so many in a hundred are late.

class OriginConnection;

struct Origin {
  Loop loop;
  std::mt19937_64 random;
  std::uint16_t port = 0;
  std::shared_ptr<Listener> listener;
  std::unordered_map<OriginConnection*, std::weak_ptr<OriginConnection>> connections;

  std::string fault = "none";
  std::uint64_t percent = 100;
  Milliseconds delay{0};
  std::uint64_t jitter = 0;  // Milliseconds.

  std::uint64_t requests = 0;
  std::uint64_t faults = 0;  // Requests that met one.
  std::uint64_t in_flight = 0;
  std::uint64_t most_in_flight = 0;

  std::uint64_t below(std::uint64_t limit) { return random() % limit; }
};

// The path says how long the page lives.
std::string cache_control_of(std::string_view path) {
  for (const std::string_view mark : {"/w", "/s"}) {
    const std::size_t at = path.find(mark);
    if (at == std::string_view::npos) continue;
    const std::size_t end = path.find_first_not_of("0123456789", at + 2);
    if (end == at + 2 || end == std::string_view::npos || path[end] != '/') continue;
    return "Cache-Control: max-age=" + std::string(path.substr(at + 2, end - at - 2)) +
           (mark == "/s" ? ", stale-while-revalidate=3600\r\n" : "\r\n");
  }
  return path.find("/p/") != std::string_view::npos ? "Cache-Control: private\r\n" : "";
}

std::string head_of(std::string_view status, std::string_view url, std::size_t length) {
  const std::string_view path = url.substr(std::min(url.find('/'), url.size()));
  std::string head = "HTTP/1.1 ";
  head.append(status)
      .append("\r\nContent-Type: text/plain\r\nContent-Length: ")
      .append(std::to_string(length));
  head.append("\r\n")
      .append(kPageField)
      .append(": ")
      .append(url)
      .append("\r\n")
      .append(cache_control_of(path))
      .append("\r\n");
  return head;
}

class OriginConnection : public Watched, public std::enable_shared_from_this<OriginConnection> {
 public:
  OriginConnection(Origin& origin, int socket) : Watched(socket), origin_(origin) {}

  ~OriginConnection() override {
    end_request();
    origin_.connections.erase(this);
  }

  void ready(std::uint32_t events) override {
    if ((events & EPOLLOUT) != 0) flush();
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) read_requests();
  }

  // The fault is over: whoever still waits is answered.
  void go_on() {
    if (!held_) return;
    held_ = false;
    answer("200 OK");
  }

  void reset() {
    reset_when_closed(descriptor());
    vanish();
  }

 private:
  void vanish() {
    end_request();
    origin_.loop.forget(*this);
  }

  void end_request() {
    if (busy_) --origin_.in_flight;
    busy_ = false;
  }

  void read_requests() {
    std::array<char, 16384> piece;
    while (true) {
      const ssize_t got = recv(descriptor(), piece.data(), piece.size(), 0);
      if (got < 0 && errno == EAGAIN) break;
      if (got <= 0) return vanish();
      in_.append(piece.data(), static_cast<std::size_t>(got));
      if (static_cast<std::size_t>(got) < piece.size()) break;
    }
    take_request();
  }

  void take_request() {
    const Head head = head_in(in_);
    if (busy_ || head.size == 0) return;
    const std::size_t method_end = head.first_line.find(' ');
    const std::size_t path_end = head.first_line.rfind(' ');
    if (method_end >= path_end || path_end == std::string_view::npos) return vanish();
    is_head_ = head.first_line.starts_with("HEAD ");
    url_ = std::string(head.field("host"))
               .append(head.first_line.substr(method_end + 1, path_end - method_end - 1));
    in_.erase(0, head.size);
    busy_ = true;
    ++origin_.requests;
    ++served_;
    origin_.most_in_flight = std::max(origin_.most_in_flight, ++origin_.in_flight);
    const bool meets = origin_.fault != "none" && origin_.below(100) < origin_.percent;
    if (meets) ++origin_.faults;
    serve(meets ? origin_.fault : "none");
  }

  void serve(const std::string& fault) {
    if (fault == "refuse") return reset();  // Was accepted just before.
    if (fault == "hang") {
      held_ = true;
    } else if (fault == "slow") {
      later(origin_.delay, [](OriginConnection& self) { self.answer("200 OK"); });
    } else if (fault == "trickle") {
      trickle();
    } else if (fault == "fail") {
      answer("500 Internal Server Error");
    } else if (fault == "cut_head" || fault == "cut_body") {
      cut(fault == "cut_head");
    } else if (fault == "short_length") {
      shorten();
    } else if (fault == "surplus") {
      answer_twice();
    } else if (fault == "close_idle") {
      close_at_a_bad_moment();
    } else if (origin_.jitter > 0 && origin_.below(100) < kLateAnswers) {
      later(Milliseconds(1 + origin_.below(origin_.jitter)),
            [](OriginConnection& self) { self.answer("200 OK"); });
    } else {
      answer("200 OK");
    }
  }

  template <class Action>
  void later(Milliseconds delay, Action action) {
    origin_.loop.after(delay, [weak = weak_from_this(), action] {
      const auto self = weak.lock();
      if (self && self->busy_) action(*self);
    });
  }

  std::string whole_answer(std::string_view status, std::string_view url) const {
    const std::string page = page_of(url);
    std::string whole = head_of(status, url, page.size());
    if (!is_head_) whole += page;
    return whole;
  }

  void answer(std::string_view status) { send_and_go_on(whole_answer(status, url_)); }

  void trickle() {
    pieces_ = whole_answer("200 OK", url_);
    trickle_one(kTricklePieces);
  }

  void trickle_one(int left) {
    const std::size_t size = left == 1 ? pieces_.size() : pieces_.size() / static_cast<std::size_t>(left);
    std::string piece = pieces_.substr(0, size);
    pieces_.erase(0, size);
    if (left == 1) return send_and_go_on(std::move(piece));
    out_ += piece;
    flush();
    later(origin_.delay, [left](OriginConnection& self) { self.trickle_one(left - 1); });
  }

  void cut(bool in_head) {
    const std::string whole = whole_answer("200 OK", url_);
    const std::size_t head = head_in(whole).size;
    const std::size_t kept =
        in_head ? 1 + origin_.below(head - 1) : head + origin_.below(whole.size() - head);
    send_and_close(whole.substr(0, kept));
  }

  void shorten() {
    const std::string page = page_of(url_);
    send_and_go_on(head_of("200 OK", url_, page.size() - 1 - origin_.below(page.size() / 2)) + page);
  }

  void answer_twice() {
    std::string both = whole_answer("200 OK", url_);
    const std::string second = whole_answer("200 OK", "nobody.test/asked/for/this");
    if (both.size() + second.size() <= kOneSegment) both += second;
    send_and_go_on(std::move(both));
  }

  void close_at_a_bad_moment() {
    // A connection's first request is answered: a client cannot know then that the origin is about to close.
    if (served_ > 1 && origin_.below(2) == 0) return origin_.below(2) == 0 ? reset() : vanish();
    answer("200 OK");
    origin_.loop.after(Milliseconds(origin_.below(4)), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && !self->busy_) self->vanish();
    });
  }

  void send_and_go_on(std::string text) {
    out_ += text;
    after_sending_ = AfterSending::next_request;
    flush();
  }

  void send_and_close(std::string text) {
    out_ += text;
    after_sending_ = AfterSending::close;
    flush();
  }

  void flush() {
    while (sent_ < out_.size()) {
      const ssize_t done = send(descriptor(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
      if (done < 0 && errno == EAGAIN) return origin_.loop.change(*this, EPOLLIN | EPOLLRDHUP | EPOLLOUT);
      if (done < 0) return vanish();
      sent_ += static_cast<std::size_t>(done);
    }
    const bool was_long = sent_ > kOneSegment;
    out_.clear();
    sent_ = 0;
    if (was_long) origin_.loop.change(*this, EPOLLIN | EPOLLRDHUP);
    const AfterSending then = std::exchange(after_sending_, AfterSending::more_follows);
    if (then == AfterSending::close) return origin_.below(2) == 0 ? reset() : vanish();
    if (then != AfterSending::next_request) return;
    end_request();
    take_request();
  }

  enum class AfterSending {
    more_follows,  // Pieces of this answer are still to come.
    next_request,  // The answer is complete.
    close,         // The answer ends here, complete or not.
  };

  Origin& origin_;
  std::string in_, out_, url_, pieces_;
  std::size_t sent_ = 0;
  std::uint64_t served_ = 0;
  bool busy_ = false;
  bool held_ = false;
  bool is_head_ = false;
  AfterSending after_sending_ = AfterSending::more_follows;
};

void appear(Origin& origin) {
  if (origin.listener) return;
  origin.listener = std::make_shared<Listener>(origin.port, [&origin](int socket) {
    const auto connection = std::make_shared<OriginConnection>(origin, socket);
    origin.connections.emplace(connection.get(), connection);
    origin.loop.watch(connection, EPOLLIN | EPOLLRDHUP);
  });
  origin.port = origin.listener->port();
  origin.loop.watch(origin.listener, EPOLLIN);
}

void vanish(Origin& origin) {
  if (!origin.listener) return;
  origin.loop.forget(*origin.listener);
  origin.listener.reset();
}

std::vector<std::shared_ptr<OriginConnection>> all_of(const Origin& origin) {
  std::vector<std::shared_ptr<OriginConnection>> all;
  for (const auto& [key, weak] : origin.connections)
    if (auto connection = weak.lock()) all.push_back(std::move(connection));
  return all;
}

std::string state_of(const Origin& origin) {
  return "{\"fault\":\"" + origin.fault + "\",\"requests\":" + std::to_string(origin.requests) +
         ",\"faults\":" + std::to_string(origin.faults) +
         ",\"in_flight\":" + std::to_string(origin.in_flight) +
         ",\"most_in_flight\":" + std::to_string(origin.most_in_flight) +
         ",\"connections\":" + std::to_string(origin.connections.size()) + "}";
}

std::string obey(Origin& origin, const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "state") return state_of(origin);
  if (words.size() < 2 || words[0] != "fault" ||
      std::find(kFaults.begin(), kFaults.end(), words[1]) == kFaults.end())
    return R"({"error":"say: state, or: fault NAME [PERCENT] [MILLISECONDS]"})";
  origin.fault = words[1];
  origin.percent = words.size() > 2 ? std::strtoull(words[2].c_str(), nullptr, 10) : 100;
  origin.delay = Milliseconds(words.size() > 3 ? std::strtoll(words[3].c_str(), nullptr, 10) : 100);
  if (origin.fault == "refuse") {
    vanish(origin);
    for (const auto& connection : all_of(origin))
      connection->reset();
  } else {
    appear(origin);
    if (origin.fault != "hang")
      for (const auto& connection : all_of(origin))
        connection->go_on();
  }
  return state_of(origin);
}

int serve(const Options& options) {
  Origin origin;
  origin.random.seed(options.number("seed"));
  origin.jitter = options.number("jitter");
  origin.port = static_cast<std::uint16_t>(options.number("port"));
  appear(origin);
  run_under_control(origin.loop, origin.port,
                    [&origin](const std::vector<std::string>& words) { return obey(origin, words); });
  return 0;
}

}  // namespace
}  // namespace trials

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  return trials::serve(trials::Options(count, arguments, {{"port", "0"}, {"seed", "1"}, {"jitter", "0"}}));
}
