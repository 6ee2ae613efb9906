// Has a page rendered again for nobody, and makes ready what whoever asks for it next will get. For .cc files only,
// since it needs Asio.
#pragma once

#include <memory>
#include <optional>

#include "facetheory/gateway/gateway_parts.h"
#include "facetheory/http/server_request.h"

namespace facetheory {

// The page is the one that the request asks for, if it needs to be rendered. Waits for the render. Empty: it is not
// known what came of it, or there is nothing that could be remembered. What is referred to outlives the call.
Task<std::optional<FreshAnswer>> render_page_again(GatewayParts& parts, WarmPages& warm,
                                                   std::shared_ptr<const Site> site,
                                                   const ServerRequest& request);

}  // namespace facetheory
