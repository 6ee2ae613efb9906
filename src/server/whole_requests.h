// Handlers to whom a request is one value and its answer another: the admin listener, demo sites, origins of tests.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "facetheory/base/task.h"
#include "facetheory/http/server_request.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {

// A body beyond the limit is answered 413.
using RequestHandler = std::function<Task<ServerResponse>(ServerRequest)>;
ExchangeHandler whole_requests(RequestHandler handler, std::size_t body_limit = std::size_t{1} << 20);

}  // namespace facetheory
