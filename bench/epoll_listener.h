// A listening socket on loopback and one epoll for it and its connections: what the servers of a benchmark begin with.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

class EpollListener {
 public:
  // Ends the program, saying why, when the port cannot be had.
  EpollListener(const char* program, std::uint16_t port)
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)), epoll_(epoll_create1(0)) {
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, SOMAXCONN) != 0) {
      std::perror((std::string(program) + ": cannot listen").c_str());
      std::exit(1);
    }
    watch(listener_, EPOLL_CTL_ADD, EPOLLIN);
  }

  // Accepted sockets inherit what is set here.
  int native() const { return listener_; }

  // A connection that waits, whose answers are sent at once, or -1.
  int accept() const {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
    const int on = 1;
    if (socket >= 0) setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
  }

  void watch(int socket, int operation, std::uint32_t events) const {
    epoll_event event{.events = events, .data = {.fd = socket}};
    epoll_ctl(epoll_, operation, socket, &event);
  }

  // Waits, and calls one of the two for each socket that something has happened to.
  template <typename OnConnection, typename OnReady>
  void wait(int milliseconds, OnConnection on_connection, OnReady on_ready) const {
    std::array<epoll_event, 256> events;
    const int count = epoll_wait(epoll_, events.data(), events.size(), milliseconds);
    for (int i = 0; i < count; ++i) {
      const int socket = events[static_cast<std::size_t>(i)].data.fd;
      if (socket == listener_) {
        on_connection();
      } else {
        on_ready(socket);
      }
    }
  }

 private:
  const int listener_;
  const int epoll_;
};
