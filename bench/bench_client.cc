// bench_client: asks a server for many pages. gateway_bench fills caches, makes stampedes and spreads load over more
// pages than fit into memory with it; the load on one page is wrk's business.
//
//   bench_client [--order ORDER] [--seed N] [--field "NAME: VALUE"]... PORT CONNECTIONS PAGES SECONDS PATH
//
// '#' in PATH stands for the number of a page, from 0. ORDER says what is asked for:
//
//   turn      each page once, in turn (the default)
//   shuffled  each page once, in no order
//   uniform   any page, all equally often, until SECONDS are over
//   zipf      any page, the popular ones more often, until SECONDS are over: that of rank r with a weight of 1/r
//
// The seed alone decides on what is random, but for which pages are popular: they are always the same ones.
//
// Requests go over CONNECTIONS connections, none of them pipelined. All connections are made and all draws are drawn
// first; the clock starts when the first request is sent. Ends after SECONDS at the latest. Prints one JSON object: how
// many answers were right, how many failed, the bytes of the right ones with their heads, the milliseconds that they
// took, and the processor time that passed before the clock started. An answer is right if it is a 200 whose body
// begins as bench_origin's does, with the path that was asked for.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
using Pages = std::vector<std::uint32_t>;

constexpr std::size_t kDraws = std::size_t{1} << 20;  // Then they begin again.

struct Options {
  std::string order = "turn";
  std::uint64_t seed = 1;
  std::string fields = "Host: bench.test\r\n";
  std::uint16_t port = 0;
  std::size_t connections = 0;
  std::size_t pages = 0;
  std::chrono::seconds limit{};
  std::string path;

  // Whether pages are asked for until the time is over, and not once each.
  bool endless() const { return order == "uniform" || order == "zipf"; }
};

// std::shuffle and the standard's distributions may differ from one library to the next; this does not.
std::size_t below(std::mt19937_64& random, std::size_t limit) {
  return static_cast<std::size_t>(random() % limit);
}

Pages shuffled(std::size_t pages, std::uint64_t seed) {
  Pages order(pages);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(seed);
  for (std::size_t i = pages; i > 1; --i)
    std::swap(order[i - 1], order[below(random, i)]);
  return order;
}

Pages uniform(std::size_t pages, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Pages draws(kDraws);
  for (std::uint32_t& page : draws)
    page = static_cast<std::uint32_t>(below(random, pages));
  return draws;
}

Pages zipf(std::size_t pages, std::uint64_t seed) {
  std::vector<double> up_to(pages);  // The weights of a rank and of those before it.
  for (std::size_t rank = 0; rank < pages; ++rank)
    up_to[rank] = (rank == 0 ? 0 : up_to[rank - 1]) + 1 / static_cast<double>(rank + 1);
  const Pages by_rank = shuffled(pages, 0);
  std::mt19937_64 random(seed);
  Pages draws(kDraws);
  for (std::uint32_t& page : draws) {
    const double drawn = static_cast<double>(random() >> 11) * 0x1p-53 * up_to.back();
    const auto found = std::upper_bound(up_to.begin(), up_to.end() - 1, drawn);
    page = by_rank[static_cast<std::size_t>(found - up_to.begin())];
  }
  return draws;
}

