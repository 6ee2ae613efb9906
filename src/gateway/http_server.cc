#include "facetheory/gateway/http_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/log.h"
#include "facetheory/http/http_date.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

std::string head_of(const ServerResponse& response, bool close) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head += http::obsolete_reason(static_cast<http::status>(response.status));
  head += "\r\n";
  for (const Headers::Field& field : response.headers)
    head += field.name + ": " + field.value + "\r\n";
  if (!response.headers.get("date"))
    head += "Date: " + format_http_date(epoch_seconds(system_clock().now())) + "\r\n";
  const bool bodiless = response.status == 204 || response.status == 304 || response.status < 200;
  if (!bodiless) head += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  if (close) head += "Connection: close\r\n";
  head += "\r\n";
  return head;
}

ServerResponse plain(int status, std::string message) {
  auto text = std::make_shared<const std::string>(std::move(message) + "\n");
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, *text, text, false};
}

// Why the framing cannot be trusted; empty: it can. The parser has refused what is no HTTP at all.
std::string_view doubtful_framing(const http::request_header<>& header) {
  const auto lengths = header.equal_range(http::field::content_length);
  const auto codings = header.equal_range(http::field::transfer_encoding);
  const auto hosts = header.equal_range(http::field::host);
  if (lengths.first != lengths.second && codings.first != codings.second)
    return "both Content-Length and Transfer-Encoding";
  if (std::distance(lengths.first, lengths.second) > 1) return "more than one Content-Length";
  if (std::distance(codings.first, codings.second) > 1) return "more than one Transfer-Encoding";
  if (codings.first != codings.second && header.version() < 11) return "Transfer-Encoding in HTTP/1.0";
  if (std::distance(hosts.first, hosts.second) > 1) return "more than one Host";
  if (header.version() >= 11 && hosts.first == hosts.second) return "no Host";
  return {};
}

}  // namespace

class HttpServer::State : public std::enable_shared_from_this<State> {
 public:
  State(std::vector<asio::any_io_executor> loops, RequestHandler handler, ServerLimits limits)
      : handler_(std::move(handler)), limits_(limits) {
    for (asio::any_io_executor& loop : loops)
      loops_.push_back(std::make_unique<Loop>(std::move(loop)));
  }

  Result<std::uint16_t> listen(const std::string& address, std::uint16_t port);
  Task<void> drain(std::chrono::milliseconds limit);
  std::size_t connections() const { return connections_; }
  void stop_accepting();

 private:
  // What one event loop has; touched on its thread only.
  struct Loop {
    explicit Loop(asio::any_io_executor on) : executor(std::move(on)), acceptor(executor) {}

    asio::any_io_executor executor;
    tcp::acceptor acceptor;
    std::list<beast::tcp_stream*> idle;  // Connections that wait for a request.
    std::size_t connections = 0;
  };

  static Task<void> accept(std::shared_ptr<State> self, Loop& loop);
  static Task<void> converse(std::shared_ptr<State> self, Loop& loop, tcp::socket socket);
  Task<bool> exchange(Loop& loop, beast::tcp_stream& stream, beast::flat_buffer& buffer,
                      const std::string& peer);
  Task<bool> send(beast::tcp_stream& stream, ServerResponse response, bool close);

  // Constant after construction.
  const RequestHandler handler_;
  const ServerLimits limits_;
  std::vector<std::unique_ptr<Loop>> loops_;

  std::atomic<bool> draining_ = false;
  std::atomic<std::size_t> connections_ = 0;
};

