// bench_origin: the origin behind every server that gateway_bench measures. The first segment of a path says what the
// answer is:
//
//   /16k/anything             16 KiB of text, fresh for a day
//   /16k-age2/anything        fresh for two seconds
//   /16k-delay300/anything    takes 300 ms
//   /16k-gzip/anything        compressed for those who accept gzip, with Vary: Accept-Encoding
//   /__count                  how many answers it has given, other than this one
//
//   bench_origin PORT
//
// Every answer has an ETag of its own, so nothing is ever "not modified" here and each render replaces what was stored.
// All may be served stale for ten minutes while they are rendered again (stale-while-revalidate). One thread, one
// epoll; requests must have no body and must not be pipelined. Says "ready" on stdout when it listens.
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "epoll_listener.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLargest = std::size_t{4} << 20;
constexpr std::size_t kHeadLimit = std::size_t{64} * 1024;

// The first segment of a path asks for this.
struct Order {
  std::size_t bytes = 0;
  unsigned age = 86400;
  unsigned delay_ms = 0;
  bool gzip = false;
};

unsigned number(std::string_view& text) {
  unsigned value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// No bytes: the path is none of ours.
Order parse(std::string_view path) {
  Order order;
  std::string_view words = path.substr(1, path.find('/', 1) - 1);
  order.bytes = number(words);
  if (take(words, "k")) order.bytes *= 1024;
  while (!words.empty()) {
    if (take(words, "-age")) {
      order.age = number(words);
    } else if (take(words, "-delay")) {
      order.delay_ms = number(words);
    } else if (take(words, "-gzip")) {
      order.gzip = true;
    } else {
      return {};
    }
  }
  if (order.bytes > kLargest) order.bytes = 0;
  return order;
}

// Words in no order, which compress about as well as prose does.
std::string make_text() {
  constexpr std::array<std::string_view, 32> kWords = {
      "page ",   "the ",       "render ", "of ",      "stale ",  "and ",
      "<p>",     "</p>\n",     "window ", "a ",       "lease ",  "to ",
      "origin ", "in ",        "fresh ",  "visitor ", "is ",     "cache ",
      "that ",   "table ",     "it ",     "request ", "answer ", "for ",
      "<b>",     "</b> ",      "header ", "was ",     "body ",   "<a href=\"/news/today\">",
      "</a> ",   "generation "};
  std::string text;
  text.reserve(kLargest + 64);
  std::uint64_t state = 42;
  while (text.size() < kLargest) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += kWords[(state >> 33) % kWords.size()];
    if ((state >> 50) % 8 == 0) text += std::to_string((state >> 40) % 10000) + " ";
  }
  return text;
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  std::string in(text);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

class Renderer {
 public:
  std::string count() const {
    const std::string digits = std::to_string(rendered_);
    return "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: " + std::to_string(digits.size()) +
           "\r\n\r\n" + digits;
  }

  std::string render(const Order& order, std::string_view path, std::string_view head) {
    ++rendered_;
    if (order.bytes == 0) return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    std::string answer = "HTTP/1.1 200 OK\r\nDate: " + date() +
                         "\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: public, max-age=" +
                         std::to_string(order.age) + ", stale-while-revalidate=600\r\nETag: \"" +
                         std::to_string(rendered_) + "-" + std::to_string(order.bytes) + "\"\r\n";
    if (order.gzip) answer += "Vary: Accept-Encoding\r\n";
    std::string body;
    if (order.gzip && accepts_gzip(head)) {
      answer += "Content-Encoding: gzip\r\n";
      body = compressed(order.bytes);
    } else {
      body = "<!doctype html>" + std::string(path) + "\n";
      body += std::string_view(text_).substr(0, order.bytes);
      body.resize(order.bytes);
    }
    return answer + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  static bool accepts_gzip(std::string_view head) {
    for (const std::string_view name : {"\r\nAccept-Encoding:", "\r\naccept-encoding:"}) {
      const std::size_t at = head.find(name);
      if (at == std::string_view::npos) continue;
      return head.substr(at, head.find("\r\n", at + 2) - at).find("gzip") != std::string_view::npos;
    }
    return false;
  }

  const std::string& compressed(std::size_t bytes) {
    std::string& made = compressed_[bytes];
    if (made.empty()) made = gzip(std::string_view(text_).substr(0, bytes));
    return made;
  }

  std::uint64_t rendered_ = 0;
  std::string text_ = make_text();
  std::map<std::size_t, std::string> compressed_;
};

struct Connection {
  std::uint64_t id;  // Sockets are reused; this is not.
  std::string in;
  std::string out;
  std::size_t sent = 0;
  bool waits_to_send = false;
};

class Server {
 public:
  explicit Server(std::uint16_t port) : listener_("bench_origin", port) {}

  [[noreturn]] void run() {
    for (;;) {
      listener_.wait(milliseconds_to_next(), [this] { accept_all(); }, [this](int socket) { serve(socket); });
      answer_delayed();
    }
  }

 private:
  struct Delayed {
    int socket;
    std::uint64_t connection;
    std::string head;
  };

  void accept_all() {
    for (int socket = 0; (socket = listener_.accept()) >= 0;) {
      connections_[socket] = {.id = ++last_id_, .in = {}, .out = {}};
      listener_.watch(socket, EPOLL_CTL_ADD, EPOLLIN);
    }
  }

  void serve(int socket) {
    const auto found = connections_.find(socket);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    if (!connection.out.empty()) return flush(socket, connection);
    std::array<char, 16384> buffer;
    const ssize_t count = recv(socket, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0 || connection.in.size() > kHeadLimit) return drop(socket);
    connection.in.append(buffer.data(), static_cast<std::size_t>(count));
    if (!connection.in.ends_with("\r\n\r\n")) return;

    std::string head = std::exchange(connection.in, {});
    const Order order = parse(path_of(head));
    if (order.delay_ms == 0) return answer(socket, connection, head);
    delayed_.emplace(Clock::now() + std::chrono::milliseconds(order.delay_ms),
                     Delayed{.socket = socket, .connection = connection.id, .head = std::move(head)});
  }

  static std::string_view path_of(std::string_view head) {
    const std::size_t path = head.find(' ') + 1;
    const std::string_view found = head.substr(path, head.find(' ', path) - path);
    return found.starts_with('/') ? found : "/";
  }

  void answer(int socket, Connection& connection, std::string_view head) {
    const std::string_view path = path_of(head);
    connection.out = path == "/__count" ? renderer_.count() : renderer_.render(parse(path), path, head);
    connection.sent = 0;
    flush(socket, connection);
  }

  void flush(int socket, Connection& connection) {
    const ssize_t count = send(socket, connection.out.data() + connection.sent,
                               connection.out.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN) return drop(socket);
    if (count > 0) connection.sent += static_cast<std::size_t>(count);
    const bool all = connection.sent == connection.out.size();
    if (all == connection.waits_to_send) {
      connection.waits_to_send = !all;
      listener_.watch(socket, EPOLL_CTL_MOD, all ? EPOLLIN : EPOLLOUT);
    }
    if (all) connection.out.clear();
  }

  void drop(int socket) {
    close(socket);
    connections_.erase(socket);
  }

  int milliseconds_to_next() const {
    if (delayed_.empty()) return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(delayed_.begin()->first - Clock::now()).count();
    return left < 0 ? 0 : static_cast<int>(left);
  }

  void answer_delayed() {
    while (!delayed_.empty() && delayed_.begin()->first <= Clock::now()) {
      const Delayed due = std::move(delayed_.begin()->second);
      delayed_.erase(delayed_.begin());
      const auto found = connections_.find(due.socket);
      if (found != connections_.end() && found->second.id == due.connection)
        answer(due.socket, found->second, due.head);
    }
  }

  const EpollListener listener_;
  Renderer renderer_;
  std::uint64_t last_id_ = 0;
  std::map<int, Connection> connections_;
  std::multimap<Clock::time_point, Delayed> delayed_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: bench_origin PORT\n");
    return 2;
  }
  Server server(static_cast<std::uint16_t>(std::strtoul(arguments[1], nullptr, 10)));
  std::puts("ready");
  std::fflush(stdout);
  server.run();
}
