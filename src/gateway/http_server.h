// HttpServer: HTTP/1.1 on one listening address, over one or more event loops, each with a socket of its own
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
  std::string body;
  std::string peer;  // The client's address, without its port.
  int minor_version = 1;
};

struct ServerResponse {
  int status = 200;
  Headers headers = {};  // Without Content-Length, Connection and Date, which the server writes.
  std::string_view body = {};
  std::shared_ptr<const void> keep_alive = {};  // Owns what `body` points at.
  bool body_omitted = false;                    // HEAD, 304: the length is told, the body not sent.
};

using RequestHandler = std::function<Task<ServerResponse>(ServerRequest)>;

struct ServerLimits {
  std::size_t header_bytes = 32 * 1024;
  std::size_t body_bytes = std::size_t{16} << 20;
  std::size_t connections = 10'000;  // Of one event loop; more are closed at once.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{60'000};
  std::chrono::milliseconds write_timeout{60'000};
};

class HttpServer {
 public:
  // One listening socket per executor; each runs on one thread.
  HttpServer(std::vector<boost::asio::any_io_executor> loops, RequestHandler handler,
             ServerLimits limits = {});
  ~HttpServer();

  // Begins to accept. "127.0.0.1", "::"; port 0 takes a free one. An address that is taken is `invalid`, and the message
  // names it. The port.
  Result<std::uint16_t> listen(const std::string& address, std::uint16_t port);

  // Accepts no more, closes what is idle, lets what is being answered end, and returns when all connections are gone or
  // the limit has passed.
  Task<void> drain(std::chrono::milliseconds limit);

  std::size_t connections() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace facetheory
