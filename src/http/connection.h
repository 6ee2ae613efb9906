// One TCP connection to an origin, with TLS on top where the origin wants it, its read buffer and its patience. For .cc
// files only. Everything happens on the pool's executor; one read and one write may be in flight at the same time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
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
  std::optional<std::chrono::milliseconds> silence = {};  // Without a byte in either direction.
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

  Connection(const boost::asio::any_io_executor& executor, boost::asio::ssl::context* tls);

  // Whoever awaits these keeps the connection alive meanwhile, by a shared_ptr.
  Task<boost::system::error_code> connect(std::vector<boost::asio::ip::tcp::endpoint> endpoints,
                                          Moment deadline);
  Task<boost::system::error_code> handshake(Moment deadline);
  // Reads what is there, at least one byte, behind what is buffered. asio::error::eof: the peer has ended in order.
  Task<boost::system::error_code> fill(Patience patience);
  // Writes all of the pieces.
  Task<Sent> write(Pieces pieces, Patience patience);

  // What was read and not yet consumed; stays where it is until the next fill().
  std::string_view buffered() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t bytes) { begin_ += bytes; }

  // While the peer awaits something from us its silence is no fault: reads have no limit of silence then, unless a write
  // is in flight.
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
  boost::asio::ip::tcp::socket& socket() { return secure_ ? secure_->next_layer() : *plain_; }
  // When what is in flight will have taken too long, as far as is known now.
  Moment due() const;
  void watch();
  void make_room();
  // What the operation ended with, said in our words.
  boost::system::error_code told(boost::system::error_code failed) const;

  std::optional<boost::asio::ip::tcp::socket> plain_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket>> secure_;

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  // The watchdog sleeps until the earliest moment at which something may be due and looks again then, so that an
  // operation costs it two assignments and no timer.
  boost::asio::steady_timer watchdog_;
  Moment watched_until_ = Moment::max();  // max: it sleeps.
  std::optional<Patience> reading_;       // Of what is in flight.
  std::optional<Patience> writing_;
  Moment last_progress_;
  bool our_turn_ = false;
  bool timed_out_ = false;
  Moment idle_since_;
};

}  // namespace facetheory
