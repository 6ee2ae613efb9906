#include "facetheory/server/http1_exchange.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <poll.h>

#include "facetheory/base/log.h"
#include "facetheory/http/server_request.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReceive = 64 << 10;         // So many bytes of a body are taken at once.
constexpr std::uint64_t kSkippedBody = 256 << 10;  // A connection with more to skip is closed.
constexpr std::chrono::milliseconds kSkipPatience{500};

Error client_gone(const char* what) {
  return {ErrorCode::unavailable, what};
}

bool waits_to_continue(const RequestHead& head) {
  return find_field(head.fields, "expect") != nullptr && head.minor_version >= 1;
}

}  // namespace

Http1Exchange::Http1Exchange(LoopConnection& connection, ServerLoop& loop, ClientStream& stream,
                             const RequestHead& head, BodyFraming framing, std::string peer)
    : connection_(connection),
      loop_(loop),
      stream_(stream),
      closing_(loop.executor, ClientStream::Moment::max()),
      body_(framing, waits_to_continue(head), stream.limits->body_bytes),
      answer_(head.method == "HEAD", head.minor_version) {
  request_ = request_of(head, std::move(peer));
  if (head.minor_version == 0 && find_field(head.fields, "host") == nullptr)
    request_.own_address = stream_.socket.own_address();
}

Http1Exchange::Http1Exchange(LoopConnection& connection, ServerLoop& loop, ClientStream& stream,
                             int minor_version)
    : connection_(connection),
      loop_(loop),
      stream_(stream),
      closing_(loop.executor, ClientStream::Moment::max()),
      answer_(false, minor_version) {}

ServerResponse Http1Exchange::own_answer(const ServerLoop& loop, int status, std::string why) {
  ServerResponse response = plain_response(status, std::move(why));
  response.headers.add("Cache-Control", "no-store");
  for (const Headers::Field& field : loop.refusal_fields)
    response.headers.add(field.name, field.value);
  return response;
}

void Http1Exchange::on_deadline() {
  timed_out_ = true;
  error_code ignored;
  stream_.socket.asios().cancel(ignored);
}

Task<void> Http1Exchange::answer() {
  {
    using namespace asio::experimental::awaitable_operators;
    Task<void> handling = handle();
    Task<void> closing = wait_until_closed();
    co_await (std::move(handling) || std::move(closing));
  }
  if (is_closed()) co_return;
  const bool answered = answer_.state() != AnswerWriter::State::not_begun;
  if (!answered && client_left_) co_return connection_.close();
  if (!answered) {
    ServerResponse response = timed_out_ ? own_answer(loop_, 408, "the request did not come in time")
                                         : own_answer(loop_, 500, "this server made a mistake");
    stream_.ends_with_answer = stream_.ends_with_answer || timed_out_;
    timed_out_ = false;
    [[maybe_unused]] auto sent = co_await respond(std::move(response));
  }
  if (!answer_.has_ended()) {
    // The client must see that something is missing. Where it would take an orderly end for the end of the answer,
    // there is none.
    if (answer_.state() == AnswerWriter::State::until_close) stream_.socket.reset_when_closed();
    connection_.close();
    co_return;
  }
  const bool read_on = co_await skip_rest_of_body();
  if (!read_on) stream_.ends_with_answer = true;
  if (loop_.draining) stream_.ends_with_answer = true;
}

Task<void> Http1Exchange::handle() {
  try {
    co_await loop_.handler(*this);
  } catch (const std::exception& thrown) {
    // One that was cancelled has nobody left to answer.
    if (!is_closed()) log(LogLevel::error, std::string("a request ended by an exception: ") + thrown.what());
  }
}

// This is no cancellation slot of the whole coroutine: what co_spawn awaits at its very end must not be cancelled.
Task<void> Http1Exchange::wait_until_closed() {
  while (!is_closed()) {
    error_code woken;
    co_await closing_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    if (woken && !is_closed()) co_return;  // The handler has ended.
  }
}

