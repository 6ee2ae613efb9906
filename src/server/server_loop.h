// What the connections of one event loop share, and what those of all loops count. For .cc files only, since it needs
// Asio.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "facetheory/base/loop_bound.h"
#include "facetheory/http/client_limits.h"
#include "facetheory/http/message.h"
#include "facetheory/http/message_head.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/readiness.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {

class LoopConnection;  // loop_connection.h

// Connections of all event loops.
struct AllLoops {
  std::atomic<std::size_t> open = 0;
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> refused = 0;
};

struct ServerLoop {
  ServerLoop(EventLoop loop, std::shared_ptr<AllLoops> all);

  const LoopBound bound;
  const boost::asio::any_io_executor executor;
  const ExchangeHandler handler;
  const AnswerAtOnce answer_at_once;
  const Refusals refused;
  const Headers refusal_fields;
  const std::shared_ptr<AllLoops> all;

  // Touched on the loop's thread only.
  std::vector<boost::asio::ip::tcp::acceptor> acceptors;
  std::vector<LoopConnection*> connections;  // Of whatever protocol.
  std::shared_ptr<const ClientLimits> limits;
  bool draining = false;
  bool cuts_short = false;  // The time to drain is over, and what was left is closed.
  std::weak_ptr<Readiness> readiness;
  std::string received;  // A connection without bytes of its own reads into it.
  RequestHead head;      // What was found there last.
  boost::asio::steady_timer sweep;
  std::string date;  // "Date: ...\r\n", of the second `date_of`.
  std::int64_t date_of = -1;

  std::string_view date_field();
};

}  // namespace facetheory
