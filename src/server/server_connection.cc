#include "facetheory/server/server_connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <poll.h>
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

constexpr std::size_t kKeptInput = 1024;           // A connection that waits holds no more.
constexpr std::size_t kReceive = 64 << 10;         // So many bytes of a body are taken at once.
constexpr std::uint64_t kSkippedBody = 256 << 10;  // A connection with more to skip is closed.
constexpr std::chrono::seconds kLinger{2};         // A client that still sends may read why it was refused.
constexpr std::chrono::milliseconds kSkipPatience{500};
// A deadline of idle_timeout that the next sweep sets: a hit has no need to look at the clock for it.
constexpr LoopConnection::Moment kFromNextSweep = LoopConnection::Moment::min();

Error client_gone(const char* what) {
  return {ErrorCode::unavailable, what};
}

}  // namespace

ServerConnection::ServerConnection(std::shared_ptr<ServerLoop> loop, int socket, const tcp::endpoint& peer)
    : LoopConnection(std::move(loop)),
      limits_(loop_->limits),
      peer_(peer.address().to_string()),
      socket_(loop_->executor, socket, peer.protocol()),
      closing_(loop_->executor, Moment::max()) {}

// --- between requests -------------------------------------------------------------------------------------------

void ServerConnection::start() {
  socket_.set_options();
  wait_for_request();
}

void ServerConnection::watch() {
  if (!socket_.watch(loop_->readiness, shared_from_this())) close();
}

// False: the connection is closed.
bool ServerConnection::give_to_asio() {
  if (is_closed()) return false;
  if (!socket_.give_to_asio(loop_->readiness)) close();
  return !is_closed();
}

void ServerConnection::wait_for_request() {
  if (is_closed()) return;
  phase_ = Phase::waiting;
  if (!input_.empty() && take_requests(input_)) return;
  // What came while an answer was being sent has not been read.
  if (socket_.is_watched()) return read_requests();
  wait_readable();
}