// Whether the next request can be read.
Task<bool> Http1Exchange::skip_rest_of_body() {
  if (body_.has_ended()) co_return true;
  if (body_.expects_continue() || stream_.ends_with_answer)
    co_return false;  // It may never come, or need not.
  if (body_.announces_more_than(kSkippedBody)) co_return false;
  const std::uint64_t limit = body_.read() + kSkippedBody;
  const ClientStream::Moment patience = std::chrono::steady_clock::now() + kSkipPatience;
  while (!body_.has_ended() && body_.read() < limit && std::chrono::steady_clock::now() < patience) {
    auto piece = co_await read();
    if (!piece) co_return false;
  }
  co_return body_.has_ended();
}

// Some bytes of whatever comes next, in piece_.
Task<Result<std::string_view>> Http1Exchange::receive() {
  loop_.bound.check();
  for (;;) {
    if (is_closed()) co_return client_gone("the connection is closed");
    error_code error;
    piece_.resize(kReceive);
    const std::size_t count = stream_.socket.asios().read_some(asio::buffer(piece_), error);
    if (!error) co_return std::string_view(piece_.data(), count);
    if (error == asio::error::eof) co_return std::string_view();
    if (error != asio::error::would_block && error != asio::error::try_again) {
      client_left_ = true;
      co_return client_gone("the client broke the connection");
    }
    error = {};
    co_await stream_.socket.asios().async_wait(tcp::socket::wait_read,
                                               asio::redirect_error(asio::use_awaitable, error));
    if (timed_out_) co_return client_gone("the client did not send in time");
    if (error) co_return client_gone("the connection is closed");
  }
}

Task<Result<std::string_view>> Http1Exchange::read() {
  const bool tunnel = answer_.is_tunnel();
  if (!tunnel && body_.has_ended()) co_return std::string_view();
  if (body_.expects_continue()) {
    auto told = co_await interim(100, {});
    if (!told) co_return std::move(told).error();
  }
  for (;;) {
    std::string_view bytes;
    if (!stream_.input.empty()) {
      piece_ = std::exchange(stream_.input, {});
      bytes = piece_;
    } else {
      if (!tunnel) stream_.read_deadline = std::chrono::steady_clock::now() + stream_.limits->body_timeout;
      auto received = co_await receive();
      stream_.read_deadline = ClientStream::Moment::max();
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
      stream_.ends_with_answer = true;
      co_return std::move(step).error();
    }
    stream_.input = bytes.substr(step->consumed);
    if (!step->content.empty() || body_.has_ended()) co_return step->content;
  }
}

// The end of what the client sends is not its end: only a connection that broke counts. Asio's wait_error returns for
// urgent data, too, and would do so again and again.
Task<void> Http1Exchange::client_left() {
  loop_.bound.check();
  error_code error;
  co_await stream_.socket.asios().async_wait(tcp::socket::wait_error,
                                             asio::redirect_error(asio::use_awaitable, error));
  if (error || is_closed()) co_return;
  client_left_ = (stream_.socket.poll_now(0) & (POLLERR | POLLHUP)) != 0;
  if (client_left_) co_return;
  asio::steady_timer never(loop_.executor, ClientStream::Moment::max());
  co_await never.async_wait(asio::use_awaitable);
}

std::stop_token Http1Exchange::probably_left() {
  loop_.bound.check();
  if (!leaving_.stop_possible()) leaving_ = std::stop_source();
  return leaving_.get_token();
}

// The sweep over deadlines asks this, rather than a wait of its own: hardly any request takes so long that its client
// loses patience.
void Http1Exchange::tell_if_client_left() {
  if (!leaving_.stop_possible() || answer_.state() != AnswerWriter::State::not_begun) return;
  const int events = stream_.socket.poll_now(POLLRDHUP);
  const bool is_broken = (events & (POLLERR | POLLHUP)) != 0;
  // Once told, the handler has had the time to end in its own way. Of a client that has ended its own side alone nobody
  // knows whether it still reads, until something is sent.
  if (leaving_.stop_requested() && is_broken) return connection_.close();
  if (is_broken || (events & POLLRDHUP) != 0) leaving_.request_stop();
}

// --- answering --------------------------------------------------------------------------------------------------

