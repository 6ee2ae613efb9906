#include "facetheory/server/readiness.h"

#include <array>
#include <cerrno>
#include <utility>

#include <sys/epoll.h>

namespace facetheory {
namespace {

namespace asio = boost::asio;

// A busy server finds the next ones ready when it has told the owners of these, and asking is cheaper than having Asio
// wait. But whatever else runs on the thread has its turn after a tenth of a millisecond or two: an answer that is no
// hit takes several.
constexpr int kMostAtOnce = 16;

}  // namespace

Result<std::shared_ptr<Readiness>> Readiness::create(const LoopBound& loop) {
  std::shared_ptr<Readiness> made(new Readiness(loop));
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  boost::system::error_code error;
  if (epoll < 0) {
    error.assign(errno, boost::system::system_category());
  } else {
    made->epoll_.assign(epoll, error);
  }
  if (error) return Error{ErrorCode::unavailable, "cannot wait for connections: " + error.message()};
  return made;
}

void Readiness::start() {
  wait();
}

void Readiness::close() {
  boost::system::error_code ignored;
  epoll_.close(ignored);
  const auto owners = std::exchange(owners_, {});
}

bool Readiness::add(int socket, std::shared_ptr<Owner> owner) {
  loop_.check();
  const auto place = static_cast<std::size_t>(socket);
  if (owners_.size() <= place) owners_.resize(place + 1);
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET, .data = {.fd = socket}};
  if (epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, socket, &event) != 0) return false;
  owners_[place] = std::move(owner);
  return true;
}

void Readiness::remove(int socket) {
  loop_.check_until_ended();
  epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, socket, nullptr);
  const auto place = static_cast<std::size_t>(socket);
  if (place < owners_.size()) const auto owner = std::exchange(owners_[place], nullptr);
}

void Readiness::wait() {
  epoll_.async_wait(asio::posix::stream_descriptor::wait_read,
                    [self = shared_from_this()](boost::system::error_code error) {
                      if (error || !self->epoll_.is_open()) return;
                      self->tell_owners();
                      if (self->epoll_.is_open()) self->wait();
                    });
}

void Readiness::tell_owners() {
  std::array<epoll_event, kMostAtOnce> changes;
  for (int seen = 0; seen < kMostAtOnce;) {
    const int count = epoll_wait(epoll_.native_handle(), changes.data(), kMostAtOnce, 0);
    if (count <= 0) return;
    seen += count;
    ++rounds_;
    for (int change = 0; change < count; ++change) {
      const epoll_event& event = changes[static_cast<std::size_t>(change)];
      // Somebody before it may have removed it.
      const auto place = static_cast<std::size_t>(event.data.fd);
      if (place >= owners_.size() || !owners_[place]) continue;
      const std::shared_ptr<Owner> owner = owners_[place];
      owner->on_change({.readable = (event.events & EPOLLIN) != 0,
                        .writable = (event.events & EPOLLOUT) != 0,
                        .hung_up = (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
                        .urgent = (event.events & EPOLLPRI) != 0,
                        .round = rounds_});
    }
  }
}

}  // namespace facetheory
