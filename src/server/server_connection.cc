#include "facetheory/server/server_connection.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <sys/socket.h>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/log.h"
#include "facetheory/http/body_framing.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/message_head.h"
#include "facetheory/http/server_request.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr std::size_t kKeptInput = 1024;    // A connection that waits holds no more.
constexpr std::chrono::seconds kLinger{2};  // A client that still sends may read why it was refused.
constexpr std::uint64_t kReadWhileParting = 4 << 20;  // For so many of its bytes it is waited.
// A deadline of idle_timeout that the next sweep sets: a hit has no need to look at the clock for it.
constexpr LoopConnection::Moment kFromNextSweep = LoopConnection::Moment::min();

}  // namespace

ServerConnection::ServerConnection(std::shared_ptr<ServerLoop> loop, int socket, const tcp::endpoint& peer)
    : LoopConnection(std::move(loop)),
      peer_(peer.address().to_string()),
      stream_(loop_->limits, loop_->executor, socket, peer.protocol()) {}

// --- between requests -------------------------------------------------------------------------------------------

void ServerConnection::start() {
  stream_.socket.set_options();
  wait_for_request();
}

void ServerConnection::watch() {
  if (!stream_.socket.watch(loop_->readiness, shared_from_this())) close();
}

// False: the connection is closed.
bool ServerConnection::give_to_asio() {
  if (is_closed()) return false;
  if (!stream_.socket.give_to_asio(loop_->readiness)) close();
  return !is_closed();
}

void ServerConnection::wait_for_request() {
  if (is_closed()) return;
  phase_ = Phase::waiting;
  if (!stream_.input.empty() && take_requests(stream_.input)) return;
  // What came while an answer was being sent has not been read.
  if (stream_.socket.is_watched()) return read_requests();
  wait_readable();
}

void ServerConnection::wait_readable() {
  if (stream_.input.empty()) {
    if (loop_->draining && !stream_.socket.has_unread()) return close();
    if (stream_.input.capacity() > kKeptInput) stream_.input = {};
    stream_.read_deadline = kFromNextSweep;
  } else if (phase_ != Phase::reading_head) {
    phase_ = Phase::reading_head;
    stream_.read_deadline = steady_clock::now() + stream_.limits->header_timeout;
  }
  watch();
}

void ServerConnection::on_change(Readiness::Change change) {
  loop_->bound.check();
  reads_on_ = reads_on_ || change.hung_up || change.urgent;
  switch (phase_) {
    case Phase::waiting:
    case Phase::reading_head:
      if (change.readable || change.hung_up) read_requests(change.round);
      break;
    case Phase::sending_rest:
      // A client that sends and does not read gets no more time by that.
      if (change.writable || change.hung_up) send_rest();
      break;
    case Phase::parting:
      read_until_client_parts();
      break;
    case Phase::answering:
    case Phase::between:
    case Phase::closed:
      break;
  }
}

void ServerConnection::read_requests(std::uint64_t round) {
  const ssize_t received = ::recv(stream_.socket.native(), loop_->received.data(), loop_->received.size(), 0);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_readable();
  if (received <= 0) return close();
  const auto count = static_cast<std::size_t>(received);
  const std::string_view bytes(loop_->received.data(), count);
  bool begun = false;
  if (stream_.input.empty()) {
    begun = take_requests(bytes, round);
  } else {
    stream_.input.append(bytes);
    begun = take_requests(stream_.input, round);
  }
  if (begun) return;
  wait_readable();
  // There may be more, of which the loop is not told again. Others first.
  if (count == loop_->received.size() || reads_on_)
    asio::post(loop_->executor, [self = shared_from_this()] {
      if (!self->is_closed()) self->on_change({.readable = true});
    });
}

bool ServerConnection::take_requests(std::string_view bytes, std::uint64_t round) {
  const bool ours = bytes.data() == stream_.input.data();
  std::string_view rest = bytes;
  const auto store_rest = [&] {
    if (!ours) {
      stream_.input.assign(rest);
    } else {
      stream_.input.erase(0, stream_.input.size() - rest.size());
    }
  };
  while (!rest.empty()) {
    // Those behind the first one may have come later.
    switch (take_request(rest, std::exchange(head_seen_, 0), std::exchange(round, 0))) {
      case Taken::incomplete:
        head_seen_ = rest.size();
        store_rest();
        return false;
      case Taken::refused:
        return true;
      case Taken::answered:
        rest.remove_prefix(loop_->head.size);
        if (!is_busy() && !stream_.ends_with_answer) continue;
        store_rest();
        if (!is_busy()) part();
        return true;
      case Taken::exchange:
        rest.remove_prefix(loop_->head.size);
        store_rest();
        begin_exchange();
        return true;
    }
  }
  stream_.input.clear();
  return false;
}