Task<Result<void>> Http1Exchange::send(std::vector<asio::const_buffer> buffers) {
  loop_.bound.check();
  std::size_t first = 0;
  for (;;) {
    while (first < buffers.size() && buffers[first].size() == 0)
      ++first;
    if (first == buffers.size()) co_return Result<void>{};
    if (is_closed()) co_return client_gone("the connection is closed");
    error_code error;
    const std::vector<asio::const_buffer> rest(buffers.begin() + static_cast<std::ptrdiff_t>(first),
                                               buffers.end());
    std::size_t count = stream_.socket.asios().write_some(rest, error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      if (!answer_.is_tunnel()) stream_.give_time_to_read();
      error = {};
      co_await stream_.socket.asios().async_wait(tcp::socket::wait_write,
                                                 asio::redirect_error(asio::use_awaitable, error));
      stream_.write_deadline = ClientStream::Moment::max();
      if (timed_out_) error = asio::error::timed_out;
      count = 0;
    }
    if (error) {
      stream_.ends_with_answer = true;
      connection_.close();
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

std::string Http1Exchange::compose_head(int status, const Headers& headers,
                                        std::optional<std::uint64_t> length) {
  if (status >= 200 && loop_.draining) stream_.ends_with_answer = true;
  return answer_.head(status, headers, length, loop_.date_field(), stream_.ends_with_answer);
}

Task<Result<void>> Http1Exchange::send_head(int status, Headers headers,
                                            std::optional<std::uint64_t> length) {
  const std::string head = compose_head(status, headers, length);
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  co_return co_await send(std::move(buffers));
}

Task<Result<void>> Http1Exchange::respond(ServerResponse response) {
  const bool silent = response.body_omitted || answer_.leaves_out_body(response.status);
  answer_.begin_whole();
  status_ = response.status;
  // A body that will not be read is not worth a connection.
  if (response.close || body_.expects_continue() || body_.announces_more_than(kSkippedBody))
    stream_.ends_with_answer = true;
  const std::string head = compose_head(response.status, response.headers, response.body.size());
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  if (!silent) buffers.push_back(asio::buffer(response.body));
  auto sent = co_await send(std::move(buffers));
  if (!sent) co_return sent;
  if (!silent) bytes_sent_ = response.body.size();
  answer_.end();
  co_return Result<void>{};
}

Task<Result<void>> Http1Exchange::begin(int status, Headers headers, std::optional<std::uint64_t> length) {
  status_ = status;
  answer_.begin(status, length);
  if (answer_.state() == AnswerWriter::State::until_close || body_.expects_continue())
    stream_.ends_with_answer = true;
  co_return co_await send_head(status, std::move(headers), length);
}

Task<Result<void>> Http1Exchange::write(std::string_view piece) {
  if (piece.empty() || answer_.leaves_out_pieces()) co_return Result<void>{};
  auto framed = answer_.frame(piece);
  if (!framed) co_return std::move(framed).error();
  std::vector<asio::const_buffer> buffers;
  for (const std::string_view text : framed->texts)
    buffers.push_back(asio::buffer(text));
  bytes_sent_ += piece.size();
  co_return co_await send(std::move(buffers));
}

Task<Result<void>> Http1Exchange::finish(Headers trailers) {
  auto last = answer_.end_of_body(trailers);
  if (!last) co_return std::move(last).error();
  const std::string text = *std::move(last);
  std::vector<asio::const_buffer> buffers{asio::buffer(text)};
  auto sent = co_await send(std::move(buffers));
  if (sent) answer_.end();
  co_return sent;
}

Task<Result<void>> Http1Exchange::interim(int status, Headers headers) {
  if (status == 100) {
    if (!body_.expects_continue()) co_return Result<void>{};
    body_.was_told_to_continue();
  }
  if (request_.minor_version == 0) co_return Result<void>{};
  co_return co_await send_head(status, std::move(headers), std::nullopt);
}

Task<Result<void>> Http1Exchange::switch_protocols(Headers headers) {
  status_ = 101;
  stream_.ends_with_answer = true;
  auto sent = co_await send_head(101, std::move(headers), std::nullopt);
  answer_.begin_tunnel();
  co_return sent;
}

void Http1Exchange::shut_down_sending() {
  error_code ignored;
  stream_.socket.asios().shutdown(tcp::socket::shutdown_send, ignored);
  answer_.end();
}

AnswerProgress Http1Exchange::progress() const {
  if (answer_.has_ended()) return AnswerProgress::whole;
  if (loop_.cuts_short) return AnswerProgress::cut_short;
  return is_closed() || client_left_ || timed_out_ ? AnswerProgress::client_gone : AnswerProgress::unfinished;
}

}  // namespace facetheory
