// A pooled HTTP/1.1 client for one origin, used towards DynamoDB, S3 and the credential endpoints.
//
// `send` makes exactly one attempt and never repeats it; repeating is the caller's decision (aws/retry.h),
// because only the caller knows whether that is safe. The error code tells what happened to the request:
//   unavailable  it was certainly not processed: no connection could be made, or the pool stayed full
//   ambiguous    at least one byte of it was sent and no whole answer came back
//   exhausted    the answer is larger than max_response_bytes
// The client may be used from any thread; its connections live on a strand of the executor it was made with,
// which must keep running while calls are in flight. Cancelling a call closes its connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/http/message.h"

namespace facetheory {

struct Origin {
  bool tls = false;
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const Origin&, const Origin&) = default;
};

// "http://127.0.0.1:8000", "https://[::1]", "https://s3.eu-west-1.amazonaws.com/". A path other than "/", a
// user name, a query or another scheme is refused.
Result<Origin> parse_origin(std::string_view url);

// What belongs into the Host field: the port only where it is not the scheme's own.
std::string host_field(const Origin& origin);

struct HttpClientOptions {
  std::chrono::milliseconds connect_timeout{2000};  // Name look-up, TCP and TLS handshake together.
  std::chrono::milliseconds read_timeout{10000};    // Longest silence while an answer is awaited.
  std::chrono::milliseconds total_timeout{
      30000};                                     // The whole call, waiting for a pooled connection included.
  std::chrono::milliseconds idle_timeout{15000};  // An unused connection is closed after that.
  std::size_t max_connections = 64;               // Further calls wait their turn.
  std::size_t max_response_bytes = std::size_t{64} << 20;
  std::string ca_file =
      {};  // PEM file of trusted roots; empty: the system's. Verification cannot be turned off.
};

class HttpClient {
 public:
  HttpClient(const boost::asio::any_io_executor& executor, Origin origin, HttpClientOptions options);
  ~HttpClient();  // Calls in flight still finish; idle connections are closed.
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // One attempt. Any complete answer, whatever its status, is a value.
  Task<Result<HttpResponse>> send(HttpRequest request);

  const Origin& origin() const;

 private:
  class Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace facetheory