ServerConnection::Taken ServerConnection::take_request(std::string_view bytes, std::size_t seen,
                                                       std::uint64_t round) {
  if (seen > 0 && bytes.size() < stream_.limits->header_bytes &&
      find_head_end(bytes, seen) == std::string_view::npos) {
    return Taken::incomplete;
  }
  const auto line = [&] { return read_request_line(bytes.substr(0, stream_.limits->header_bytes)); };
  const HeadOutcome outcome = parse_request_head(bytes, stream_.limits->header_bytes, loop_->head);
  if (outcome.state == HeadState::incomplete) return Taken::incomplete;
  phase_ = Phase::waiting;
  stream_.read_deadline = Moment::max();
  if (outcome.state == HeadState::bad) {
    refuse(outcome.status, std::string(outcome.why), line());
    return Taken::refused;
  }
  auto framing = request_framing(loop_->head);
  if (!framing) {
    refuse(framing_refusal(loop_->head), framing.error().message, line());
    return Taken::refused;
  }
  if (auto host = check_host(loop_->head); !host) {
    refuse(400, host.error().message, line());
    return Taken::refused;
  }
  if (loop_->answer_at_once && framing->kind == BodyFraming::Kind::none) {
    if (const ReadyAnswer* answer = loop_->answer_at_once(loop_->head, peer_, round)) {
      if (send_ready(*answer)) return Taken::answered;
      return Taken::refused;  // The client is gone.
    }
  }
  take_over_head(*framing);
  return Taken::exchange;
}

// False: the connection broke.
bool ServerConnection::send_ready(const ReadyAnswer& answer) {
  stream_.ends_with_answer = !keeps_alive(loop_->head) || loop_->draining;
  const std::string_view added = stream_.ends_with_answer         ? "Connection: close\r\n\r\n"
                                 : loop_->head.minor_version == 0 ? "Connection: keep-alive\r\n\r\n"
                                                                  : "";
  switch (UnsentAnswer::send(stream_.socket.native(), answer, added, unsent_)) {
    case Sent::all:
      return true;
    case Sent::failed:
      close();
      return false;
    case Sent::some:
      break;
  }
  // A client that is slow to read.
  phase_ = Phase::sending_rest;
  stream_.give_time_to_read();
  watch();
  return true;
}

void ServerConnection::send_rest() {
  switch (unsent_->go_on(stream_.socket.native())) {
    case Sent::all:
      stream_.write_deadline = Moment::max();
      unsent_.reset();
      return after_exchange();
    case Sent::failed:
      return close();
    case Sent::some:
      stream_.give_time_to_read();
  }
}

void ServerConnection::after_exchange() {
  if (stream_.ends_with_answer || is_closed()) return part();
  phase_ = Phase::between;
  exchange_.reset();  // What waits owns as little as can be.
  // The loop goes on from its queue, not from here: a client may send thousands of requests at once.
  asio::post(loop_->executor, [self = shared_from_this()] { self->wait_for_request(); });
}

void ServerConnection::take_over_head(BodyFraming framing) {
  stream_.ends_with_answer = !keeps_alive(loop_->head);
  exchange_.emplace(*this, *loop_, stream_, loop_->head, framing, peer_);
}

void ServerConnection::begin_exchange() {
  phase_ = Phase::answering;
  const ServerRequest& request = exchange_->request();
  const RequestLine line{request.method, request.target};
  const auto expected = combined(request.headers, "expect");
  if (expected && !same_text(*expected, "100-continue"))
    return refuse(417, "only 100-continue can be expected", line);
  if (stream_.limits->body_bytes && exchange_->body_length().value_or(0) > *stream_.limits->body_bytes)
    return refuse(413, "the body is larger than this server takes", line);
  if (!give_to_asio()) return;
  asio::co_spawn(loop_->executor, run(shared_from_this()),
                 [self = shared_from_this()](std::exception_ptr) { self->after_exchange(); });
}

