// HttpServer: HTTP/1.1 on its listening addresses, over one or more event loops, each with sockets of its own
// (SO_REUSEPORT). Requests of a connection are answered one after the other, pipelined ones in order.
//
// A message whose framing could be read in two ways is answered 400 and its connection closed. A client that is slow to
// send its header or body, or idle for too long, is cut off; one that is slow to read delays nobody else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/http/message.h"

namespace facetheory {

struct ServerRequest {
  std::string method;
  std::string target;  // As it was sent.
  Headers headers;     // As they were sent.
  std::string body;    // Only for a RequestHandler.
  std::string peer;    // The client's address, without its port.
  // "192.0.2.1:8080": what the client has connected to, where the request has no Host.
  std::string own_address = {};
  int minor_version = 1;
};

struct ServerResponse {
  int status = 200;
  Headers headers = {};  // Without Content-Length, Connection and Date, which the server writes.
  std::string_view body = {};
  std::shared_ptr<const void> keep_alive = {};  // Owns what `body` points at.
  bool body_omitted = false;                    // 304: the body is not sent. HEAD is seen to by the server.
  bool close = false;  // The connection ends with it: what else the client has sent is not looked at.
};

// One request and the way to answer it. Lives and is used on the event loop of its connection, until the handler's
// task has ended. An error means that the client is gone or too slow: there is nobody left to answer.
class ServerExchange {
 public:
  virtual ~ServerExchange() = default;

  const ServerRequest& request() const { return request_; }

  // Whether a body follows, and its length where the request tells.
  virtual bool has_body() const = 0;
  virtual std::optional<std::uint64_t> body_length() const = 0;
  // Whether the client waits for 100 (Continue) before it sends the body. The first read() says it to the client.
  virtual bool expects_continue() const = 0;

  // The next piece of the request's body, valid until the next call; empty: it has ended. `invalid`: its framing is
  // broken; `exhausted`: it is larger than the limit.
  virtual Task<Result<std::string_view>> read() = 0;
  virtual const Headers& trailers() const = 0;  // Once the body has ended.

  // A whole answer.
  virtual Task<Result<void>> respond(ServerResponse response) = 0;

  // An answer in pieces. Without a length it is chunked, or ends with the connection for a client of HTTP/1.0. No body is
  // sent to HEAD, nor with 204 and 304, whatever is written.
  virtual Task<Result<void>> begin(int status, Headers headers, std::optional<std::uint64_t> length) = 0;
  virtual Task<Result<void>> write(std::string_view piece) = 0;  // `piece` lives until it returns.
  virtual Task<Result<void>> finish(Headers trailers) = 0;

  // 100, 103 and others that come before the answer.
  virtual Task<Result<void>> interim(int status, Headers headers) = 0;

  // Returns when the connection broke. A client that has only ended its own side (shutdown(SHUT_WR)) may still read, and has
  // not left; one that closed its connection looks the same until something is written to it. Only once the request's
  // body has been read.
  virtual Task<void> client_left() = 0;

  // Asked to stop, within a second or so, when the connection broke or the client has ended its own side before it was
  // answered. Most of those have left; all the same it may be one that still reads.
  virtual std::stop_token probably_left() = 0;

  // Answers 101; from now on read() and write() carry the bytes of another protocol, until read() gives none.
  virtual Task<Result<void>> switch_protocols(Headers headers) = 0;
  virtual void shut_down_sending() = 0;

  bool answered() const { return status_ >= 200 || status_ == 101; }
  int status() const { return status_; }                    // 0: nothing was answered yet.
  std::uint64_t bytes_sent() const { return bytes_sent_; }  // Of the body.

 protected:
  ServerRequest request_;
  int status_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

// Answers the request; one that it leaves without an answer gets 500, one whose answer it leaves unfinished is cut off.
using ExchangeHandler = std::function<Task<void>(ServerExchange&)>;

// For handlers to whom a request is one value; a body beyond the limit is answered 413.
using RequestHandler = std::function<Task<ServerResponse>(ServerRequest)>;
ExchangeHandler whole_requests(RequestHandler handler, std::size_t body_limit = std::size_t{1} << 20);

// "text/plain", with a line break at its end.
ServerResponse plain_response(int status, std::string message);

struct ServerLimits {
  std::size_t header_bytes = 32 * 1024;
  std::optional<std::uint64_t> body_bytes = {};  // Empty: any size.
  std::size_t connections = 10'000;              // Of all event loops; more are closed at once.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{60'000};
  std::chrono::milliseconds write_timeout{60'000};
};

struct EventLoop;  // event_loop.h

// Connections.
struct ServerCounters {
  std::uint64_t accepted = 0;  // Since the beginning.
  std::uint64_t refused = 0;   // Likewise: closed at once, beyond the limit.
  std::size_t open = 0;        // Now.
};

class HttpServer {
 public:
  explicit HttpServer(std::vector<EventLoop> loops, ServerLimits limits = {});
  ~HttpServer();

  // Begins to accept, on one address after the other. "127.0.0.1", "::"; port 0 takes a free one. An address that is taken
  // is `invalid`, and the message names it. The port.
  Result<std::uint16_t> listen(const std::string& address, std::uint16_t port);

  // For connections that are accepted from now on.
  void set_limits(ServerLimits limits);

  // Accepts no more, closes what is idle, lets what is being answered end, and returns when all connections are gone or
  // the limit has passed; then those that are left are closed. How many these were.
  Task<std::size_t> drain(std::chrono::milliseconds limit);

  ServerCounters counters() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace facetheory