Result<std::uint16_t> HttpServer::State::listen(const std::string& address, std::uint16_t port) {
  error_code error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  if (error)
    return Error{ErrorCode::invalid,
                 "'" + address + "' is no address to listen on: give one like 127.0.0.1 or ::"};
  for (const auto& loop : loops_) {
    const tcp::endpoint endpoint(parsed, port);
    tcp::acceptor& acceptor = loop->acceptor;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    // Not for the first: it must not share the port with another program's.
    if (!error && loops_.size() > 1) acceptor.set_option(ReusePort(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return Error{ErrorCode::invalid, "cannot listen on " + address + " port " + std::to_string(port) +
                                           ": " + error.message() +
                                           "; choose another port, or end the program that has it"};
    }
    port = acceptor.local_endpoint().port();
  }
  for (const auto& loop : loops_) {
    asio::co_spawn(loop->executor, accept(shared_from_this(), *loop), [](std::exception_ptr escaped) {
      if (escaped) log(LogLevel::error, "a listener ended by an exception");
    });
  }
  return port;
}

Task<void> HttpServer::State::accept(std::shared_ptr<State> self, Loop& loop) {
  while (!self->draining_) {
    error_code error;
    tcp::socket socket =
        co_await loop.acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (self->draining_ || error == asio::error::operation_aborted) co_return;
    if (error) {
      // Out of descriptors, say: wait for some to come back rather than spin.
      log(LogLevel::warning, "cannot accept a connection: " + error.message());
      asio::steady_timer pause(loop.executor, std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    if (loop.connections >= self->limits_.connections) continue;  // Closed by its destructor.
    ++loop.connections;
    ++self->connections_;
    asio::co_spawn(loop.executor, converse(self, loop, std::move(socket)),
                   [self, &loop](std::exception_ptr escaped) {
                     --loop.connections;
                     --self->connections_;
                     if (escaped) log(LogLevel::error, "a connection ended by an exception");
                   });
  }
}

Task<void> HttpServer::State::converse(std::shared_ptr<State> self, Loop& loop, tcp::socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) co_return;
  socket.set_option(tcp::no_delay(true), error);
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer;
  const std::string address = peer.address().to_string();
  while (co_await self->exchange(loop, stream, buffer, address)) {
  }
  stream.socket().shutdown(tcp::socket::shutdown_send, error);
}

// One request and its answer; whether the connection goes on.
Task<bool> HttpServer::State::exchange(Loop& loop, beast::tcp_stream& stream, beast::flat_buffer& buffer,
                                       const std::string& peer) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
  parser.body_limit(limits_.body_bytes);

  error_code error;
  if (draining_) co_return false;
  if (buffer.size() == 0) {
    // An idle connection has no buffer and can be closed at any time.
    asio::steady_timer patience(loop.executor, limits_.idle_timeout);
    patience.async_wait([&stream](error_code cancelled) {
      if (!cancelled) stream.cancel();
    });
    const auto position = loop.idle.insert(loop.idle.end(), &stream);
    co_await stream.socket().async_wait(tcp::socket::wait_read,
                                        asio::redirect_error(asio::use_awaitable, error));
    loop.idle.erase(position);
    patience.cancel();
    if (error || draining_) co_return false;
  }
  stream.expires_after(limits_.header_timeout);
  co_await http::async_read_header(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
  if (error == http::error::end_of_stream || error == beast::error::timeout) co_return false;
  if (error == http::error::header_limit) {
    co_return co_await send(stream, plain(431, "the header is larger than this server takes"), true);
  }
  if (error == http::error::body_limit) {
    co_return co_await send(stream, plain(413, "the body is larger than this server takes"), true);
  }
  if (error) co_return co_await send(stream, plain(400, "this is not HTTP: " + error.message()), true);

  const http::request_header<>& header = parser.get();
  if (const std::string_view doubt = doubtful_framing(header); !doubt.empty()) {
    co_return co_await send(stream, plain(400, "the request has " + std::string(doubt)), true);
  }
  if (header[http::field::expect] != "" && !parser.is_done()) {
    if (!beast::iequals(header[http::field::expect], "100-continue")) {
      co_return co_await send(stream, plain(417, "only 100-continue can be expected"), true);
    }
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    co_await asio::async_write(stream, asio::buffer(kContinue),
                               asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return false;
  }
  stream.expires_after(limits_.body_timeout);
  co_await http::async_read(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
  if (error == http::error::body_limit) {
    co_return co_await send(stream, plain(413, "the body is larger than this server takes"), true);
  }
  if (error == http::error::end_of_stream || error == beast::error::timeout) co_return false;
  if (error) co_return co_await send(stream, plain(400, "this is not HTTP: " + error.message()), true);
  stream.expires_never();

  auto message = parser.release();
  const bool keep_alive = message.keep_alive();
  ServerRequest request;
  request.method = message.method_string();
  request.target = message.target();
  for (const auto& field : message)
    request.headers.add(std::string(field.name_string()), std::string(field.value()));
  request.body = std::move(message.body());
  request.peer = peer;
  request.minor_version = static_cast<int>(message.version() % 10);
  const bool is_head = request.method == "HEAD";
  ServerResponse response;
  try {
    response = co_await handler_(std::move(request));
  } catch (const std::exception& thrown) {
    log(LogLevel::error, std::string("a request ended by an exception: ") + thrown.what());
    response = plain(500, "this server made a mistake");
  }
  response.body_omitted = response.body_omitted || is_head;
  co_return co_await send(stream, std::move(response), !keep_alive || draining_);
}

Task<bool> HttpServer::State::send(beast::tcp_stream& stream, ServerResponse response, bool close) {
  const std::string head = head_of(response, close);
  const std::array<asio::const_buffer, 2> buffers{
      asio::buffer(head), response.body_omitted ? asio::const_buffer() : asio::buffer(response.body)};
  stream.expires_after(limits_.write_timeout);
  error_code error;
  co_await asio::async_write(stream, buffers, asio::redirect_error(asio::use_awaitable, error));
  co_return !error && !close;
}

void HttpServer::State::stop_accepting() {
  draining_ = true;
  for (const auto& loop : loops_) {
    asio::post(loop->executor, [self = shared_from_this(), &loop = *loop] {
      error_code ignored;
      loop.acceptor.close(ignored);
      for (beast::tcp_stream* stream : loop.idle)
        stream->cancel();
    });
  }
}

Task<void> HttpServer::State::drain(std::chrono::milliseconds limit) {
  stop_accepting();
  const auto deadline = std::chrono::steady_clock::now() + limit;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (connections_ > 0 && std::chrono::steady_clock::now() < deadline) {
    timer.expires_after(std::chrono::milliseconds(10));
    error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

HttpServer::HttpServer(std::vector<boost::asio::any_io_executor> loops, RequestHandler handler,
                       ServerLimits limits)
    : state_(std::make_shared<State>(std::move(loops), std::move(handler), limits)) {}
HttpServer::~HttpServer() {
  state_->stop_accepting();
}
Result<std::uint16_t> HttpServer::listen(const std::string& address, std::uint16_t port) {
  return state_->listen(address, port);
}
Task<void> HttpServer::drain(std::chrono::milliseconds limit) {
  return state_->drain(limit);
}
std::size_t HttpServer::connections() const {
  return state_->connections();
}

}  // namespace facetheory
