// Rendering a page by asking its origin: the Renderer that the gateway gives to the engine.
//
// The origin is asked with nothing but what the page's key was made of. Where the page that is being replaced has
// validators, it is asked whether that one still holds; a 304 renews it, and its body is not written again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "facetheory/cache/engine.h"
#include "facetheory/gateway/metrics.h"
#include "facetheory/gateway/prepared_page.h"
#include "facetheory/gateway/storing.h"
#include "facetheory/http/client.h"

namespace facetheory {

struct OriginRender {
  std::shared_ptr<HttpClient> origin;
  HttpRequest request;  // A GET; its headers are all that the origin learns.
  StorePolicy policy = {};
  std::vector<std::string> tags = {};  // Of the route, besides those of the answer.
  std::string varying_tag = {};        // Carried only if the answer has Vary; empty: none.
  OriginMetrics* metrics = nullptr;    // Told of each request, if it is there.
};

// Reads the body of the page that is replaced (Engine::body).
using ReadBody = std::function<Task<Result<std::shared_ptr<const Body>>>(std::string s3_key)>;

// The outcome is not stored where the rules forbid it (storing.h), where it has more tags or header fields than can be
// kept, and where it is larger than the client's max_response_bytes. Of that one, of an event stream, and of any other
// that is not to be stored and does not end soon after its head, there is nothing to show: its status is 0.
// 5xx, 408 and 429 have failed. Clock and everything in `read_body` outlive the renderer.
Renderer render_from_origin(OriginRender render, ReadBody read_body, Clock& clock);

}  // namespace facetheory
