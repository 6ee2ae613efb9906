#include "facetheory/server/client_socket.h"

#include <utility>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace facetheory {

using boost::asio::ip::tcp;
using boost::system::error_code;

ClientSocket::ClientSocket(const boost::asio::any_io_executor& executor, int native, tcp protocol)
    : native_(native), protocol_(protocol), socket_(executor) {}

ClientSocket::~ClientSocket() {
  if (!closed_ && !socket_.is_open()) ::close(native_);
}

void ClientSocket::set_options() const {
  const int on = 1;
  setsockopt(native_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(native_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(native_, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
}

bool ClientSocket::watch(const std::weak_ptr<Readiness>& readiness, std::shared_ptr<Readiness::Owner> owner) {
  if (watched_) return true;
  error_code ignored;
  if (socket_.is_open()) socket_.release(ignored);
  const auto watcher = readiness.lock();
  watched_ = watcher && watcher->add(native_, std::move(owner));
  return watched_;
}

void ClientSocket::stop_watching(const std::weak_ptr<Readiness>& readiness) {
  if (const auto watcher = readiness.lock(); watcher && watched_) watcher->remove(native_);
  watched_ = false;
}

bool ClientSocket::give_to_asio(const std::weak_ptr<Readiness>& readiness) {
  if (socket_.is_open()) return true;
  stop_watching(readiness);
  error_code error;
  socket_.assign(protocol_, native_, error);
  if (!error) socket_.non_blocking(true, error);
  return !error;
}

void ClientSocket::close(const std::weak_ptr<Readiness>& readiness) {
  if (closed_) return;
  closed_ = true;
  if (socket_.is_open()) {
    error_code ignored;
    socket_.close(ignored);
  } else {
    stop_watching(readiness);
    ::close(native_);
  }
}

int ClientSocket::unread_by_client() const {
  int count = 0;
  return ioctl(native_, SIOCOUTQ, &count) == 0 ? count : 0;
}

bool ClientSocket::has_unread() const {
  int count = 0;
  return ioctl(native_, FIONREAD, &count) == 0 && count > 0;
}

bool ClientSocket::shut_down_sending() const {
  return ::shutdown(native_, SHUT_WR) == 0;
}

void ClientSocket::reset_when_closed() const {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(native_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

short ClientSocket::poll_now(short events) const {
  pollfd state{native_, events, 0};
  return ::poll(&state, 1, 0) > 0 ? state.revents : short{0};
}

std::string ClientSocket::own_address() const {
  tcp::endpoint own;
  auto size = static_cast<socklen_t>(own.capacity());
  if (::getsockname(native_, own.data(), &size) != 0) return {};
  own.resize(size);
  const std::string address = own.address().to_string();
  return (own.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(own.port());
}

}  // namespace facetheory
