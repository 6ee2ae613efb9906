#include "tests/support/raw_client.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "facetheory/base/uninterrupted.h"

namespace facetheory::test {

RawClient::RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  const timeval limit{5, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect to port " + std::to_string(port));
}

RawClient::~RawClient() {
  if (socket_ >= 0) ::close(socket_);
}

void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // The server has closed it; what it said can still be read.
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void RawClient::send_urgent(std::string_view bytes) {
  ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_OOB);
}

void RawClient::shut_down_sending() {
  ::shutdown(socket_, SHUT_WR);
}

void RawClient::reset() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(std::exchange(socket_, -1));
}

std::string RawClient::receive() {
  std::array<char, 16384> some{};
  const auto count = uninterrupted([&] { return ::recv(socket_, some.data(), some.size(), 0); });
  if (count > 0) return std::string(some.data(), static_cast<std::size_t>(count));
  was_reset_ = count < 0 && errno == ECONNRESET;
  if (count == 0 || was_reset_) return {};
  return std::string("(") + std::strerror(errno) + ")";
}

std::string RawClient::rest() {
  std::string all = std::exchange(ahead_, {});
  for (;;) {
    const std::string more = receive();
    all += more;
    if (more.empty() || more.front() == '(') return all;
  }
}

std::string RawClient::until(std::string_view text) {
  std::string all = std::exchange(ahead_, {});
  while (all.find(text) == std::string::npos) {
    const std::string more = receive();
    if (more.empty()) return all + "(closed)";
    all += more;
    if (more.front() == '(') return all;
  }
  return all;
}

std::string RawClient::exactly(std::size_t count) {
  std::string all = std::exchange(ahead_, {});
  while (all.size() < count) {
    const std::string more = receive();
    if (more.empty()) return all + "(closed)";
    all += more;
    if (more.front() == '(') return all;
  }
  ahead_ = all.substr(count);
  return all.substr(0, count);
}

}  // namespace facetheory::test
