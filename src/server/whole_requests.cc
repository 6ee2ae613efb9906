#include "facetheory/server/whole_requests.h"

#include <memory>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/http/server_request.h"

namespace facetheory {

ExchangeHandler whole_requests(RequestHandler handler, std::size_t body_limit) {
  return [handler = std::move(handler), body_limit](ServerExchange& exchange) -> Task<void> {
    ServerRequest request = exchange.request();
    ServerResponse response;
    for (bool ended = !exchange.has_body(); !ended;) {
      auto piece = co_await exchange.read();
      const bool too_large = piece ? request.body.size() + piece->size() > body_limit
                                   : piece.error().code == ErrorCode::exhausted;
      if (!piece && !too_large && piece.error().code != ErrorCode::invalid) co_return;
      if (!piece || too_large) {
        response =
            plain_response(too_large ? 413 : 400,
                           too_large ? "the body is larger than this server takes" : piece.error().message);
        [[maybe_unused]] auto refused = co_await exchange.respond(std::move(response));
        co_return;
      }
      ended = piece->empty();
      request.body += *piece;
    }
    response = co_await handler(std::move(request));
    [[maybe_unused]] auto sent = co_await exchange.respond(std::move(response));
  };
}

}  // namespace facetheory
