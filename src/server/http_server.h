// HttpServer: HTTP/1.1 on its listening addresses, over one or more event loops, each with sockets of its own
// (SO_REUSEPORT). Requests of a connection are answered one after the other, pipelined ones in order.
//
// A message whose framing could be read in two ways is answered 400 and its connection closed. A client that is slow to
// send its header or body, or idle for too long, is cut off; one that is slow to read delays nobody else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/http/client_limits.h"

namespace facetheory {

struct EventLoop;  // event_loop.h

// Connections.
struct ServerCounters {
  std::uint64_t accepted = 0;  // It counts from the beginning.
  std::uint64_t refused = 0;   // These were closed at once, beyond the limit.
  std::size_t open = 0;        // So many are open now.
};

class HttpServer {
 public:
  explicit HttpServer(std::vector<EventLoop> loops, ClientLimits limits = {});
  ~HttpServer();

  // Begins to accept, on one address after the other. "127.0.0.1", "::"; port 0 takes a free one. An address that is
  // taken is `invalid`, and the message names it. The port.
  Result<std::uint16_t> listen(const std::string& address, std::uint16_t port);

  // Changes the limits for connections that are accepted from now on.
  void set_limits(ClientLimits limits);

  // Accepts no more, closes what is idle, lets what is being answered end, and returns when all connections are gone or
  // the limit has passed; then those that are left are closed. How many these were.
  Task<std::size_t> drain(std::chrono::milliseconds limit);

  ServerCounters counters() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace facetheory
