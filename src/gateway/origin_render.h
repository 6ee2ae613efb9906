// Rendering a page by asking its origin: the Renderer that the gateway gives to the engine.
//
// The client for whom the render was begun gets the answer as it comes (live_answer.h). What is for that client alone
// does not stay with the render: it is handed over once its head is there, and the render has ended.
//
// The origin is asked with nothing but what the page's key was made of. Where the page that is being replaced has
// validators, it is asked whether that one still holds; a 304 renews it, and its body is not written again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "facetheory/bodies/body_store.h"
#include "facetheory/cache/engine.h"
#include "facetheory/gateway/prepared_page.h"
#include "facetheory/http/client.h"
#include "facetheory/metrics/metrics.h"
#include "facetheory/rules/storing.h"

namespace facetheory {

class LiveAnswer;  // live_answer.h

struct OriginRender {
  std::shared_ptr<HttpClient> origin;
  HttpRequest request;  // A GET; its headers are all that the origin learns.
  StorePolicy policy = {};
  std::vector<std::string> tags = {};              // The route's, besides those of the answer.
  std::string varying_tag = {};                    // Carried only if the answer has Vary; empty: none.
  OriginMetrics* metrics = nullptr;                // Told of each request, if it is there.
  std::size_t max_metadata = kMaxMetadataBytes;    // BodyStore::max_metadata_bytes() of where it is stored.
  std::size_t page_bytes = std::size_t{64} << 20;  // What is larger is not stored.
  std::shared_ptr<LiveAnswer> live = {};           // Null: nobody waits for it.
};

// Reads the body of the page that is replaced (Engine::body).
using ReadBody = std::function<Task<Result<std::shared_ptr<const KeptBody>>>(std::string s3_key)>;

// The outcome is not stored where the rules forbid it (storing.h), where it has more tags or header fields than can be
// stored, and where it is larger than page_bytes. Then it is handed over: `live` has it, or nobody. 5xx, 408 and 429
// have failed, and are shown whole; so is what the origin itself calls stale (x-facetheory-isr), which has not. An
// answer that is handed over while as many others are on their way as the client's max_streams says is refused: `live`
// says so. Clock and everything in `read_body` outlive the renderer.
Renderer render_from_origin(OriginRender render, ReadBody read_body, Clock& clock);

}  // namespace facetheory
