// One request and its answer in pieces, on a pooled connection (HttpClient::open, HttpClient::ask): for bodies of any
// size, for streams without end, and for tunnels after an Upgrade.
//
// Reading and writing may go on at the same time: one reader (read_head, read), one writer (write, finish,
// shutdown_write). Calls may come from any thread; they run on the client's strand (see HttpClientOptions). When both
// sides have ended in order, the connection goes back to the pool at once; an exchange that is destroyed earlier closes
// it, and calls still in flight then end by throwing operation_aborted. Cancelling a call spoils the exchange: destroy
// it.
//
// Errors as HttpClient says. A writer's error does not end the reader: an origin that refuses a request early answers
// and closes while the body is still being sent, and its answer can be read.
//
// Time: the origin may be silent for read_timeout (or idle_limit) while it is its turn: while the request has been sent
// whole, while it takes no more bytes of it, or while "Expect: 100-continue" awaits its word. It is not while the
// caller has more to write and does not. total_timeout bounds what ask() began, until let_last(). In a tunnel there is
// no limit unless the caller sets one.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/http/message.h"
#include "facetheory/http/response_start.h"

namespace facetheory {

class ExchangeState;

class HttpExchange {
 public:
  explicit HttpExchange(std::shared_ptr<ExchangeState> state);  // Only HttpClient makes one.
  ~HttpExchange();
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  // A piece of the request's body, framed as open() was told; `piece` must live until this returns. More than the
  // length that was announced is `invalid`, and not sent.
  Task<Result<void>> write(std::string_view piece);

  // The request's body is complete; where there is none (or one of length 0) open() has done this. Trailers need a
  // chunked body. `invalid`: less was written than announced, or a trailer that must not be one; the exchange is
  // spoiled then.
  Task<Result<void>> finish(Headers trailers = {});

  // The next head: interim answers (1xx) come one per call, then the final one, after which read() gives its body.
  // Status 101, which comes only to a request with Upgrade and to one of its protocols, and 2xx to CONNECT begin a
  // tunnel, whose connection no longer counts as one of the pool's.
  Task<Result<HttpResponseStart>> read_head();

  // A piece of the answer's body, valid until the next call; empty: it has ended. A connection that is closed before
  // the end is an error, never a short body.
  Task<Result<std::string_view>> read();

  // The answer's trailers, once read() has found the end.
  const Headers& trailers() const;

  // In a tunnel read() and write() carry raw bytes. This ends our direction; the other goes on. With TLS it is only
  // noted, since few peers understand a half-closed TLS connection.
  Task<Result<void>> shutdown_write();

  // Lifts total_timeout from the exchange, and counts its connection among max_streams instead of
  // max_connections: the answer is one that may last, and others must get their turn. False: there was no place for it,
  // for connect_timeout or, where many wait for one, for less; then nothing has changed. `patient`: it is waited for
  // one as long as the exchange may take anyway.
  Task<bool> let_last(bool patient = false);

  // Whether a connection that had been kept for use was closed before any of the answer came: it may have been closed
  // as it was used, and the origin may have seen nothing of the request.
  bool was_closed_unanswered() const;

  // What is wrong with the answer where one came and cannot be used, in words that do not name the server. Empty:
  // nothing is, or none came.
  std::string malformed() const;

  // The longest silence from the next call on, instead of read_timeout (in a tunnel: instead of none). Called from the
  // reader or the writer while the other rests.
  void set_idle_limit(std::chrono::milliseconds limit) { idle_limit_ = limit; }

 private:
  std::shared_ptr<ExchangeState> state_;
  std::optional<std::chrono::milliseconds> idle_limit_;
};

}  // namespace facetheory
