#include "facetheory/http/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <sys/socket.h>

#include "facetheory/base/mistake.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kSmallBuffer = 16 << 10;
constexpr std::size_t kLargeBuffer = 64 << 10;  // Bodies get this one; a larger one gains nothing.

}  // namespace

error_code timeout_error() {
  // Nothing that a socket reports by itself.
  return make_error_code(boost::system::errc::stream_timeout);
}

void throw_if_cancelled(const error_code& failed) {
  if (failed == asio::error::operation_aborted) throw boost::system::system_error(failed);
}

Connection::Connection(const asio::any_io_executor& executor, asio::ssl::context* tls) : watchdog_(executor) {
  if (tls != nullptr) {
    secure_.emplace(executor, *tls);
  } else {
    plain_.emplace(executor);
  }
}

void Connection::lend(Borrower to) {
  Borrower nobody = 0;
  if (to == 0 || !lent_to_.compare_exchange_strong(nobody, to)) lent_to_another();
}

void Connection::take_back(Borrower from) {
  if (from == 0 || !lent_to_.compare_exchange_strong(from, 0)) lent_to_another();
}

void Connection::lent_to_another() {
  end_program("a connection to an origin or a store was touched by an exchange that does not have it");
}

// Does not use asio::async_connect, which says operation_aborted where no socket can be had, as if the call had been
// cancelled.
Task<error_code> Connection::connect(std::vector<tcp::endpoint> endpoints, Moment deadline) {
  error_code failed = asio::error::not_found;
  writing_ = Patience{deadline, {}};
  watch();
  for (const tcp::endpoint& endpoint : endpoints) {
    error_code ignored;
    socket().close(ignored);
    socket().open(endpoint.protocol(), failed);
    if (failed) continue;
    co_await socket().async_connect(endpoint, asio::redirect_error(asio::use_awaitable, failed));
    if (!failed || failed == asio::error::operation_aborted || timed_out_) break;
  }
  writing_.reset();
  if (!failed) {
    error_code ignored;  // Calls without TCP_NODELAY are slower, not wrong.
    socket().set_option(tcp::no_delay(true), ignored);
  }
  co_return told(failed);
}

Task<error_code> Connection::handshake(Moment deadline) {
  error_code failed;
  writing_ = Patience{deadline, {}};
  watch();
  co_await secure_->async_handshake(asio::ssl::stream_base::client,
                                    asio::redirect_error(asio::use_awaitable, failed));
  writing_.reset();
  co_return told(failed);
}

Task<error_code> Connection::fill(Borrower by, Patience patience) {
  check_lent_to(by);
  make_room();
  const auto room = asio::buffer(buffer_.get() + end_, capacity_ - end_);
  error_code failed;
  std::size_t got = 0;
  reading_ = patience;
  last_progress_ = std::chrono::steady_clock::now();
  watch();
  if (secure_) {
    got = co_await secure_->async_read_some(room, asio::redirect_error(asio::use_awaitable, failed));
  } else {
    got = co_await plain_->async_read_some(room, asio::redirect_error(asio::use_awaitable, failed));
  }
  check_lent_to(by);
  reading_.reset();
  last_progress_ = std::chrono::steady_clock::now();
  end_ += got;
  co_return told(failed);
}

Task<Connection::Sent> Connection::write(Borrower by, Pieces pieces, Patience patience) {
  check_lent_to(by);
  Sent sent;
  std::size_t left = asio::buffer_size(pieces);
  std::string joined;
  if (secure_ && left <= kSmallBuffer) {  // One record instead of three.
    joined.reserve(left);
    for (const asio::const_buffer& piece : pieces)
      joined.append(static_cast<const char*>(piece.data()), piece.size());
    pieces = {asio::buffer(joined)};
  }
  writing_ = patience;
  last_progress_ = std::chrono::steady_clock::now();
  watch();
  while (left > 0 && !sent.failed) {
    std::size_t taken = 0;
    if (secure_) {
      taken =
          co_await secure_->async_write_some(pieces, asio::redirect_error(asio::use_awaitable, sent.failed));
    } else {
      taken =
          co_await plain_->async_write_some(pieces, asio::redirect_error(asio::use_awaitable, sent.failed));
    }
    last_progress_ = std::chrono::steady_clock::now();
    sent.bytes += taken;
    left -= taken;
    for (asio::const_buffer& piece : pieces) {
      const std::size_t of_this = std::min(taken, piece.size());
      piece += of_this;
      taken -= of_this;
    }
  }
  writing_.reset();
  sent.failed = told(sent.failed);
  co_return sent;
}

void Connection::set_our_turn(bool ours) {
  if (our_turn_ == ours) return;
  our_turn_ = ours;
  last_progress_ = std::chrono::steady_clock::now();
  watch();
}

void Connection::close() {
  error_code ignored;
  socket().close(ignored);
}

error_code Connection::shutdown_write() {
  error_code failed;
  if (plain_) plain_->shutdown(tcp::socket::shutdown_send, failed);
  return failed;
}

bool Connection::still_usable() {
  char byte = 0;
  const auto got = ::recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void Connection::rest(Moment now) {
  idle_since_ = now;
  our_turn_ = false;
  begin_ = end_ = 0;
  if (capacity_ > kSmallBuffer) {
    buffer_.reset();
    capacity_ = 0;
  }
}

Moment Connection::due() const {
  Moment due = Moment::max();
  const auto limit = [&](const Patience& patience, bool silence_counts) {
    due = std::min(due, patience.deadline);
    if (patience.silence && silence_counts) due = std::min(due, last_progress_ + *patience.silence);
  };
  if (reading_) limit(*reading_, !our_turn_ || writing_);
  if (writing_) limit(*writing_, true);
  return due;
}

void Connection::watch() {
  const Moment next = due();
  if (next >= watched_until_) return;
  watched_until_ = next;
  watchdog_.expires_at(next);
  watchdog_.async_wait([weak = weak_from_this()](const error_code& cancelled) {
    const std::shared_ptr<Connection> connection = weak.lock();
    if (cancelled || !connection) return;
    connection->watched_until_ = Moment::max();
    if (connection->due() > std::chrono::steady_clock::now()) return connection->watch();
    connection->timed_out_ = true;
    connection->close();
  });
}

void Connection::make_room() {
  if (begin_ == end_) {
    const bool was_filled = capacity_ > 0 && end_ == capacity_;
    begin_ = end_ = 0;
    if (capacity_ == 0 || (was_filled && capacity_ < kLargeBuffer)) {
      capacity_ = capacity_ == 0 ? kSmallBuffer : kLargeBuffer;
      buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
    }
    return;
  }
  if (end_ < capacity_) return;
  const std::size_t kept = end_ - begin_;
  if (begin_ >= capacity_ / 2) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, kept);
  } else {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_ * 2);
    std::memcpy(larger.get(), buffer_.get() + begin_, kept);
    buffer_ = std::move(larger);
    capacity_ *= 2;
  }
  begin_ = 0;
  end_ = kept;
}

error_code Connection::told(error_code failed) const {
  return failed && timed_out_ ? timeout_error() : failed;
}

}  // namespace facetheory
