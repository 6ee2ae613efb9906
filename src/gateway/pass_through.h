// Passing a request to the origin and its answer back, both in pieces: any method, bodies of any size, trailers,
// interim answers, Expect: 100-continue, and the bytes of another protocol after an Upgrade.
//
// Runs on the event loop of the client's connection. When the client's connection breaks, the origin's is closed;
// but not while a request that changes something has been sent whole and its answer has not been looked at.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/gateway/answer_failure.h"
#include "facetheory/http/client.h"
#include "facetheory/http/exchange.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/site/config.h"

namespace facetheory {

// The trailers of an origin that this request may get: none without "TE: trailers".
Headers trailers_for(const Headers& request, const Headers& trailers);

struct PassThrough {
  HttpRequest request;  // As the origin gets it; Upgrade, TE and Expect are added where the client has them.
  Headers added = {};   // The fields that the answer gets besides Via: Cache-Status, ...
  // A tunnel in which nothing moves for so long is closed.
  std::chrono::milliseconds tunnel_timeout = Limits{}.tunnel_timeout;
  // Whether a trailer of the request may reach the origin; besides, those that no trailer may be never do.
  std::function<bool(std::string_view name)> takes_trailer = {};
  // Set for a request that may change something. Called with the head of the answer before the client gets any of it,
  // also when the client has left meanwhile.
  std::function<Task<void>(int status, const Headers& headers)> before_answer = {};
  // Called instead where the request was sent whole and no answer came: the origin may have done what it asks.
  std::function<Task<void>()> without_answer = {};
};

// A failure: the origin gave no answer that could be used, or the client's request broke, in which case the error is as
// ServerExchange::read() says. Either has cut an answer off that had begun. Anything else ends with the exchange
// answered, or cut off because the client left.
Task<std::optional<AnswerFailure>> pass_through(ServerExchange& client, HttpClient& origin, PassThrough pass);

}  // namespace facetheory
