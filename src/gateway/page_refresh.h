// Has a page rendered again for nobody, and makes ready what the next one who asks for it will get. For .cc files only,
// since it needs Asio.
#pragma once

#include <memory>
#include <optional>

#include "facetheory/gateway/gateway_parts.h"
#include "facetheory/http/server_request.h"

namespace facetheory {

// Of the page that the request asks for, if it needs to be rendered. Waits for the render. Empty: it is not known what
// came of it, or there is nothing to keep ready. What is referred to outlives the call.
Task<std::optional<FreshAnswer>> refresh_page(GatewayParts& parts, WarmPages& warm,
                                              std::shared_ptr<const Site> site, const ServerRequest& request);

}  // namespace facetheory
