#include "trial_loop.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace trials {
namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(2);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int listening_socket(std::uint16_t port) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = loopback(port);
  if (bind(made, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(made, 1024) != 0)
    fail("cannot listen on port " + std::to_string(port));
  return made;
}

class ControlConnection : public Watched {
 public:
  using Obey = std::function<std::string(const std::vector<std::string>&)>;

  ControlConnection(Loop& loop, int socket, Obey obey)
      : Watched(socket), loop_(loop), obey_(std::move(obey)) {}

  void ready(std::uint32_t) override {
    std::array<char, 4096> piece;
    const ssize_t got = read(descriptor(), piece.data(), piece.size());
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      loop_.forget(*this);
      return;
    }
    if (got > 0) in_.append(piece.data(), static_cast<std::size_t>(got));
    for (std::size_t end = in_.find('\n'); end != std::string::npos; end = in_.find('\n')) {
      std::istringstream line(in_.substr(0, end));
      in_.erase(0, end + 1);
      std::vector<std::string> words;
      for (std::string word; line >> word;)
        words.push_back(word);
      const std::string answer = obey_(words) + "\n";
      // Short enough for any socket's buffer.
      if (write(descriptor(), answer.data(), answer.size()) < 0) loop_.forget(*this);
    }
  }

 private:
  Loop& loop_;
  Obey obey_;
  std::string in_;
};

}  // namespace

Watched::~Watched() {
  if (descriptor_ >= 0) close(descriptor_);
}

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

Loop::~Loop() {
  watched_.clear();
  close(epoll_);
}

void Loop::watch(std::shared_ptr<Watched> watched, std::uint32_t events) {
  watched->id_ = ++last_id_;
  epoll_event event{.events = events, .data = {.u64 = watched->id_}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, watched->descriptor_, &event) != 0) fail("epoll_ctl failed");
  watched_.emplace(watched->id_, std::move(watched));
}

void Loop::change(Watched& watched, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = watched.id_}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, watched.descriptor_, &event);
}

void Loop::forget(Watched& watched) {
  const auto found = watched_.find(watched.id_);
  if (found == watched_.end()) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, watched.descriptor_, nullptr);
  watched_.erase(found);
}

void Loop::after(Milliseconds delay, std::function<void()> action) {
  timers_.emplace(Clock::now() + delay, std::move(action));
}

void Loop::run() {
  std::array<epoll_event, 256> events;
  while (!stopped_) {
    const int count =
        epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), milliseconds_to_next_timer());
    for (int i = 0; i < count && !stopped_; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const auto found = watched_.find(event.data.u64);
      if (found == watched_.end()) continue;  // Forgotten by an earlier event of this round.
      const std::shared_ptr<Watched> held = found->second;
      held->ready(event.events);
    }
    run_due_timers();
  }
}

void Loop::run_due_timers() {
  const Clock::time_point now = Clock::now();
  while (!stopped_ && !timers_.empty() && timers_.begin()->first <= now) {
    const std::function<void()> action = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    action();
  }
}

int Loop::milliseconds_to_next_timer() const {
  if (timers_.empty()) return 1000;
  const auto left = timers_.begin()->first - Clock::now();
  const auto milliseconds = std::chrono::ceil<Milliseconds>(left).count();
  return static_cast<int>(std::clamp<long>(milliseconds, 0, 1000));
}

Listener::Listener(std::uint16_t port, std::function<void(int)> take)
    : Watched(listening_socket(port)), take_(std::move(take)) {}

void Listener::ready(std::uint32_t) {
  for (int taken = 0; (taken = accept4(descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
    const int on = 1;
    setsockopt(taken, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    take_(taken);
  }
}

std::uint16_t Listener::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(descriptor(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

void run_under_control(Loop& loop, std::uint16_t port,
                       std::function<std::string(const std::vector<std::string>&)> obey) {
  const auto listener = std::make_shared<Listener>(0, [&loop, obey = std::move(obey)](int socket) {
    loop.watch(std::make_shared<ControlConnection>(loop, socket, obey), EPOLLIN);
  });
  loop.watch(listener, EPOLLIN);
  std::printf("%u %u\n", port, listener->port());
  std::fflush(stdout);
  loop.run();
}

int begin_to_connect(std::uint16_t port) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  const int on = 1;
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address = loopback(port);
  if (connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 || errno == EINPROGRESS)
    return made;
  close(made);
  return -1;
}

void reset_when_closed(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

Options::Options(int count, char** arguments, std::map<std::string, std::string> defaults)
    : values_(std::move(defaults)) {
  for (int i = 1; i < count; i += 2) {
    const std::string name = arguments[i];
    const auto found = values_.find(name.starts_with("--") ? name.substr(2) : "");
    if (found == values_.end() || i + 1 == count) {
      std::string known;
      for (const auto& [option, value] : values_)
        known += " --" + option;
      fail("unknown option, or one without a value: " + name + "; there are" + known);
    }
    found->second = arguments[i + 1];
  }
}

const std::string& Options::text(const std::string& name) const {
  return values_.at(name);
}

std::uint64_t Options::number(const std::string& name) const {
  const std::string& value = values_.at(name);
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0') fail("--" + name + " needs a number, not '" + value + "'");
  return number;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
         });
}

Head head_in(std::string_view text) {
  Head head;
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return head;
  head.size = end + 4;
  head.text = text.substr(0, end + 2);
  head.first_line = head.text.substr(0, head.text.find("\r\n"));
  return head;
}

std::string_view Head::field(std::string_view lower_case_name) const {
  std::size_t at = first_line.size() + 2;
  while (at < text.size()) {
    const std::size_t end = text.find("\r\n", at);
    const std::string_view line = text.substr(at, end - at);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && equal_ignoring_case(line.substr(0, colon), lower_case_name)) {
      std::string_view value = line.substr(colon + 1);
      while (!value.empty() && value.front() == ' ')
        value.remove_prefix(1);
      return value;
    }
    at = end + 2;
  }
  return {};
}

}  // namespace trials