void ServerConnection::refuse(int status, std::string why, const RequestLine& line) {
  ServerResponse response = Http1Exchange::own_answer(*loop_, status, why);
  if (loop_->refused) loop_->refused({status, why, peer_, line, response.body.size()});
  phase_ = Phase::answering;
  stream_.ends_with_answer = true;
  // What is answered is not the request: it may mean anything.
  const int minor_version = exchange_ ? exchange_->request().minor_version : 1;
  exchange_.emplace(*this, *loop_, stream_, minor_version);
  if (!give_to_asio()) return;
  asio::co_spawn(loop_->executor, answer_and_close(shared_from_this(), std::move(response)),
                 [self = shared_from_this()](std::exception_ptr) { self->part(); });
}

Task<void> ServerConnection::answer_and_close(std::shared_ptr<ServerConnection> self,
                                              ServerResponse response) {
  [[maybe_unused]] auto sent = co_await self->exchange_->respond(std::move(response));
}

Task<void> ServerConnection::run(std::shared_ptr<ServerConnection> self) {
  try {
    co_await self->exchange_->answer();
  } catch (const std::exception& thrown) {
    // A handler that was cancelled has nobody left to answer.
    self->stream_.ends_with_answer = true;
    if (!self->is_closed())
      log(LogLevel::error, std::string("a connection ended by an exception: ") + thrown.what());
  }
}

// --- the end ----------------------------------------------------------------------------------------------------

void ServerConnection::check_deadlines(Moment now) {
  if (need_not_wait()) return close();
  if (phase_ == Phase::answering && stream_.socket.is_asios()) exchange_->tell_if_client_left();
  if (is_closed()) return;
  if (stream_.read_deadline == kFromNextSweep) stream_.read_deadline = now + stream_.limits->idle_timeout;
  if (now < stream_.read_deadline && now < stream_.write_deadline) return;
  // A client that takes its answer slowly takes it all the same; the socket tells only when much of it is gone.
  if (now < stream_.read_deadline && stream_.socket.unread_by_client() < stream_.unread)
    return stream_.give_time_to_read();
  const auto self = shared_from_this();  // Only the loop's Readiness may own this.
  stream_.read_deadline = Moment::max();
  stream_.write_deadline = Moment::max();
  if (phase_ == Phase::answering && stream_.socket.is_asios()) {
    exchange_->on_deadline();
  } else if (phase_ == Phase::reading_head) {
    refuse(408, "the header of the request did not come in time", read_request_line(stream_.input));
  } else {
    close();
  }
}

// Closes in a way that lets a client who still sends read the answer (RFC 9112, 9.6).
void ServerConnection::part() {
  if (is_closed()) return;
  if (!stream_.socket.shut_down_sending()) return close();
  phase_ = Phase::parting;
  stream_.input = {};
  stream_.read_deadline = steady_clock::now() + kLinger;
  if (need_not_wait()) return close();
  const bool told = !stream_.socket.is_watched();  // watch() tells then what is there already.
  watch();
  if (!told) read_until_client_parts();
}

// A server that ends lets the client have what was said, and no more.
bool ServerConnection::need_not_wait() const {
  return phase_ == Phase::parting && loop_->draining && stream_.socket.unread_by_client() == 0 &&
         !stream_.socket.has_unread();
}

void ServerConnection::read_until_client_parts() {
  while (skipped_ < kReadWhileParting) {
    const ssize_t count = ::recv(stream_.socket.native(), loop_->received.data(), loop_->received.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) break;
    skipped_ += static_cast<std::uint64_t>(count);
  }
  close();
}

void ServerConnection::close_if_idle() {
  if (!is_busy() && stream_.input.empty() && !stream_.socket.has_unread()) close();
}

void ServerConnection::close() {
  loop_->bound.check();
  if (is_closed()) return;
  phase_ = Phase::closed;
  const auto self = shared_from_this();  // Likewise.
  stream_.read_deadline = Moment::max();
  stream_.write_deadline = Moment::max();
  stream_.socket.close(loop_->readiness);
  if (exchange_) exchange_->on_close();
}

}  // namespace facetheory
