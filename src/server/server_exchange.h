// ServerExchange: one request and the way to answer it, whatever kind of connection it came on.
//
// This is the seam between protocols and pages: handlers know nothing of how a request was framed, and a connection
// knows nothing of what answers it. HTTP/1.1 is server_connection.h and, for its requests, http1_exchange.h. Another
// protocol is another class that derives from ServerExchange for its requests, and one that derives from LoopConnection
// (loop_connection.h) for what the event loop does with all connections. ReadyAnswer is the one exception: its head is
// HTTP/1.1's, so only that protocol's connections ask for one (event_loop.h), and others have all their requests
// answered by the handler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/http/message.h"
#include "facetheory/http/server_request.h"

namespace facetheory {

struct ServerResponse {
  int status = 200;
  Headers headers = {};  // Content-Length, Connection and Date are not among them: the server writes those.
  std::string_view body = {};
  std::shared_ptr<const void> keep_alive = {};  // Owns what `body` points at.
  bool body_omitted = false;                    // 304: the body is not sent. The server omits it for HEAD.
  bool close = false;  // The connection ends with it: what else the client has sent is not read.
};

// How far an answer has come.
enum class AnswerProgress {
  unfinished,   // Not all of it was sent, or nothing yet.
  whole,        // All of it was handed over to be sent.
  client_gone,  // It never will be: the client has left, or is too slow.
  cut_short,    // Nor will it: the server has closed the connection, since the time for its drain was over.
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
  virtual const Headers& trailers() const = 0;  // They are there once the body has ended.

  // A whole answer.
  virtual Task<Result<void>> respond(ServerResponse response) = 0;

  // An answer in pieces. Without a length it is chunked, or ends with the connection for a client of HTTP/1.0. No body
  // is sent to HEAD, nor with 204 and 304, whatever is written.
  virtual Task<Result<void>> begin(int status, Headers headers, std::optional<std::uint64_t> length) = 0;
  virtual Task<Result<void>> write(std::string_view piece) = 0;  // `piece` lives until it returns.
  virtual Task<Result<void>> finish(Headers trailers) = 0;

  // 100, 103 and others that come before the answer.
  virtual Task<Result<void>> interim(int status, Headers headers) = 0;

  // Returns when the connection broke. A client that has only ended its own side (shutdown(SHUT_WR)) may still read,
  // and has not left; one that closed its connection looks the same until something is written to it. Only once the
  // request's body has been read.
  virtual Task<void> client_left() = 0;

  // Asked to stop, within a second or so, when the connection broke or the client has ended its own side before it was
  // answered. Most of those have left; all the same it may be one that still reads. Where the connection broke and
  // nothing has been answered within another second, the handler is cancelled.
  virtual std::stop_token probably_left() = 0;

  // Answers 101; from now on read() and write() carry the bytes of another protocol, until read() gives none.
  virtual Task<Result<void>> switch_protocols(Headers headers) = 0;
  virtual void shut_down_sending() = 0;

  virtual AnswerProgress progress() const = 0;

  bool answered() const { return status_ >= 200 || status_ == 101; }
  int status() const { return status_; }                    // 0: nothing was answered yet.
  std::uint64_t bytes_sent() const { return bytes_sent_; }  // It counts the body's.

 protected:
  ServerRequest request_;
  int status_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

// Answers the request; one that it leaves without an answer gets 500, one whose answer it leaves unfinished is cut off.
using ExchangeHandler = std::function<Task<void>(ServerExchange&)>;

// "text/plain", with a line break at its end.
ServerResponse plain_response(int status, std::string message);

}  // namespace facetheory
