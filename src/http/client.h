// A pooled HTTP/1.1 client for one origin, used towards DynamoDB, S3, the credential endpoints and the gateway's
// origins.
//
// `send` makes exactly one attempt and never repeats it; repeating is the caller's decision (base/retry.h),
// because only the caller knows whether that is safe. `ask` and `open` give the same in pieces. The error code tells
// what happened to the request:
//   unavailable  it was certainly not processed: no connection could be made, or the pool stayed full
//   ambiguous    at least one byte of it was sent and no whole answer came back, or one that is none: its head is
//                larger than max_response_header_bytes, say
//   exhausted    the body of the answer is larger than max_response_bytes; of open(): the pool stayed full
// The client may be used from any thread. Its connections live on a strand of the executor that it was made with, which
// must keep running while calls are in flight; a call from elsewhere goes there and comes back. Cancelling a call
// closes its connection.
#pragma once

#include <memory>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/http/body_framing.h"
#include "facetheory/http/client_options.h"
#include "facetheory/http/exchange.h"
#include "facetheory/http/message.h"
#include "facetheory/http/origin.h"

namespace facetheory {

class ConnectionPool;

class HttpClient {
 public:
  HttpClient(const boost::asio::any_io_executor& executor, Origin origin, HttpClientOptions options);
  ~HttpClient();  // Calls in flight and open exchanges still finish; idle connections are closed.
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // One attempt. Any complete answer, whatever its status, is a value.
  Task<Result<HttpResponse>> send(HttpRequest request);

  // Sends a request without a body, and gives the answer in pieces, within the limits of send().
  Task<Result<std::unique_ptr<HttpExchange>>> ask(HttpRequest request);

  // Sends the head and returns; `request.body` is ignored, `body` says what the caller will write (not until_close).
  // "Connection: Upgrade" is written where there is a field Upgrade, "Connection: TE" where there is a field TE.
  Task<Result<std::unique_ptr<HttpExchange>>> open(HttpRequest request, BodyFraming body);

  const Origin& origin() const;
  // Its connections live there.
  const boost::asio::any_io_executor& executor() const;

 private:
  std::shared_ptr<ConnectionPool> pool_;
};

}  // namespace facetheory
