// EventLoop: where an HttpServer runs, and who answers there. For .cc files only, since it needs Asio.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/http/message.h"
#include "facetheory/http/message_head.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {

// Called first, for each request without a body, on the loop's thread. What it gives is the answer, which is sent;
// null: the handler must answer. Requests of the same `round` were seen to come at the same time, moments ago, and one
// look at the clock will do for them. 0: it came alone.
using AnswerAtOnce =
    std::function<const ReadyAnswer*(const RequestHead& head, const std::string& peer, std::uint64_t round)>;

// A request that the server refuses by itself, before anybody else has seen it: malformed, too large or too slow. The
// views last for the call.
struct RefusedRequest {
  int status = 0;
  std::string_view why;
  std::string_view peer;
  RequestLine line;         // As far as it could be read.
  std::uint64_t bytes = 0;  // Of the answer's body, which is sent unless the client is gone.
};
// Told of every one; on the loop's thread.
using Refusals = std::function<void(const RefusedRequest&)>;

// The executor runs on one thread, until the server's drain() is done.
struct EventLoop {
  boost::asio::any_io_executor executor;
  ExchangeHandler handler;
  AnswerAtOnce answer_at_once = {};
  Refusals refused = {};
  Headers refusal_fields =
      {};  // Of every answer that the server gives by itself, beside Cache-Control: no-store.
};

}  // namespace facetheory