void ServerConnection::wait_readable() {
  if (input_.empty()) {
    if (loop_->draining && !socket_.has_unread()) return close();
    if (input_.capacity() > kKeptInput) input_ = {};
    read_deadline_ = kFromNextSweep;
  } else if (phase_ != Phase::reading_head) {
    phase_ = Phase::reading_head;
    read_deadline_ = steady_clock::now() + limits_->header_timeout;
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
  const ssize_t received = ::recv(socket_.native(), loop_->received.data(), loop_->received.size(), 0);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_readable();
  if (received <= 0) return close();
  const auto count = static_cast<std::size_t>(received);
  const std::string_view bytes(loop_->received.data(), count);
  bool begun = false;
  if (input_.empty()) {
    begun = take_requests(bytes, round);
  } else {
    input_.append(bytes);
    begun = take_requests(input_, round);
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
  const bool ours = bytes.data() == input_.data();
  std::string_view rest = bytes;
  const auto store_rest = [&] {
    if (!ours) {
      input_.assign(rest);
    } else {
      input_.erase(0, input_.size() - rest.size());
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
        if (!is_busy() && !close_after_) continue;
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
  input_.clear();
  return false;
}

ServerConnection::Taken ServerConnection::take_request(std::string_view bytes, std::size_t seen,
                                                       std::uint64_t round) {
  if (seen > 0 && bytes.size() < limits_->header_bytes &&
      find_head_end(bytes, seen) == std::string_view::npos) {
    return Taken::incomplete;
  }
  const auto line = [&] { return read_request_line(bytes.substr(0, limits_->header_bytes)); };
  const HeadOutcome outcome = parse_request_head(bytes, limits_->header_bytes, loop_->head);
  if (outcome.state == HeadState::incomplete) return Taken::incomplete;
  phase_ = Phase::waiting;
  read_deadline_ = Moment::max();
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
  close_after_ = !keeps_alive(loop_->head) || loop_->draining;
  const std::string_view added = close_after_                     ? "Connection: close\r\n\r\n"
                                 : loop_->head.minor_version == 0 ? "Connection: keep-alive\r\n\r\n"
                                                                  : "";
  switch (UnsentAnswer::send(socket_.native(), answer, added, unsent_)) {
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
  give_time_to_read();
  watch();
  return true;
}

void ServerConnection::give_time_to_read() {
  unread_ = socket_.unread_by_client();
  write_deadline_ = steady_clock::now() + limits_->write_timeout;
}

void ServerConnection::send_rest() {
  switch (unsent_->go_on(socket_.native())) {
    case Sent::all:
      write_deadline_ = Moment::max();
      unsent_.reset();
      return after_exchange();
    case Sent::failed:
      return close();
    case Sent::some:
      give_time_to_read();
  }
}

void ServerConnection::after_exchange() {
  if (close_after_ || is_closed()) return part();
  phase_ = Phase::between;
  // What waits owns as little as can be.
  piece_ = {};
  request_ = {};
  // The loop goes on from its queue, not from here: a client may send thousands of requests at once.
  asio::post(loop_->executor, [self = shared_from_this()] { self->wait_for_request(); });
}

void ServerConnection::take_over_head(BodyFraming framing) {
  const RequestHead& head = loop_->head;
  request_ = request_of(head, peer_);
  if (head.minor_version == 0 && find_field(head.fields, "host") == nullptr)
    request_.own_address = socket_.own_address();
  close_after_ = !keeps_alive(head);
  const bool continue_expected = find_field(head.fields, "expect") != nullptr && head.minor_version >= 1;
  body_ = RequestBody(framing, continue_expected, limits_->body_bytes);
  answer_ = AnswerWriter(head.method == "HEAD", head.minor_version);
  leaving_ = std::stop_source(std::nostopstate);
  status_ = 0;
  bytes_sent_ = 0;
}

void ServerConnection::begin_exchange() {
  phase_ = Phase::answering;
  const RequestLine line{request_.method, request_.target};
  const auto expected = combined(request_.headers, "expect");
  if (expected && !same_text(*expected, "100-continue"))
    return refuse(417, "only 100-continue can be expected", line);
  if (limits_->body_bytes && body_.length().value_or(0) > *limits_->body_bytes)
    return refuse(413, "the body is larger than this server takes", line);
  if (!give_to_asio()) return;
  asio::co_spawn(loop_->executor, run(shared_from_this()),
                 [self = shared_from_this()](std::exception_ptr) { self->after_exchange(); });
}

void ServerConnection::refuse(int status, std::string why, const RequestLine& line) {
  if (loop_->refused) loop_->refused({status, why, peer_, line});
  phase_ = Phase::answering;
  close_after_ = true;
  timed_out_ = false;
  status_ = 0;
  answer_ = AnswerWriter(false, request_.minor_version);
  if (!give_to_asio()) return;
  asio::co_spawn(loop_->executor, answer_and_close(shared_from_this(), status, std::move(why)),
                 [self = shared_from_this()](std::exception_ptr) { self->part(); });
}

Task<void> ServerConnection::answer_and_close(std::shared_ptr<ServerConnection> self, int status,
                                              std::string why) {
  ServerResponse response = self->own_answer(status, std::move(why));
  [[maybe_unused]] auto sent = co_await self->respond(std::move(response));
}

// It is about this request alone.
ServerResponse ServerConnection::own_answer(int status, std::string why) const {
  ServerResponse response = plain_response(status, std::move(why));
  response.headers.add("Cache-Control", "no-store");
  for (const Headers::Field& field : loop_->refusal_fields)
    response.headers.add(field.name, field.value);
  return response;
}

// --- one exchange -----------------------------------------------------------------------------------------------

Task<void> ServerConnection::run(std::shared_ptr<ServerConnection> self) {
  try {
    co_await self->answer();
  } catch (const std::exception& thrown) {
    // A handler that was cancelled has nobody left to answer.
    self->close_after_ = true;
    if (!self->is_closed())
      log(LogLevel::error, std::string("a connection ended by an exception: ") + thrown.what());
  }
}

Task<void> ServerConnection::answer() {
  {
    using namespace asio::experimental::awaitable_operators;
    Task<void> handling = handle();
    Task<void> closing = wait_until_closed();
    co_await (std::move(handling) || std::move(closing));
  }
  if (is_closed()) co_return;
  const bool answered = answer_.state() != AnswerWriter::State::not_begun;
  if (!answered && client_left_) co_return close();
  if (!answered) {
    ServerResponse response = timed_out_ ? own_answer(408, "the request did not come in time")
                                         : own_answer(500, "this server made a mistake");
    close_after_ = close_after_ || timed_out_;
    timed_out_ = false;
    [[maybe_unused]] auto sent = co_await respond(std::move(response));
  }
  if (answer_.state() != AnswerWriter::State::ended) {
    // The client must see that something is missing. Where it would take an orderly end for the end of the answer,
    // there is none.
    if (answer_.state() == AnswerWriter::State::until_close) socket_.reset_when_closed();
    close();
    co_return;
  }
  const bool read_on = co_await skip_rest_of_body();
  if (!read_on) close_after_ = true;
  if (loop_->draining) close_after_ = true;
}

Task<void> ServerConnection::handle() {
  try {
    co_await loop_->handler(*this);
  } catch (const std::exception& thrown) {
    // One that was cancelled has nobody left to answer.
    if (!is_closed()) log(LogLevel::error, std::string("a request ended by an exception: ") + thrown.what());
  }
}

// This is no cancellation slot of the whole coroutine: what co_spawn awaits at its very end must not be cancelled.
Task<void> ServerConnection::wait_until_closed() {
  while (!is_closed()) {
    error_code woken;
    co_await closing_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    if (woken && !is_closed()) co_return;  // The handler has ended.
  }
}

// Whether the next request can be read.
Task<bool> ServerConnection::skip_rest_of_body() {
  if (body_.has_ended()) co_return true;
  if (body_.expects_continue() || close_after_) co_return false;  // It may never come, or need not.
  if (body_.announces_more_than(kSkippedBody)) co_return false;
  const std::uint64_t limit = body_.read() + kSkippedBody;
  const Moment patience = steady_clock::now() + kSkipPatience;
  while (!body_.has_ended() && body_.read() < limit && steady_clock::now() < patience) {
    auto piece = co_await read();
    if (!piece) co_return false;
  }
  co_return body_.has_ended();
}

// Some bytes of whatever comes next, in piece_.
Task<Result<std::string_view>> ServerConnection::receive() {
  loop_->bound.check();
  for (;;) {
    if (is_closed()) co_return client_gone("the connection is closed");
    error_code error;
    piece_.resize(kReceive);
    const std::size_t count = socket_.asios().read_some(asio::buffer(piece_), error);
    if (!error) co_return std::string_view(piece_.data(), count);
    if (error == asio::error::eof) co_return std::string_view();
    if (error != asio::error::would_block && error != asio::error::try_again) {
      client_left_ = true;
      co_return client_gone("the client broke the connection");
    }
    error = {};
    co_await socket_.asios().async_wait(tcp::socket::wait_read,
                                        asio::redirect_error(asio::use_awaitable, error));
    if (timed_out_) co_return client_gone("the client did not send in time");
    if (error) co_return client_gone("the connection is closed");
  }
}

Task<Result<std::string_view>> ServerConnection::read() {
  const bool tunnel = answer_.is_tunnel();
  if (!tunnel && body_.has_ended()) co_return std::string_view();
  if (body_.expects_continue()) {
    auto told = co_await interim(100, {});
    if (!told) co_return std::move(told).error();
  }
  for (;;) {
    std::string_view bytes;
    if (!input_.empty()) {
      piece_ = std::exchange(input_, {});
      bytes = piece_;
    } else {
      if (!tunnel) read_deadline_ = steady_clock::now() + limits_->body_timeout;
      auto received = co_await receive();
      read_deadline_ = Moment::max();
      if (!received) co_return std::move(received).error();
      bytes = *received;
      if (bytes.empty() && !tunnel) {
        client_left_ = true;
        co_return client_gone("the client left in the middle of the request's body");
      }
    }
    if (tunnel) co_return bytes;

    auto step = body_.take(bytes);
    if (!step) {
      close_after_ = true;
      co_return std::move(step).error();
    }
    input_ = bytes.substr(step->consumed);
    if (!step->content.empty() || body_.has_ended()) co_return step->content;
  }
}

// The end of what the client sends is not its end: only a connection that broke counts. Asio's wait_error returns for
// urgent data, too, and would do so again and again.
Task<void> ServerConnection::client_left() {
  loop_->bound.check();
  error_code error;
  co_await socket_.asios().async_wait(tcp::socket::wait_error,
                                      asio::redirect_error(asio::use_awaitable, error));
  if (error || is_closed()) co_return;
  client_left_ = (socket_.poll_now(0) & (POLLERR | POLLHUP)) != 0;
  if (client_left_) co_return;
  asio::steady_timer never(loop_->executor, Moment::max());
  co_await never.async_wait(asio::use_awaitable);
}

std::stop_token ServerConnection::probably_left() {
  loop_->bound.check();
  if (!leaving_.stop_possible()) leaving_ = std::stop_source();
  return leaving_.get_token();
}

// Not a wait of its own: hardly any request takes so long that its client loses patience.
void ServerConnection::tell_if_client_left() {
  if (!leaving_.stop_possible() || answer_.state() != AnswerWriter::State::not_begun) return;
  const int events = socket_.poll_now(POLLRDHUP);
  const bool is_broken = (events & (POLLERR | POLLHUP)) != 0;
  // Once told, the handler has had the time to end in its own way. Of a client that has ended its own side alone nobody
  // knows whether it still reads, until something is sent.
  if (leaving_.stop_requested() && is_broken) return close();
  if (is_broken || (events & POLLRDHUP) != 0) leaving_.request_stop();
}

// --- answering --------------------------------------------------------------------------------------------------

Task<Result<void>> ServerConnection::send(std::vector<asio::const_buffer> buffers) {
  loop_->bound.check();
  std::size_t first = 0;
  for (;;) {
    while (first < buffers.size() && buffers[first].size() == 0)
      ++first;
    if (first == buffers.size()) co_return Result<void>{};
    if (is_closed()) co_return client_gone("the connection is closed");
    error_code error;
    const std::vector<asio::const_buffer> rest(buffers.begin() + static_cast<std::ptrdiff_t>(first),
                                               buffers.end());
    std::size_t count = socket_.asios().write_some(rest, error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      if (!answer_.is_tunnel()) give_time_to_read();
      error = {};
      co_await socket_.asios().async_wait(tcp::socket::wait_write,
                                          asio::redirect_error(asio::use_awaitable, error));
      write_deadline_ = Moment::max();
      if (timed_out_) error = asio::error::timed_out;
      count = 0;
    }
    if (error) {
      close_after_ = true;
      close();
      co_return client_gone("the client does not take its answer");
    }
    while (count > 0) {
      const std::size_t taken = std::min(count, buffers[first].size());
      buffers[first] += taken;
      count -= taken;
      if (buffers[first].size() == 0) ++first;
    }
  }
}

void ServerConnection::close_when_drained(int status) {
  if (status >= 200 && loop_->draining) close_after_ = true;
}

std::string ServerConnection::head_of(int status, const Headers& headers,
                                      std::optional<std::uint64_t> length) {
  return answer_.head(status, headers, length, loop_->date_field(), close_after_);
}

Task<Result<void>> ServerConnection::send_head(int status, Headers headers,
                                               std::optional<std::uint64_t> length) {
  close_when_drained(status);
  const std::string head = head_of(status, headers, length);
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  co_return co_await send(std::move(buffers));
}

Task<Result<void>> ServerConnection::respond(ServerResponse response) {
  const bool silent = response.body_omitted || answer_.leaves_out_body(response.status);
  answer_.begin_whole();
  status_ = response.status;
  // A body that will not be read is not worth a connection.
  if (response.close || body_.expects_continue() || body_.announces_more_than(kSkippedBody))
    close_after_ = true;
  close_when_drained(response.status);
  const std::string head = head_of(response.status, response.headers, response.body.size());
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  if (!silent) buffers.push_back(asio::buffer(response.body));
  auto sent = co_await send(std::move(buffers));
  if (!sent) co_return sent;
  if (!silent) bytes_sent_ = response.body.size();
  answer_.end();
  co_return Result<void>{};
}

Task<Result<void>> ServerConnection::begin(int status, Headers headers, std::optional<std::uint64_t> length) {
  status_ = status;
  answer_.begin(status, length);
  if (answer_.state() == AnswerWriter::State::until_close || body_.expects_continue()) close_after_ = true;
  co_return co_await send_head(status, std::move(headers), length);
}

Task<Result<void>> ServerConnection::write(std::string_view piece) {
  if (piece.empty() || answer_.state() == AnswerWriter::State::no_body) co_return Result<void>{};
  auto framed = answer_.frame(piece);
  if (!framed) co_return std::move(framed).error();
  std::vector<asio::const_buffer> buffers;
  for (const std::string_view text : framed->texts)
    buffers.push_back(asio::buffer(text));
  bytes_sent_ += piece.size();
  co_return co_await send(std::move(buffers));
}

Task<Result<void>> ServerConnection::finish(Headers trailers) {
  auto last = answer_.last(trailers);
  if (!last) co_return std::move(last).error();
  const std::string text = *std::move(last);
  std::vector<asio::const_buffer> buffers{asio::buffer(text)};
  auto sent = co_await send(std::move(buffers));
  if (sent) answer_.end();
  co_return sent;
}

Task<Result<void>> ServerConnection::interim(int status, Headers headers) {
  if (status == 100) {
    if (!body_.expects_continue()) co_return Result<void>{};
    body_.was_told_to_continue();
  }
  if (request_.minor_version == 0) co_return Result<void>{};
  co_return co_await send_head(status, std::move(headers), std::nullopt);
}

Task<Result<void>> ServerConnection::switch_protocols(Headers headers) {
  status_ = 101;
  close_after_ = true;
  auto sent = co_await send_head(101, std::move(headers), std::nullopt);
  answer_.begin_tunnel();
  co_return sent;
}

void ServerConnection::shut_down_sending() {
  error_code ignored;
  socket_.asios().shutdown(tcp::socket::shutdown_send, ignored);
  answer_.end();
}

AnswerProgress ServerConnection::progress() const {
  if (answer_.state() == AnswerWriter::State::ended) return AnswerProgress::whole;
  if (loop_->cuts_short) return AnswerProgress::cut_short;
  return is_closed() || client_left_ || timed_out_ ? AnswerProgress::client_gone : AnswerProgress::unfinished;
}

// --- the end ----------------------------------------------------------------------------------------------------

void ServerConnection::check_deadlines(Moment now) {
  if (need_not_wait()) return close();
  if (phase_ == Phase::answering && socket_.is_asios()) tell_if_client_left();
  if (is_closed()) return;
  if (read_deadline_ == kFromNextSweep) read_deadline_ = now + limits_->idle_timeout;
  if (now < read_deadline_ && now < write_deadline_) return;
  // A client that takes its answer slowly takes it all the same; the socket tells only when much of it is gone.
  if (now < read_deadline_ && socket_.unread_by_client() < unread_) return give_time_to_read();
  const auto self = shared_from_this();  // Only the loop's Readiness may own this.
  read_deadline_ = Moment::max();
  write_deadline_ = Moment::max();
  if (socket_.is_asios()) {
    timed_out_ = true;
    error_code ignored;
    socket_.asios().cancel(ignored);
  } else if (phase_ == Phase::reading_head) {
    refuse(408, "the header of the request did not come in time", read_request_line(input_));
  } else {
    close();
  }
}

// Closes in a way that lets a client who still sends read the answer (RFC 9112, 9.6).
void ServerConnection::part() {
  if (is_closed()) return;
  if (!socket_.shut_down_sending()) return close();
  phase_ = Phase::parting;
  input_ = {};
  read_deadline_ = steady_clock::now() + kLinger;
  if (need_not_wait()) return close();
  const bool told = !socket_.is_watched();  // watch() tells then what is there already.
  watch();
  if (!told) read_until_client_parts();
}

// A server that ends lets the client have what was said, and no more.
bool ServerConnection::need_not_wait() const {
  return phase_ == Phase::parting && loop_->draining && socket_.unread_by_client() == 0 &&
         !socket_.has_unread();
}

void ServerConnection::read_until_client_parts() {
  while (skipped_ < 16 * kSkippedBody) {
    const ssize_t count = ::recv(socket_.native(), loop_->received.data(), loop_->received.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) break;
    skipped_ += static_cast<std::uint64_t>(count);
  }
  close();
}

void ServerConnection::close_if_idle() {
  if (!is_busy() && input_.empty() && !socket_.has_unread()) close();
}

void ServerConnection::close() {
  loop_->bound.check();
  if (is_closed()) return;
  phase_ = Phase::closed;
  const auto self = shared_from_this();  // Likewise.
  read_deadline_ = Moment::max();
  write_deadline_ = Moment::max();
  socket_.close(loop_->readiness);
  closing_.cancel();
}

}  // namespace facetheory
