// One TCP connection to an origin, with TLS on top where the origin wants it, its read buffer and its patience. For .cc
// files only. Everything happens on the pool's executor; one read and one write may be in flight at the same time.
//
// HTTP/1.1 does not number its answers: whoever reads a connection takes what comes for its own. So a connection is
// lent to one exchange at a time, by number, and every byte goes to the exchange that says that number. The number is
// taken back only from an exchange whose request and answer have both ended in order. Whatever mistake is made
// elsewhere, in the pool's lists or by two threads at once, the program ends where a second exchange would touch the
// connection. The class has more than 25 members because reads, writes and the watchdog share one patience, and each of
// them must be checked for the number.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>

#include "facetheory/base/task.h"

namespace facetheory {

using Moment = std::chrono::steady_clock::time_point;

// How long an operation may take. A limit that has passed closes the connection, and the operation ends with
// timeout_error().
struct Patience {
  Moment deadline = Moment::max();
  std::optional<std::chrono::milliseconds> silence = {};  // No byte moves for that long.
};

boost::system::error_code timeout_error();

// Cancelled operations end the call by exception, as Asio's own do; everything else is a value.
void throw_if_cancelled(const boost::system::error_code& failed);

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Sent {
    boost::system::error_code failed;
    std::size_t bytes = 0;
  };
  using Pieces = std::array<boost::asio::const_buffer, 3>;
  using Borrower = std::uint64_t;  // The number of an exchange; none has 0.

  Connection(const boost::asio::any_io_executor& executor, boost::asio::ssl::context* tls);

  // Nobody has it before, and nobody after. Unless that is so, these end the program.
  void lend(Borrower to);
  void take_back(Borrower from);

  // Whoever awaits these keeps the connection alive meanwhile, by a shared_ptr.
  Task<boost::system::error_code> connect(std::vector<boost::asio::ip::tcp::endpoint> endpoints,
                                          Moment deadline);
  Task<boost::system::error_code> handshake(Moment deadline);
  // Reads what is there, at least one byte, behind what is buffered. asio::error::eof: the peer has ended in order.
  Task<boost::system::error_code> fill(Borrower by, Patience patience);
  // Writes all of the pieces.
  Task<Sent> write(Borrower by, Pieces pieces, Patience patience);

  // What was read and not yet consumed; stays where it is until the next fill().
  std::string_view buffered(Borrower by) const {
    check_lent_to(by);
    return {buffer_.get() + begin_, end_ - begin_};
  }
  void consume(std::size_t bytes) { begin_ += bytes; }

  // While the peer awaits something from us its silence is no fault: reads have no limit of silence then, unless a
  // write is in flight.
  void set_our_turn(bool ours);

  void close();
  boost::system::error_code shutdown_write();
  bool is_tls() const { return secure_.has_value(); }
  SSL* native_tls() { return secure_->native_handle(); }

  // False once the peer has closed it, or sent what nobody asked for.
  bool still_usable();
  // Frees a buffer that has grown.
  void rest(Moment now);
  Moment idle_since() const { return idle_since_; }

 private:
  void check_lent_to(Borrower by) const {
    if (by == 0 || lent_to_.load(std::memory_order_relaxed) != by) [[unlikely]]
      lent_to_another();
  }
  [[noreturn]] static void lent_to_another();
  boost::asio::ip::tcp::socket& socket() { return secure_ ? secure_->next_layer() : *plain_; }
  // The moment at which what is in flight will have taken too long, as far as is known now.
  Moment due() const;
  void watch();
  void make_room();
  // What the operation ended with, said in our words.
  boost::system::error_code told(boost::system::error_code failed) const;

  std::optional<boost::asio::ip::tcp::socket> plain_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket>> secure_;

  std::atomic<Borrower> lent_to_ = 0;  // Atomic, so that it can be trusted whatever thread asks.

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  // The watchdog sleeps until the earliest moment at which something may be due and looks again then, so that an
  // operation costs it two assignments and no timer.
  boost::asio::steady_timer watchdog_;
  Moment watched_until_ = Moment::max();  // max: it sleeps.
  std::optional<Patience> reading_;       // Both are there while their operation is in flight.
  std::optional<Patience> writing_;
  Moment last_progress_;
  bool our_turn_ = false;
  bool timed_out_ = false;
  Moment idle_since_;
};

}  // namespace facetheory
