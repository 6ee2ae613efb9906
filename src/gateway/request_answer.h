// RequestAnswer: one request on its way to its answer, by one of three ways: from a page (page_visit.h), passed to the
// origin and back (pass_through.h), or refused. On the gateway's loop only. For .cc files only, since it needs Asio.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/gateway/answer_failure.h"
#include "facetheory/gateway/gateway_parts.h"
#include "facetheory/gateway/live_answer.h"
#include "facetheory/gateway/page_visit.h"
#include "facetheory/rules/cache_status.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/site/asked_page.h"
#include "facetheory/site/site.h"

namespace facetheory {

// The state of a request that is not answered, as x-facetheory-isr has it.
inline constexpr std::string_view kRefused = "refused";

class RequestAnswer {
 public:
  // What is referred to outlives it. `passing_failures`: requests of this loop under way for pages whose renders fail.
  RequestAnswer(GatewayParts& parts, WarmPages& warm, int& passing_failures, std::shared_ptr<const Site> site,
                std::shared_ptr<const OriginClients> passing, ServerExchange& exchange);

  Task<void> answer();

  // What became of it, in views of this. Called once, at the end.
  AccessRecord record(Duration took);

 private:
  // What is known of the page that is on its way.
  struct Streaming {
    Page page;
    Forwarded forwarded = Forwarded::uri_miss;
    bool no_room = false;  // It will not be stored.
  };
  enum class Step { done, again };

  // --- a page ---
  Task<void> serve_page(PageKey key);
  // Gives the client what was found; `again`: the engine has to be asked once more.
  Task<Step> serve(PageVisit& visit, Served served, const std::shared_ptr<LiveAnswer>& live);
  Task<Step> serve_live(PageVisit& visit, bool no_room, LiveAnswer& live);
  Task<void> serve_error(PageVisit& visit, Error error, const std::shared_ptr<LiveAnswer>& live);
  Task<void> serve_absent(Forwarded forwarded);
  Task<void> serve_unstored(PageVisit& visit, Served served, LiveAnswer& live);
  Task<void> send_hints(LiveAnswer& live);
  Task<void> send_page(PageVisit& visit, Served served, const LiveAnswer& live);
  Task<void> send_whole(ServerResponse response, Headers trailers);

  // --- while it is rendered ---
  Task<bool> stream(LiveAnswer& live, const Headers& may_vary, Streaming streaming);
  Task<bool> stream_to_its_end(LiveAnswer& live, const Headers& may_vary, const Streaming& streaming);
  ServerResponse head_of(LiveHead head, const Headers& may_vary, const Streaming& streaming);

  // --- everything else ---
  ServerResponse unstored_head(const BodyMetadata& metadata, const CacheStatus& status,
                               std::int64_t retry_at) const;
  Task<void> pass(std::string reason, Forwarded forwarded);
  Task<void> refuse(int status, std::string why, std::int64_t retry_at = 0, std::string allow = {});
  Task<void> refuse_unanswered(std::string reason, std::string told, std::int64_t retry_at);
  Task<void> answer_options(std::string allow);
  void add_retry_after(Headers& headers, std::int64_t retry_at) const;
  CutOff explain_cut();

  GatewayParts& parts_;
  WarmPages& warm_;
  int& passing_failures_;
  const std::shared_ptr<const Site> site_;
  const std::shared_ptr<const OriginClients> passing_;
  ServerExchange& exchange_;
  const ServerRequest& request_;
  AskedPage asked_;
  const RouteConfig* const route_;  // Null: none, and it is refused.

  std::string tenant_;
  bool may_stream_ = true;  // What is rendered for this request, while it is rendered.
  const Headers no_fields_ = {};
  std::string state_{kRefused};
  std::string reason_;
  std::optional<AnswerFailure> cut_;  // What has cut the answer off, where this is known already.
};

}  // namespace facetheory