// The pages to ask for, in this order.
Pages pages_of(const Options& options) {
  if (options.order == "shuffled") return shuffled(options.pages, options.seed);
  if (options.order == "uniform") return uniform(options.pages, options.seed);
  if (options.order == "zipf") return zipf(options.pages, options.seed);
  Pages order(options.pages);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

struct Connection {
  int socket = -1;
  bool asking = false;
  Clock::time_point began;
  std::uint32_t page = 0;
  std::string in;         // The beginning of an answer, while it does not show yet whether that is right.
  std::size_t whole = 0;  // Bytes of the answer with its head; 0 while that is not known.
  std::size_t come = 0;   // Bytes of it that have come.
  bool right = false;
};

class Client {
 public:
  explicit Client(const Options& options)
      : options_(options),
        pages_(pages_of(options)),
        prefix_(options.path.substr(0, options.path.find('#'))),
        numbered_(prefix_.size() < options.path.size()),
        suffix_(numbered_ ? options.path.substr(prefix_.size() + 1) : ""),
        epoll_(epoll_create1(0)),
        connections_(options.connections) {}

  bool connect_all() {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      const int made = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(options_.port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (made < 0 || connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        std::perror("bench_client: cannot connect");
        return false;
      }
      const int on = 1;
      setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      connections_[i].socket = made;
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      epoll_ctl(epoll_, EPOLL_CTL_ADD, made, &event);
    }
    return true;
  }

  void run() {
    setup_ = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    began_ = Clock::now();
    for (Connection& connection : connections_)
      ask(connection, Clock::now());
    std::array<epoll_event, 256> events;
    while (busy_ > 0 && Clock::now() - began_ < options_.limit) {
      const int count = epoll_wait(epoll_, events.data(), events.size(), 100);
      for (int i = 0; i < count; ++i)
        hear(connections_[events[static_cast<std::size_t>(i)].data.u64]);
    }
    ended_ = Clock::now();
  }

  void print() {
    std::sort(milliseconds_.begin(), milliseconds_.end());
    const auto at = [&](double part) {
      if (milliseconds_.empty()) return 0.0;
      return milliseconds_[static_cast<std::size_t>(part * static_cast<double>(milliseconds_.size() - 1))];
    };
    std::printf(R"({"answered": %zu, "failed": %zu, "bytes": %zu, "seconds": %.3f, "setup": %.3f, )"
                R"("p50_ms": %.3f, "p99_ms": %.3f, "max_ms": %.3f})"
                "\n",
                milliseconds_.size(), failed_, bytes_, std::chrono::duration<double>(ended_ - began_).count(),
                setup_, at(0.5), at(0.99), at(1));
  }

 private:
  void ask(Connection& connection, Clock::time_point now) {
    if (asked_ == pages_.size() && options_.endless()) asked_ = 0;
    if (asked_ == pages_.size()) return;
    connection.page = pages_[asked_++];
    ++busy_;
    connection.in.clear();
    connection.whole = 0;
    connection.come = 0;
    connection.asking = true;
    connection.began = now;
    request_ = "GET ";
    append_path(request_, connection.page);
    request_ += " HTTP/1.1\r\n";
    request_ += options_.fields;
    request_ += "\r\n";
    if (send(connection.socket, request_.data(), request_.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request_.size()))
      end(connection);
  }

  void append_path(std::string& text, std::uint32_t page) const {
    text += prefix_;
    if (!numbered_) return;
    std::array<char, 16> digits;
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), page).ptr);
    text += suffix_;
  }

  // A connection that breaks is not made again: its share of the requests goes to the others.
  void end(Connection& connection) {
    if (connection.asking) {
      ++failed_;
      --busy_;
    }
    close(connection.socket);
    connection.socket = -1;
  }

  void hear(Connection& connection) {
    if (connection.socket < 0) return;
    const ssize_t count = recv(connection.socket, buffer_.data(), buffer_.size(), 0);
    if (count <= 0 || !connection.asking) return end(connection);
    connection.come += static_cast<std::size_t>(count);
    if (connection.whole == 0) {
      std::string_view in(buffer_.data(), static_cast<std::size_t>(count));
      if (!connection.in.empty() || !read(connection, in)) {
        connection.in += in;
        read(connection, connection.in);
      }
    }
    if (connection.whole == 0 || connection.come < connection.whole) return;
    const Clock::time_point now = Clock::now();
    --busy_;
    connection.asking = false;
    if (connection.right && connection.come == connection.whole) {
      milliseconds_.push_back(std::chrono::duration<double, std::milli>(now - connection.began).count());
      bytes_ += connection.come;
    } else {
      ++failed_;
    }
    ask(connection, now);
  }

  // Reads the head and the beginning of the body. False: more must come first.
  bool read(Connection& connection, std::string_view in) {
    const std::size_t end = in.find("\r\n\r\n");
    if (end == std::string_view::npos) return false;
    const std::optional<std::size_t> length = content_length(in.substr(0, end + 2));
    beginning_ = "<!doctype html>";
    append_path(beginning_, connection.page);
    const std::string_view body = in.substr(end + 4);
    const std::size_t compared = std::min(beginning_.size(), length.value_or(0));
    if (body.size() < compared) return false;
    connection.right = in.starts_with("HTTP/1.1 200") && length &&
                       body.substr(0, compared) == std::string_view(beginning_).substr(0, compared);
    connection.whole = end + 4 + length.value_or(0);
    return true;
  }

  static std::optional<std::size_t> content_length(std::string_view head) {
    constexpr std::string_view kLength = "content-length:";
    for (std::size_t line = head.find('\n'); line != std::string_view::npos;
         line = head.find('\n', line + 1)) {
      const std::string_view name = head.substr(line + 1, kLength.size());
      if (!std::equal(name.begin(), name.end(), kLength.begin(), kLength.end(),
                      [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; }))
        continue;
      const std::string_view value = head.substr(head.find_first_not_of(' ', line + 1 + kLength.size()));
      std::size_t length = 0;
      std::from_chars(value.data(), value.data() + value.size(), length);
      return length;
    }
    return std::nullopt;
  }

  const Options options_;
  const Pages pages_;
  const std::string prefix_;  // Of a path, before the page's number.
  const bool numbered_;
  const std::string suffix_;
  const int epoll_;
  std::vector<Connection> connections_;
  std::array<char, 65536> buffer_;
  std::string request_, beginning_;  // Kept, so that no request allocates.
  std::size_t asked_ = 0;
  std::size_t busy_ = 0;
  std::size_t failed_ = 0;
  std::size_t bytes_ = 0;
  std::vector<double> milliseconds_;
  double setup_ = 0;
  Clock::time_point began_, ended_;
};

std::optional<Options> parse(std::vector<std::string> words) {
  Options options;
  std::size_t next = 0;
  for (; next + 1 < words.size() && words[next].starts_with("--"); next += 2) {
    const std::string& value = words[next + 1];
    if (words[next] == "--order") {
      options.order = value;
    } else if (words[next] == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (words[next] == "--field") {
      options.fields += value + "\r\n";
    } else {
      return std::nullopt;
    }
  }
  constexpr std::array<std::string_view, 4> kOrders = {"turn", "shuffled", "uniform", "zipf"};
  if (words.size() != next + 5 || std::find(kOrders.begin(), kOrders.end(), options.order) == kOrders.end())
    return std::nullopt;
  const auto number = [&](std::size_t i) { return std::strtoul(words[next + i].c_str(), nullptr, 10); };
  options.port = static_cast<std::uint16_t>(number(0));
  options.connections = number(1);
  options.pages = number(2);
  options.limit = std::chrono::seconds(number(3));
  options.path = words[next + 4];
  if (options.connections == 0 || options.pages == 0) return std::nullopt;
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  const std::optional<Options> options = parse({arguments + 1, arguments + count});
  if (!options) {
    std::fprintf(
        stderr,
        "usage: bench_client [--order turn|shuffled|uniform|zipf] [--seed N] [--field \"NAME: VALUE\"]... "
        "PORT CONNECTIONS PAGES SECONDS PATH\n");
    return 2;
  }
  Client client(*options);
  if (!client.connect_all()) return 1;
  client.run();
  client.print();
  return 0;
}
