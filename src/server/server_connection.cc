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
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "facetheory/base/clock.h"
#include "facetheory/base/letter_case.h"
#include "facetheory/base/log.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/http_date.h"
#include "facetheory/http/response_writer.h"
#include "facetheory/http/server_request.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr std::size_t kKeptInput = 1024;           // Of a connection that waits.
constexpr std::size_t kRequests = 16 << 10;        // Bytes taken at once, of requests.
constexpr std::size_t kReceive = 64 << 10;         // Likewise, of a body.
constexpr std::uint64_t kSkippedBody = 256 << 10;  // Rather than that, the connection is closed.
constexpr std::chrono::seconds kLinger{2};  // For a client that still sends to read why it was refused.
constexpr std::chrono::milliseconds kSkipPatience{500};
// A deadline of idle_timeout that the next sweep sets: a hit has no need to look at the clock for it.
constexpr ServerConnection::Moment kFromNextSweep = ServerConnection::Moment::min();

Error client_gone(const char* what) {
  return {ErrorCode::unavailable, what};
}

bool bodiless(int status) {
  return status == 204 || status == 304 || status < 200;
}

}  // namespace

ServerLoop::ServerLoop(EventLoop loop, std::shared_ptr<AllLoops> every)
    : bound(LoopBound::to_loop(loop.executor, "a client's connection")),
      executor(bound.executor()),
      handler(std::move(loop.handler)),
      ready(std::move(loop.ready)),
      refused(std::move(loop.refused)),
      all(std::move(every)),
      received(kRequests, '\0'),
      sweep(executor) {}

std::string_view ServerLoop::date_field() {
  const std::int64_t now = epoch_seconds(system_clock().now());
  if (now != date_of) {
    date_of = now;
    date = "Date: " + format_http_date(now) + "\r\n";
  }
  return date;
}

ServerConnection::ServerConnection(std::shared_ptr<ServerLoop> loop, int socket, const tcp::endpoint& peer)
    : loop_(std::move(loop)),
      limits_(loop_->limits),
      native_(socket),
      protocol_(peer.protocol()),
      peer_(peer.address().to_string()),
      socket_(loop_->executor),
      closing_(loop_->executor, Moment::max()) {
  place_ = loop_->connections.size();
  loop_->connections.push_back(this);
  ++loop_->all->open;
}

ServerConnection::~ServerConnection() {
  ServerConnection* last = loop_->connections.back();
  last->place_ = place_;
  loop_->connections[place_] = last;
  loop_->connections.pop_back();
  --loop_->all->open;
  if (!closed_ && !socket_.is_open()) ::close(native_);
}

// --- between requests -------------------------------------------------------------------------------------------

