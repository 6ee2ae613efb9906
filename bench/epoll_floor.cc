// epoll_floor: what an HTTP request costs when nothing is done besides the system calls that nobody can avoid. The
// floor that gateway_bench holds every server against; not a server to use.
//
//   epoll_floor PORT PATH=FILE...     answers a GET of PATH with the bytes of FILE, head and all
//
// One thread, one epoll. For each request: one recv, a search for the end of the head, a comparison of the path, one
// send. Connections stay open, requests may be split or pipelined, answers may be larger than the socket takes at once.
// Headers are not looked at, and a request must have no body. Says "ready" on stdout when it listens.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "epoll_listener.h"

namespace {

constexpr std::size_t kHeadLimit = 8192;

struct Page {
  std::string path;
  std::string answer;
};

struct Connection {
  std::array<char, kHeadLimit> in;
  std::size_t received = 0;
  const Page* answering = nullptr;
  std::size_t sent = 0;
  bool waits_to_send = false;
};

class Server {
 public:
  Server(std::uint16_t port, std::vector<Page> pages)
      : pages_(std::move(pages)), listener_("epoll_floor", port) {
    // src/server/http_server.cc does the same, and says why.
    setsockopt(listener_.native(), IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  }

  [[noreturn]] void run() {
    for (;;) {
      listener_.wait(
          -1, [this] { accept_all(); },
          [this](int socket) {
            if (serve(socket, *connections_[static_cast<std::size_t>(socket)])) return;
            close(socket);
            connections_[static_cast<std::size_t>(socket)].reset();
          });
    }
  }

 private:
  void accept_all() {
    for (int socket = 0; (socket = listener_.accept()) >= 0;) {
      const auto index = static_cast<std::size_t>(socket);
      if (connections_.size() <= index) connections_.resize(index + 1);
      connections_[index] = std::make_unique<Connection>();
      listener_.watch(socket, EPOLL_CTL_ADD, EPOLLIN);
    }
  }

  // Goes on with a connection that is readable or, while an answer waits, writable. False: it is over.
  bool serve(int socket, Connection& connection) const {
    if (!connection.answering) {
      const ssize_t count =
          recv(socket, connection.in.data() + connection.received, kHeadLimit - connection.received, 0);
      if (count <= 0) return count < 0 && errno == EAGAIN;
      connection.received += static_cast<std::size_t>(count);
    }
    while (connection.answering || next_request(connection)) {
      const std::string& answer = connection.answering->answer;
      const ssize_t count =
          send(socket, answer.data() + connection.sent, answer.size() - connection.sent, MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN) return false;
      if (count > 0) connection.sent += static_cast<std::size_t>(count);
      const bool all = connection.sent == answer.size();
      if (all == connection.waits_to_send) {
        connection.waits_to_send = !all;
        listener_.watch(socket, EPOLL_CTL_MOD, all ? EPOLLIN : EPOLLOUT);
      }
      if (!all) return true;
      connection.answering = nullptr;
    }
    return connection.received < kHeadLimit;
  }

  // Takes one whole head off what was received.
  bool next_request(Connection& connection) const {
    const std::string_view in(connection.in.data(), connection.received);
    const std::size_t end = in.find("\r\n\r\n");
    if (end == std::string_view::npos) return false;
    const std::size_t path = in.find(' ') + 1;
    connection.answering = &find(in.substr(path, in.find(' ', path) - path));
    connection.sent = 0;
    connection.received -= end + 4;
    std::memmove(connection.in.data(), connection.in.data() + end + 4, connection.received);
    return true;
  }

  const Page& find(std::string_view path) const {
    for (const Page& page : pages_) {
      if (page.path == path) return page;
    }
    return unknown_;
  }

  const std::vector<Page> pages_;
  const EpollListener listener_;
  const Page unknown_{.path = "", .answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"};
  std::vector<std::unique_ptr<Connection>> connections_;  // By socket.
};

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments, arguments + count);
  std::vector<Page> pages;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    std::ifstream file(words[i].substr(equals + 1), std::ios::binary);
    pages.push_back(
        {.path = words[i].substr(0, equals), .answer = {std::istreambuf_iterator<char>(file), {}}});
    if (equals == std::string::npos || pages.back().answer.empty()) {
      std::fprintf(stderr, "epoll_floor: %s is not PATH=FILE with a file that can be read\n",
                   words[i].c_str());
      return 2;
    }
  }
  if (pages.empty()) {
    std::fprintf(stderr, "usage: epoll_floor PORT PATH=FILE...\n");
    return 2;
  }
  Server server(static_cast<std::uint16_t>(std::strtoul(words[1].c_str(), nullptr, 10)), std::move(pages));
  std::puts("ready");
  std::fflush(stdout);
  server.run();
}
