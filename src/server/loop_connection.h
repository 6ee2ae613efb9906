// LoopConnection: a client's connection as its event loop knows it, whatever protocol it speaks.
//
// The loop counts its connections, has them check their deadlines, and closes them when the server drains. How requests
// are read from one and who answers them is its own business: each request becomes a ServerExchange
// (server_exchange.h), one after the other in HTTP/1.1 (server_connection.h), several at a time in a protocol that
// interleaves them. For .cc files only, since it needs Asio.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

namespace facetheory {

struct ServerLoop;  // server_loop.h

class LoopConnection {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  LoopConnection(const LoopConnection&) = delete;
  LoopConnection& operator=(const LoopConnection&) = delete;

  // All of these on the loop's thread. Each may end the connection, which takes it out of the loop's list.
  virtual void check_deadlines(Moment now) = 0;
  virtual void close_if_idle() = 0;
  virtual void close() = 0;  // Whatever is going on.

 protected:
  // Enters the loop's list, and leaves it; on the loop's thread, which is checked.
  explicit LoopConnection(std::shared_ptr<ServerLoop> loop);
  ~LoopConnection();

  const std::shared_ptr<ServerLoop> loop_;

 private:
  std::size_t place_ = 0;  // In the loop's list.
};

}  // namespace facetheory
