// bench_client: asks a server for pages once each, or for one page from many connections at once. gateway_bench fills
// caches and makes stampedes with it; steady load is wrk's business.
//
//   bench_client PORT CONNECTIONS COUNT SECONDS PATH
//
// COUNT requests for PATH, in which '#' stands for the number of the request (from 0), over CONNECTIONS connections,
// none of them pipelined. All connections are made first; the clock starts when the first request is sent. Ends after
// SECONDS at the latest. Prints one JSON object: how many were answered with 200, how many failed, and the milliseconds
// that answers took.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

struct Connection {
  int socket = -1;
  bool asking = false;
  Clock::time_point began;
  std::string in;
  std::size_t whole = 0;  // Bytes of the answer with its head; 0 while the head is not complete.
  bool good = false;
};

class Client {
 public:
  Client(std::uint16_t port, std::size_t connections, std::size_t count, std::string path)
      : port_(port),
        count_(count),
        path_(std::move(path)),
        epoll_(epoll_create1(0)),
        connections_(connections) {}

  bool connect_all() {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      const int made = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port_);
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

  void run(std::chrono::seconds limit) {
    began_ = Clock::now();
    for (Connection& connection : connections_)
      ask(connection);
    std::array<epoll_event, 256> events;
    while (busy_ > 0 && Clock::now() - began_ < limit) {
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
    std::printf(
        R"({"answered": %zu, "failed": %zu, "seconds": %.3f, "p50_ms": %.2f, "p99_ms": %.2f, "max_ms": %.2f})"
        "\n",
        milliseconds_.size(), failed_, std::chrono::duration<double>(ended_ - began_).count(), at(0.5),
        at(0.99), at(1));
  }

 private:
  void ask(Connection& connection) {
    if (asked_ == count_) return;
    std::string path = path_;
    if (const std::size_t mark = path.find('#'); mark != std::string::npos)
      path.replace(mark, 1, std::to_string(asked_));
    ++asked_;
    ++busy_;
    connection.in.clear();
    connection.whole = 0;
    connection.asking = true;
    connection.began = Clock::now();
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: bench.test\r\n\r\n";
    if (send(connection.socket, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
      end(connection);
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
    std::array<char, 65536> buffer;
    const ssize_t count = recv(connection.socket, buffer.data(), buffer.size(), 0);
    if (count <= 0) return end(connection);
    connection.in.append(buffer.data(), static_cast<std::size_t>(count));
    if (connection.whole == 0) read_head(connection);
    if (connection.whole == 0 || connection.in.size() < connection.whole) return;
    --busy_;
    connection.asking = false;
    if (connection.good) {
      milliseconds_.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - connection.began).count());
    } else {
      ++failed_;
    }
    ask(connection);
  }

  static void read_head(Connection& connection) {
    const std::size_t end = connection.in.find("\r\n\r\n");
    if (end == std::string::npos) return;
    constexpr std::string_view kLength = "\r\ncontent-length:";
    const auto found = std::search(
        connection.in.begin(), connection.in.begin() + static_cast<std::ptrdiff_t>(end), kLength.begin(),
        kLength.end(), [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
    const std::size_t at = static_cast<std::size_t>(found - connection.in.begin());
    connection.good = connection.in.starts_with("HTTP/1.1 200") && at < end;
    connection.whole = end + 4;
    if (at < end) connection.whole += std::strtoul(connection.in.c_str() + at + kLength.size(), nullptr, 10);
  }

  const std::uint16_t port_;
  const std::size_t count_;
  const std::string path_;
  const int epoll_;
  std::vector<Connection> connections_;
  std::size_t asked_ = 0;
  std::size_t busy_ = 0;
  std::size_t failed_ = 0;
  std::vector<double> milliseconds_;
  Clock::time_point began_, ended_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::fprintf(stderr, "usage: bench_client PORT CONNECTIONS COUNT SECONDS PATH\n");
    return 2;
  }
  const auto number = [&](int i) { return std::strtoul(arguments[i], nullptr, 10); };
  Client client(static_cast<std::uint16_t>(number(1)), number(2), number(3), arguments[5]);
  if (!client.connect_all()) return 1;
  client.run(std::chrono::seconds(number(4)));
  client.print();
  return 0;
}
