// PageVisit: looks up the page that a request asks for, and has the origin render it where that must be.
//
// What becomes of what is found is its user's business: RequestAnswer sends it to a client (request_answer.h), and
// render_page_again() makes it ready for whoever asks next (render_again.h). On the gateway's loop only. For .cc files
// only, since it needs Asio.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "facetheory/cache/engine.h"
#include "facetheory/gateway/gateway_parts.h"
#include "facetheory/gateway/variant_walk.h"
#include "facetheory/gateway/warm_pages.h"
#include "facetheory/http/client.h"
#include "facetheory/rules/cache_status.h"
#include "facetheory/rules/compression.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/site/asked_page.h"

namespace facetheory {

class LiveAnswer;  // live_answer.h

class PageVisit {
 public:
  // What is referred to outlives it. `asked` has found this key.
  PageVisit(GatewayParts& parts, WarmPages& warm, const Site& site, const ServerRequest& request,
            const AskedPage& asked, PageKey key);

  // How the page is asked for.
  struct Terms {
    // Takes what is rendered for this request, while it is. Null: nobody waits.
    std::shared_ptr<LiveAnswer> live = {};
    bool may_stream = false;    // What is rendered may be sent while it is.
    bool has_body = false;      // The request has one, which nobody reads.
    bool only_stored = false;   // Nothing is rendered.
    std::stop_token left = {};  // As in ServeRequest.
  };
  // What the engine has for the page where the visit stands.
  Task<Result<Served>> ask_engine(Terms terms);

  // Goes from variant to variant, asking at each, until one suits or there is no other. May be called again, to ask
  // once more where it stands.
  Task<Result<VariantWalk::End>> find(const VariantWalk::Ask& ask);
  bool is_suited_by(const Served& served) const { return suits(prepared(*served.body), walk_.fields()); }

  const Page& page() const { return walk_.page(); }
  const Headers& fields() const { return walk_.fields(); }
  // Says why the origin was asked, if it was.
  const std::optional<Forwarded>& forwarded() const { return forwarded_; }
  // The request names its render by an id, which is believed.
  bool names_render() const { return request_id().has_value(); }

  // The answer with this page, in the coding that the request wants, if it can be had.
  struct Ready {
    ServerResponse response = {};
    Coding coding = Coding::identity;
    std::optional<std::string_view> bytes = {};
    std::int64_t now = 0;
    bool may_be_remembered = false;
  };
  // `served` outlives the call. `origin_status`: as in AnswerContext.
  Task<Ready> make_ready(const Served& served, std::optional<int> origin_status = std::nullopt);
  // The same answer, to be given again at once. Once for a visit.
  WarmPage warm_page(const Served& served, const Ready& ready);
  // The fields that choose among the page's variants, and among those on the way to it. After warm_page().
  const std::vector<std::string>& varying() const { return varying_; }

 private:
  std::optional<std::string> request_id() const;
  HttpRequest render_request() const;
  Renderer renderer(const std::shared_ptr<LiveAnswer>& live, std::vector<std::string>& known_tags) const;
  ServeRequest serve_request(const Terms& terms) const;

  GatewayParts& parts_;
  WarmPages& warm_;
  const Site& site_;
  const ServerRequest& request_;
  const AskedPage& asked_;
  const RouteConfig& route_;
  const PageKey key_;

  VariantWalk walk_;
  WarmMoment before_ = {};  // When the engine was last asked.
  std::optional<Forwarded> forwarded_;
  int asked_engine_ = 0;   // How often: of how many pages, at most, the answer was made.
  std::vector<Key> rows_;  // Those that decided on the pages that were found on the way.
  std::vector<std::string> varying_;
};

}  // namespace facetheory