void ServerConnection::start() {
  const int on = 1;
  setsockopt(native_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(native_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(native_, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);  // Urgent bytes are bytes like others.
  wait_for_request();
}

void ServerConnection::watch() {
  if (watched_) return;
  error_code ignored;
  if (socket_.is_open()) socket_.release(ignored);
  const auto readiness = loop_->readiness.lock();
  watched_ = readiness && readiness->add(native_, shared_from_this());
  if (!watched_) close();
}

// False: the connection is closed.
bool ServerConnection::give_to_asio() {
  if (closed_) return false;
  if (socket_.is_open()) return true;
  if (const auto readiness = loop_->readiness.lock(); readiness && watched_) readiness->remove(native_);
  watched_ = false;
  error_code error;
  socket_.assign(protocol_, native_, error);
  if (!error) socket_.non_blocking(true, error);
  if (error) close();
  return !error;
}

void ServerConnection::wait_for_request() {
  busy_ = false;
  if (closed_) return;
  if (!input_.empty() && look_at(input_)) return;
  // What came while an answer was being sent was not looked at.
  if (watched_) return read_requests();
  wait_readable();
}

void ServerConnection::wait_readable() {
  if (input_.empty()) {
    if (loop_->draining && !has_unread()) return close();
    if (input_.capacity() > kKeptInput) input_ = {};
    read_deadline_ = kFromNextSweep;
  } else if (!waits_for_head_) {
    waits_for_head_ = true;
    read_deadline_ = steady_clock::now() + limits_->header_timeout;
  }
  watch();
}

void ServerConnection::on_change(Readiness::Change change) {
  loop_->bound.check();
  reads_on_ = reads_on_ || change.hung_up || change.urgent;
  if (parting_) {
    read_until_client_parts();
  } else if (unsent_) {
    // A client that sends and does not read gets no more time by that.
    if (change.writable || change.hung_up) send_rest();
  } else if (!busy_ && (change.readable || change.hung_up)) {
    read_requests(change.round);
  }
}

void ServerConnection::read_requests(std::uint64_t round) {
  const ssize_t received = ::recv(native_, loop_->received.data(), loop_->received.size(), 0);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_readable();
  if (received <= 0) return close();
  const auto count = static_cast<std::size_t>(received);
  const std::string_view bytes(loop_->received.data(), count);
  bool begun = false;
  if (input_.empty()) {
    begun = look_at(bytes, round);
  } else {
    input_.append(bytes);
    begun = look_at(input_, round);
  }
  if (begun) return;
  wait_readable();
  // There may be more, of which the loop is not told again. Others first.
  if (count == loop_->received.size() || reads_on_)
    asio::post(loop_->executor, [self = shared_from_this()] {
      if (!self->closed_) self->on_change({.readable = true});
    });
}

bool ServerConnection::look_at(std::string_view bytes, std::uint64_t round) {
  const bool ours = bytes.data() == input_.data();
  std::string_view rest = bytes;
  const auto keep_rest = [&] {
    if (!ours) {
      input_.assign(rest);
    } else {
      input_.erase(0, input_.size() - rest.size());
    }
  };
  while (!rest.empty()) {
    // Those behind the first one may have come later.
    switch (look_at_one(rest, std::exchange(head_seen_, 0), std::exchange(round, 0))) {
      case Look::incomplete:
        head_seen_ = rest.size();
        keep_rest();
        return false;
      case Look::refused:
        return true;
      case Look::answered:
        rest.remove_prefix(loop_->head.size);
        if (!busy_ && !close_after_) continue;
        keep_rest();
        if (!busy_) part();
        return true;
      case Look::exchange:
        take_over_head();
        rest.remove_prefix(loop_->head.size);
        keep_rest();
        begin_exchange();
        return true;
    }
  }
  input_.clear();
  return false;
}

ServerConnection::Look ServerConnection::look_at_one(std::string_view bytes, std::size_t seen,
                                                     std::uint64_t round) {
  if (seen > 0 && bytes.size() < limits_->header_bytes &&
      find_head_end(bytes, seen) == std::string_view::npos) {
    return Look::incomplete;
  }
  const HeadOutcome outcome = parse_request_head(bytes, limits_->header_bytes, loop_->head);
  if (outcome.state == HeadState::incomplete) return Look::incomplete;
  waits_for_head_ = false;
  read_deadline_ = Moment::max();
  if (outcome.state == HeadState::bad) {
    refuse(outcome.status, std::string(outcome.why));
    return Look::refused;
  }
  auto framing = request_framing(loop_->head);
  if (!framing) {
    refuse(framing_refusal(loop_->head), framing.error().message);
    return Look::refused;
  }
  if (auto host = check_host(loop_->head); !host) {
    refuse(400, host.error().message);
    return Look::refused;
  }
  framing_ = *framing;
  if (loop_->ready && framing_.kind == BodyFraming::Kind::none) {
    if (const ReadyAnswer* answer = loop_->ready(loop_->head, peer_, round)) {
      if (send_ready(*answer)) return Look::answered;
      return Look::refused;  // The client is gone.
    }
  }
  return Look::exchange;
}

// False: the connection broke.
bool ServerConnection::send_ready(const ReadyAnswer& answer) {
  close_after_ = !keeps_alive(loop_->head) || loop_->draining;
  const std::string_view added = close_after_                     ? "Connection: close\r\n\r\n"
                                 : loop_->head.minor_version == 0 ? "Connection: keep-alive\r\n\r\n"
                                                                  : "";
  switch (UnsentAnswer::send(native_, answer, added, unsent_)) {
    case Sent::all:
      return true;
    case Sent::failed:
      close();
      return false;
    case Sent::some:
      break;
  }
  // A client that is slow to read.
  busy_ = true;
  give_time_to_read();
  watch();
  return true;
}

void ServerConnection::give_time_to_read() {
  unread_ = unread_by_client();
  write_deadline_ = steady_clock::now() + limits_->write_timeout;
}

int ServerConnection::unread_by_client() const {
  int count = 0;
  return ioctl(native_, SIOCOUTQ, &count) == 0 ? count : 0;
}

void ServerConnection::send_rest() {
  switch (unsent_->go_on(native_)) {
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
  if (close_after_ || closed_) return part();
  // What waits owns as little as can be.
  piece_ = {};
  request_ = {};
  // Not from here: a client may send thousands of requests at once.
  asio::post(loop_->executor, [self = shared_from_this()] { self->wait_for_request(); });
}

void ServerConnection::take_over_head() {
  request_ = request_of(loop_->head, peer_);
  if (loop_->head.minor_version == 0 && find_field(loop_->head.fields, "host") == nullptr)
    request_.own_address = own_address();
  close_after_ = !keeps_alive(loop_->head);
  is_head_ = loop_->head.method == "HEAD";
  decoder_ = {};
  body_left_ = framing_.length;
  body_read_ = 0;
  body_ended_ = framing_.kind != BodyFraming::Kind::chunked && framing_.length == 0;
  sending_ = Sending::nothing_yet;
  leaving_ = std::stop_source(std::nostopstate);
  status_ = 0;
  bytes_sent_ = 0;
  continue_expected_ =
      find_field(loop_->head.fields, "expect") != nullptr && !body_ended_ && loop_->head.minor_version >= 1;
}

// As a client would write it into Host.
std::string ServerConnection::own_address() const {
  tcp::endpoint own;
  auto size = static_cast<socklen_t>(own.capacity());
  if (::getsockname(native_, own.data(), &size) != 0) return {};
  own.resize(size);
  const std::string address = own.address().to_string();
  return (own.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(own.port());
}

void ServerConnection::begin_exchange() {
  busy_ = true;
  const auto expected = combined(request_.headers, "expect");
  if (expected && !same_text(*expected, "100-continue"))
    return refuse(417, "only 100-continue can be expected");
  if (limits_->body_bytes && framing_.length > *limits_->body_bytes)
    return refuse(413, "the body is larger than this server takes");
  if (!give_to_asio()) return;
  asio::co_spawn(loop_->executor, run(shared_from_this()),
                 [self = shared_from_this()](std::exception_ptr) { self->after_exchange(); });
}

void ServerConnection::refuse(int status, std::string why) {
  if (loop_->refused) loop_->refused(status, why, peer_);
  busy_ = true;
  close_after_ = true;
  timed_out_ = false;
  status_ = 0;
  sending_ = Sending::nothing_yet;
  is_head_ = false;
  if (!give_to_asio()) return;
  asio::co_spawn(loop_->executor, answer_and_close(shared_from_this(), status, std::move(why)),
                 [self = shared_from_this()](std::exception_ptr) { self->part(); });
}

Task<void> ServerConnection::answer_and_close(std::shared_ptr<ServerConnection> self, int status,
                                              std::string why) {
  ServerResponse response = plain_response(status, std::move(why));
  [[maybe_unused]] auto sent = co_await self->respond(std::move(response));
}

// --- one exchange -----------------------------------------------------------------------------------------------

Task<void> ServerConnection::run(std::shared_ptr<ServerConnection> self) {
  try {
    co_await self->answer();
  } catch (const std::exception& thrown) {
    // A handler that was cancelled has nobody left to answer.
    self->close_after_ = true;
    if (!self->closed_)
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
  if (closed_) co_return;
  if (sending_ == Sending::nothing_yet && client_left_) co_return close();
  if (sending_ == Sending::nothing_yet) {
    ServerResponse response = timed_out_ ? plain_response(408, "the request did not come in time")
                                         : plain_response(500, "this server made a mistake");
    close_after_ = close_after_ || timed_out_;
    timed_out_ = false;
    [[maybe_unused]] auto sent = co_await respond(std::move(response));
  }
  if (sending_ != Sending::ended) {
    // The client must see that something is missing. Where it would take an orderly end for the end of the answer, there is none.
    if (sending_ == Sending::until_close && !tunnel_) {
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(native_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
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
    if (!closed_) log(LogLevel::error, std::string("a request ended by an exception: ") + thrown.what());
  }
}

// Not a cancellation slot of the whole coroutine: what co_spawn awaits at its very end must not be cancelled.
Task<void> ServerConnection::wait_until_closed() {
  while (!closed_) {
    error_code woken;
    co_await closing_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    if (woken && !closed_) co_return;  // The handler has ended.
  }
}

// Whether the next request can be read.
Task<bool> ServerConnection::skip_rest_of_body() {
  if (body_ended_) co_return true;
  if (continue_expected_ || close_after_) co_return false;  // It may never come, or need not.
  const std::uint64_t limit = body_read_ + kSkippedBody;
  if (framing_.kind == BodyFraming::Kind::length && body_left_ > kSkippedBody) co_return false;
  const Moment patience = steady_clock::now() + kSkipPatience;
  while (!body_ended_ && body_read_ < limit && steady_clock::now() < patience) {
    auto piece = co_await read();
    if (!piece) co_return false;
  }
  co_return body_ended_;
}

std::optional<std::uint64_t> ServerConnection::body_length() const {
  if (framing_.kind == BodyFraming::Kind::length) return framing_.length;
  return std::nullopt;
}

// Some bytes of whatever comes next, in piece_.
Task<Result<std::string_view>> ServerConnection::receive() {
  loop_->bound.check();
  for (;;) {
    if (closed_) co_return client_gone("the connection is closed");
    error_code error;
    piece_.resize(kReceive);
    const std::size_t count = socket_.read_some(asio::buffer(piece_), error);
    if (!error) co_return std::string_view(piece_.data(), count);
    if (error == asio::error::eof) co_return std::string_view();
    if (error != asio::error::would_block && error != asio::error::try_again) {
      client_left_ = true;
      co_return client_gone("the client broke the connection");
    }
    error = {};
    co_await socket_.async_wait(tcp::socket::wait_read, asio::redirect_error(asio::use_awaitable, error));
    if (timed_out_) co_return client_gone("the client did not send in time");
    if (error) co_return client_gone("the connection is closed");
  }
}

Task<Result<std::string_view>> ServerConnection::read() {
  if (!tunnel_ && body_ended_) co_return std::string_view();
  if (continue_expected_) {
    auto told = co_await interim(100, {});
    if (!told) co_return std::move(told).error();
  }
  for (;;) {
    std::string_view bytes;
    if (!input_.empty()) {
      piece_ = std::exchange(input_, {});
      bytes = piece_;
    } else {
      if (!tunnel_) read_deadline_ = steady_clock::now() + limits_->body_timeout;
      auto received = co_await receive();
      read_deadline_ = Moment::max();
      if (!received) co_return std::move(received).error();
      bytes = *received;
      if (bytes.empty() && !tunnel_) {
        client_left_ = true;
        co_return client_gone("the client left in the middle of the request's body");
      }
    }
    if (tunnel_) co_return bytes;

    std::string_view content;
    if (framing_.kind == BodyFraming::Kind::length) {
      content = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), body_left_));
      body_left_ -= content.size();
      body_ended_ = body_left_ == 0;
      input_ = bytes.substr(content.size());
    } else {
      const ChunkedDecoder::Step step = decoder_.push(bytes);
      if (step.state == ChunkedDecoder::State::bad) {
        close_after_ = true;
        co_return Error{ErrorCode::invalid, "the request's body: " + std::string(decoder_.why())};
      }
      content = step.content;
      body_ended_ = step.state == ChunkedDecoder::State::end;
      input_ = bytes.substr(step.consumed);
      if (content.empty() && !body_ended_) continue;
    }
    body_read_ += content.size();
    if (limits_->body_bytes && body_read_ > *limits_->body_bytes) {
      close_after_ = true;
      co_return Error{ErrorCode::exhausted, "the body is larger than this server takes"};
    }
    co_return content;
  }
}

// The end of what the client sends is not its end: only a connection that broke counts. Asio's wait_error returns for
// urgent data, too, and would do so again and again.
Task<void> ServerConnection::client_left() {
  error_code error;
  co_await socket_.async_wait(tcp::socket::wait_error, asio::redirect_error(asio::use_awaitable, error));
  if (error || closed_) co_return;
  pollfd state{native_, 0, 0};
  client_left_ = ::poll(&state, 1, 0) > 0 && (state.revents & (POLLERR | POLLHUP)) != 0;
  if (client_left_) co_return;
  asio::steady_timer never(loop_->executor, Moment::max());
  co_await never.async_wait(asio::use_awaitable);
}

std::stop_token ServerConnection::probably_left() {
  if (!leaving_.stop_possible()) leaving_ = std::stop_source();
  return leaving_.get_token();
}

// Not a wait of its own: hardly any request takes so long that its client loses patience.
void ServerConnection::look_for_client() {
  if (!leaving_.stop_possible() || leaving_.stop_requested() || sending_ != Sending::nothing_yet) return;
  pollfd state{native_, POLLRDHUP, 0};
  if (::poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0)
    leaving_.request_stop();
}

// --- answering --------------------------------------------------------------------------------------------------

Task<Result<void>> ServerConnection::send(std::vector<asio::const_buffer> buffers) {
  loop_->bound.check();
  std::size_t first = 0;
  for (;;) {
    while (first < buffers.size() && buffers[first].size() == 0)
      ++first;
    if (first == buffers.size()) co_return Result<void>{};
    if (closed_) co_return client_gone("the connection is closed");
    error_code error;
    const std::vector<asio::const_buffer> rest(buffers.begin() + static_cast<std::ptrdiff_t>(first),
                                               buffers.end());
    std::size_t count = socket_.write_some(rest, error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      if (!tunnel_) give_time_to_read();
      error = {};
      co_await socket_.async_wait(tcp::socket::wait_write, asio::redirect_error(asio::use_awaitable, error));
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

std::string ServerConnection::head_of(int status, const Headers& headers,
                                      std::optional<std::uint64_t> length) {
  std::string head;
  head.reserve(512);
  append_status_line(head, status);
  for (const Headers::Field& field : headers)
    append_field(head, field.name, field.value);
  if (status < 200) return head.append("\r\n");
  if (!headers.get("date")) head.append(loop_->date_field());
  if (sending_ == Sending::chunked) {
    head.append("Transfer-Encoding: chunked\r\n");
  } else if (length && status != 204 && status != 304) {
    append_field(head, "Content-Length", std::to_string(*length));
  }
  if (loop_->draining) close_after_ = true;
  if (close_after_) {
    head.append("Connection: close\r\n");
  } else if (request_.minor_version == 0) {
    head.append("Connection: keep-alive\r\n");
  }
  return head.append("\r\n");
}

Task<Result<void>> ServerConnection::respond(ServerResponse response) {
  const bool silent = is_head_ || response.body_omitted || bodiless(response.status);
  sending_ = Sending::no_body;
  status_ = response.status;
  // A body that will not be read is not worth a connection.
  if (response.close || continue_expected_ ||
      (framing_.kind == BodyFraming::Kind::length && body_left_ > kSkippedBody && !body_ended_))
    close_after_ = true;
  const std::string head = head_of(response.status, response.headers, response.body.size());
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  if (!silent) buffers.push_back(asio::buffer(response.body));
  auto sent = co_await send(std::move(buffers));
  if (!sent) co_return sent;
  if (!silent) bytes_sent_ = response.body.size();
  sending_ = Sending::ended;
  co_return Result<void>{};
}

Task<Result<void>> ServerConnection::begin(int status, Headers headers, std::optional<std::uint64_t> length) {
  status_ = status;
  if (is_head_ || bodiless(status)) {
    sending_ = Sending::no_body;
  } else if (length) {
    sending_ = Sending::length;
    to_send_ = *length;
  } else if (request_.minor_version >= 1) {
    sending_ = Sending::chunked;
  } else {
    sending_ = Sending::until_close;
    close_after_ = true;
  }
  if (continue_expected_) close_after_ = true;
  const std::string head = head_of(status, headers, length);
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  co_return co_await send(std::move(buffers));
}

Task<Result<void>> ServerConnection::write(std::string_view piece) {
  if (piece.empty() || sending_ == Sending::no_body) co_return Result<void>{};
  std::vector<asio::const_buffer> buffers;
  const ChunkHeader header(piece.size());
  if (sending_ == Sending::chunked) buffers.push_back(asio::buffer(header.text()));
  buffers.push_back(asio::buffer(piece));
  if (sending_ == Sending::chunked) buffers.push_back(asio::buffer(kChunkEnd));
  if (sending_ == Sending::length) {
    if (piece.size() > to_send_) co_return Error{ErrorCode::internal, "more was written than announced"};
    to_send_ -= piece.size();
  }
  bytes_sent_ += piece.size();
  co_return co_await send(std::move(buffers));
}

Task<Result<void>> ServerConnection::finish(Headers trailers) {
  if (sending_ == Sending::length && to_send_ > 0)
    co_return Error{ErrorCode::internal, "less was written than announced"};
  if (sending_ == Sending::chunked) {
    auto end = last_chunk(trailers);
    if (!end) co_return std::move(end).error();
    const std::string text = *std::move(end);
    std::vector<asio::const_buffer> buffers{asio::buffer(text)};
    auto sent = co_await send(std::move(buffers));
    if (!sent) co_return sent;
  }
  sending_ = Sending::ended;
  co_return Result<void>{};
}

Task<Result<void>> ServerConnection::interim(int status, Headers headers) {
  if (status == 100) {
    if (!continue_expected_) co_return Result<void>{};
    continue_expected_ = false;
  }
  if (request_.minor_version == 0) co_return Result<void>{};
  const std::string head = head_of(status, headers, std::nullopt);
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  co_return co_await send(std::move(buffers));
}

Task<Result<void>> ServerConnection::switch_protocols(Headers headers) {
  status_ = 101;
  close_after_ = true;
  const std::string head = head_of(101, headers, std::nullopt);
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  auto sent = co_await send(std::move(buffers));
  sending_ = Sending::until_close;
  tunnel_ = true;
  co_return sent;
}

void ServerConnection::shut_down_sending() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  sending_ = Sending::ended;
}

// --- the end ----------------------------------------------------------------------------------------------------

void ServerConnection::check_deadlines(Moment now) {
  if (need_not_wait()) return close();
  if (busy_ && socket_.is_open()) look_for_client();
  if (read_deadline_ == kFromNextSweep) read_deadline_ = now + limits_->idle_timeout;
  if (now < read_deadline_ && now < write_deadline_) return;
  // A client that takes its answer slowly takes it all the same; the socket tells only when much of it is gone.
  if (now < read_deadline_ && unread_by_client() < unread_) return give_time_to_read();
  const auto self = shared_from_this();  // Which only the loop's Readiness may have kept.
  read_deadline_ = Moment::max();
  write_deadline_ = Moment::max();
  if (socket_.is_open()) {
    timed_out_ = true;
    error_code ignored;
    socket_.cancel(ignored);
  } else if (waits_for_head_) {
    refuse(408, "the header of the request did not come in time");
  } else {
    close();
  }
}

// Closes in a way that lets a client who still sends read the answer (RFC 9112, 9.6).
void ServerConnection::part() {
  if (closed_) return;
  if (::shutdown(native_, SHUT_WR) != 0) return close();
  busy_ = false;
  parting_ = true;
  waits_for_head_ = false;
  input_ = {};
  read_deadline_ = steady_clock::now() + kLinger;
  if (need_not_wait()) return close();
  const bool told = !watched_;  // Of what is there already.
  watch();
  if (!told) read_until_client_parts();
}

// A server that ends lets the client have what was said, and no more.
bool ServerConnection::need_not_wait() const {
  return parting_ && loop_->draining && unread_by_client() == 0 && !has_unread();
}

void ServerConnection::read_until_client_parts() {
  while (skipped_ < 16 * kSkippedBody) {
    const ssize_t count = ::recv(native_, loop_->received.data(), loop_->received.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) break;
    skipped_ += static_cast<std::uint64_t>(count);
  }
  close();
}

void ServerConnection::close_if_idle() {
  if (!busy_ && input_.empty() && !has_unread()) close();
}

bool ServerConnection::has_unread() const {
  int count = 0;
  return ioctl(native_, FIONREAD, &count) == 0 && count > 0;
}

void ServerConnection::close() {
  loop_->bound.check();
  if (closed_) return;
  closed_ = true;
  const auto self = shared_from_this();  // Likewise.
  read_deadline_ = Moment::max();
  write_deadline_ = Moment::max();
  if (socket_.is_open()) {
    error_code ignored;
    socket_.close(ignored);
  } else {
    if (const auto readiness = loop_->readiness.lock(); readiness && watched_) readiness->remove(native_);
    watched_ = false;
    ::close(native_);
  }
  closing_.cancel();
}

}  // namespace facetheory
