// EventLoop: where an HttpServer runs, and who answers there. For .cc files only, since it needs Asio.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/http/message_head.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {

// Called first, for each request without a body, on the loop's thread. What it gives is the answer, which is sent;
// null: the handler must answer. Requests of the same `round` were seen to come at the same time, moments ago, and one
// look at the clock will do for them. 0: it came alone.
using AnswerAtOnce =
    std::function<const ReadyAnswer*(const RequestHead& head, const std::string& peer, std::uint64_t round)>;

// Told of every request that the server refuses by itself, malformed or too slow; on the loop's thread.
using Refusals = std::function<void(int status, std::string_view why, const std::string& peer)>;

// The executor runs on one thread, until the server's drain() is done.
struct EventLoop {
  boost::asio::any_io_executor executor;
  ExchangeHandler handler;
  AnswerAtOnce answer_at_once = {};
  Refusals refused = {};
};

}  // namespace facetheory
