#include "facetheory/gateway/gateway.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/counted.h"
#include "facetheory/base/first_to_end.h"
#include "facetheory/base/letter_case.h"
#include "facetheory/base/log.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/cache/flights.h"
#include "facetheory/gateway/live_answer.h"
#include "facetheory/gateway/origin_render.h"
#include "facetheory/gateway/page_answer.h"
#include "facetheory/gateway/pass_through.h"
#include "facetheory/gateway/variant.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/http/response_writer.h"
#include "facetheory/http/server_request.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/isr/marks.h"
#include "facetheory/rules/compression.h"
#include "facetheory/rules/invalidation.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/site/asked_page.h"
#include "facetheory/site/page_key.h"

namespace facetheory {
namespace {

// How long a client that has read a page while it was rendered waits for its last byte until the page is stored.
constexpr std::chrono::seconds kStoredPatience{1};
constexpr int kMostPassedFailures = 16;  // At once and loop, of pages whose renders fail.

bool is_bodiless(int status) {
  return status == 204 || status == 304;
}

// As it came; as long as the request is there.
RequestHead view_of(const ServerRequest& request) {
  RequestHead head;
  head.method = request.method;
  head.target = request.target;
  head.minor_version = request.minor_version;
  for (const Headers::Field& field : request.headers)
    head.fields.push_back({field.name, field.value});
  return head;
}

// Whatever way the request ends: nobody takes any more of it.
struct LeavesLiveAnswer {
  const std::shared_ptr<LiveAnswer>& live;
  ~LeavesLiveAnswer() {
    if (live) live->leave();
  }
};

Task<Result<void>> purge_tag(GatewayParts& parts, std::string tenant, std::string tag) {
  auto marked = co_await mark_tag(parts.isr, std::move(tenant), std::move(tag), MarkKind::purge);
  if (!marked) co_return std::move(marked).error();
  co_return Result<void>{};
}

// All pages of an URL: the one under its plain key, and those that share a tag with it. They are purged, since RFC 9111
// (4.4) lets none of them be sent again without the origin's word; but what an operator has pinned, no visitor unpins.
Task<Result<void>> purge_pages_of_url(GatewayParts& parts, PageKey key, std::string tag, bool tagged) {
  Result<void> all;
  auto meta = co_await get_meta(parts.isr, key.page, Consistency::strong);
  const bool known = meta && *meta;
  if (known) tagged = tagged || contains_name((*meta)->tags, tag);
  if (!known || !(*meta)->pinned) {
    auto purged = co_await purge(parts.isr, key.page);
    if (!purged) all = std::move(purged).error();
    parts.engine.forget(key.page);
  }
  if (tagged) {
    auto marked = co_await purge_tag(parts, key.page.tenant, std::move(tag));
    if (!marked) all = std::move(marked);
  }
  co_return all;
}

}  // namespace

// One request on its way through.
class Gateway::Request {
 public:
  Request(GatewayParts& parts, WarmPages& warm, int& passing_failures, std::shared_ptr<const Site> site,
          std::shared_ptr<const OriginClients> passing, const ServerRequest& request,
          ServerExchange* exchange)
      : parts_(parts),
        warm_(warm),
        passing_failures_(passing_failures),
        site_(std::move(site)),
        passing_(std::move(passing)),
        exchange_(exchange),
        request_(request),
        asked_(asked_page(*site_, request_)),
        route_(asked_.route ? &site_->config.routes[*asked_.route] : nullptr) {}

  Task<void> answer();
  Task<std::optional<FreshAnswer>> refresh();

  RequestRecord record(Duration took) const {
    const auto field = [&](std::string_view name) { return request_.headers.get(name).value_or(""); };
    RequestRecord record;
    record.peer = request_.peer;
    record.method = request_.method;
    record.target = request_.target;
    record.status = exchange_->status();
    record.bytes = exchange_->bytes_sent();
    record.state = state_;
    record.host = asked_.target.host;
    record.tenant = tenant_;
    if (route_ != nullptr) record.route = route_->pattern.text();
    record.reason = reason_;
    record.request_id = field(site_->config.request_id_header);
    record.user_agent = field("user-agent");
    record.referer = field("referer");
    record.took = took;
    return record;
  }

 private:
  Task<void> serve_page(PageKey key);
  Task<void> send_page(Served served, WarmMoment before, std::optional<Forwarded> forwarded,
                       Headers trailers);
  void keep_warm(const Served& served, std::int64_t now, const WarmMoment& before, Coding coding,
                 const std::shared_ptr<const std::string>& bytes, const ServerResponse& response);
  Task<void> send_unstored(Served served, Forwarded forwarded);
  struct Streaming {
    Page page;
    Forwarded forwarded = Forwarded::uri_miss;
    bool no_room = false;  // It will not be stored.
  };
  Task<bool> stream(LiveAnswer& live, const Headers& may_vary, Streaming streaming);
  Task<bool> stream_to_its_end(LiveAnswer& live, const Headers& may_vary, const Streaming& streaming);
  ServerResponse head_of(LiveHead head, const Headers& may_vary, const Streaming& streaming);
  Task<void> respond(ServerResponse response, Headers trailers);
  ServerResponse unstored_head(const BodyMetadata& metadata, Forwarded forwarded,
                               std::int64_t retry_at) const;
  Task<void> pass(std::string reason, Forwarded forwarded);
  Task<void> refuse(int status, std::string why, std::int64_t retry_at = 0, std::string allow = {});
  Task<void> refuse_unanswered(std::string reason, std::int64_t retry_at);
  Task<void> answer_options(std::string allow);
  void add_retry_after(Headers& headers, std::int64_t retry_at) const;
  Task<void> invalidate_after(int status, const Headers& headers);
  Task<void> purge_url(PageKey key, bool tagged, Duration patience);
  Task<void> purge_group(std::string tenant, std::string group, Duration patience);
  bool may_invalidate(const RouteConfig& route) const;
  Headers naming_tenants() const;

  HttpRequest render_request(const PageKey& key, const std::vector<std::string>& varying,
                             const Headers& offered_fields) const;
  StorePolicy store_policy() const;

  GatewayParts& parts_;
  WarmPages& warm_;
  int& passing_failures_;
  const std::shared_ptr<const Site> site_;
  const std::shared_ptr<const OriginClients> passing_;
  ServerExchange* const exchange_;  // Null: nobody waits for an answer.
  const ServerRequest& request_;
  AskedPage asked_;
  const RouteConfig* const route_;  // Null: none, and it is refused.

  std::string tenant_;
  std::vector<Key> rows_;             // What decided on the pages that were looked at.
  std::vector<std::string> varying_;  // What the Vary of pages for others has named so far.
  std::optional<FreshAnswer> fresh_;  // If nobody waits for an answer.
  const Headers no_fields_ = {};
  std::string state_ = "refused";
  std::string reason_;
};

Task<void> Gateway::Request::answer() {
  if (has_passed(request_.headers, parts_.pseudonym))
    co_return co_await refuse(508,
                              "this gateway has passed this request on already: an origin leads back to it");
  if (auto* refused = std::get_if<Refused>(&asked_.found))
    co_return co_await refuse(refused->status, std::move(refused->why), 0, std::move(refused->allow));
  if (auto* options = std::get_if<OwnOptions>(&asked_.found))
    co_return co_await answer_options(std::move(options->allow));
  if (auto* bypass = std::get_if<Bypass>(&asked_.found)) {
    const Forwarded why = asked_.rules.kind == RequestKind::lookup ? Forwarded::bypass : Forwarded::method;
    co_return co_await pass(std::move(bypass->reason), why);
  }
  co_await serve_page(std::get<PageKey>(std::move(asked_.found)));
}

Task<std::optional<FreshAnswer>> Gateway::Request::refresh() {
  if (auto* key = std::get_if<PageKey>(&asked_.found)) co_await serve_page(std::move(*key));
  co_return std::move(fresh_);
}

// --- pages ------------------------------------------------------------------------------------------------------

HttpRequest Gateway::Request::render_request(const PageKey& key, const std::vector<std::string>& varying,
                                             const Headers& offered_fields) const {
  HttpRequest request;
  request.target = key.target;
  request.host = host_for(site_->config.origins.at(route_->origin), asked_.target.host);
  std::vector<std::string> keyed;
  for (const auto& [name, value] : key.headers) {
    request.headers.add(name, value);
    keyed.push_back(name);
  }
  for (const Headers::Field& field : offered_fields) {
    const bool wanted = contains_name(varying, field.name) || route_->forward.matches(field.name);
    if (wanted && !contains_name(keyed, field.name)) request.headers.add(field.name, field.value);
  }
  request.headers.set("accept-encoding", "identity");
  request.headers.add("X-Forwarded-Proto", asked_.target.scheme);
  request.headers.add("X-Forwarded-Host", asked_.target.host);
  request.headers.add("Via", via(request_.minor_version, parts_.pseudonym));
  return request;
}

StorePolicy Gateway::Request::store_policy() const {
  StorePolicy policy;
  policy.revalidate = route_->revalidate;
  policy.not_found = route_->not_found;
  policy.gone = route_->gone;
  policy.origin = asked_.target.origin();
  return policy;
}

Task<void> Gateway::Request::serve_page(PageKey key) {
  tenant_ = key.page.tenant;
  const Headers may_vary = varying_fields(site_->config, *route_, key, asked_.request("GET"));
  std::optional<Forwarded> forwarded;
  // Of the page, if nobody waits for an answer: one more look then finds what everybody will.
  bool rendered = false;
  bool may_stream = true;  // What is rendered for this request, while it is rendered.
  Page page = key.page;
  for (int step = 0; step < kMostVariantSteps; ++step) {
    OriginRender render{site_->renderers.at(route_->origin),
                        render_request(key, varying_, may_vary),
                        store_policy(),
                        key.tags,
                        url_tag(asked_.target, key.target),
                        &parts_.metrics.origin(route_->origin),
                        parts_.isr.bodies.max_metadata_bytes()};
    if (key_has_more_than_the_url(*route_) || step > 0) render.tags.push_back(render.varying_tag);
    render.page_bytes = site_->config.limits.page_bytes;
    const auto live =
        exchange_ != nullptr ? std::make_shared<LiveAnswer>(parts_.isr.clock, parts_.live) : nullptr;
    const LeavesLiveAnswer at_last{live};
    render.live = live;
    const std::vector<std::string> known_tags = render.tags;
    ReadBody read_body = [&engine = parts_.engine](std::string s3_key) {
      return engine.body(std::move(s3_key));
    };
    Renderer renderer = render_from_origin(std::move(render), std::move(read_body), parts_.isr.clock);

    ServeRequest serve;
    serve.page = page;
    serve.tags = known_tags;
    serve.policy = route_->policy;
    serve.policy.render_limit = site_->config.origins.at(route_->origin).render_timeout;
    serve.only_if_cached = asked_.rules.only_if_cached || asked_.rules.no_store || rendered;
    // Of a page that is not stored these ask for less than all of it, and the origin can give just that. A body that nobody
    // reads is not given to an origin that may take it for another request.
    const bool has_body = exchange_ != nullptr && exchange_->has_body();
    serve.renders_missing = has_body || (!asked_.rules.head && !asked_.rules.range);
    // A part, or no more than the head, can only be told of a page that is whole.
    const bool wants_all = !asked_.rules.head && !asked_.rules.range && !has_condition(asked_.headers);
    if (live && may_stream && wants_all) serve.readable = live->readable();
    const bool takes_ids = asked_.trusted && route_->policy.publisher == Publisher::here;
    const auto id = takes_ids ? asked_.headers.get(site_->config.request_id_header) : std::nullopt;
    if (id && !id->empty()) {
      // Under another deploy the same id is another request. The id stays in the key: the CLI's key of a deploy is of the page
      // instead, which would be rendered once and no more.
      const std::string& deploy = site_->config.deploy_id;
      serve.request_id = deploy.empty() ? std::string(*id) : key_of_version(*id, deploy, "");
      const PublishPolicy policy{route_->revalidate, route_->policy.history, route_->policy.ttl};
      serve.inputs = request_inputs(page, policy);
      serve.other_hashes = hashes_without_policy(page, {});
    }
    if (exchange_ != nullptr) serve.left = exchange_->probably_left();
    std::optional<Forwarded> seen;  // Of the page that stood there before.
    serve.review = [&](const Body& body, const MetaRow& meta, PageState state) {
      const PreparedPage& stored = prepared(body);
      Review review = review_page(stored, meta, state, asked_.rules, parts_.isr.now());
      review.suits = suits(stored, may_vary);
      const bool fresh = state == PageState::fresh && age_of(stored, meta, parts_.isr.now()).fresh_for > 0;
      seen = fresh ? Forwarded::request : Forwarded::stale;
      return review;
    };
    const WarmMoment before = warm_.moment();
    auto served = co_await parts_.engine.serve(std::move(serve), std::move(renderer));
    if (exchange_ == nullptr) {
      if (!served) co_return;
      const bool is_there = served->as == ServedAs::hit || served->as == ServedAs::other;
      if (!is_there) {
        if (std::exchange(rendered, true)) co_return;
        co_await parts_.engine.wait_for_render(page, route_->policy.wait_limit);
        continue;
      }
    }
    if (!served) {
      // The origin was asked for this request, more than once if it closed an idle connection. That will do.
      if (live && live->has_failed())
        co_return co_await refuse_unanswered(served.error().message, served.error().retry_at);
      // While all wait after a failed render: no page is no reason to hide what the origin says now.
      const bool backs_off = served.error().code == ErrorCode::unavailable && served.error().retry_at > 0;
      if (backs_off && passing_failures_ < kMostPassedFailures) {
        const Counted counted(passing_failures_);
        co_return co_await pass("renders of it have failed: " + served.error().message,
                                forwarded.value_or(Forwarded::uri_miss));
      }
      state_ = name(ServedAs::failed);
      reason_ = served.error().message;  // For the log: it may name what is behind the gateway.
      const std::int64_t retry_at = served.error().retry_at;
      if (served.error().code == ErrorCode::invalid && id && !id->empty()) {
        co_return co_await refuse(409, "the " + site_->config.request_id_header +
                                           " of this request was used for this page before, under another "
                                           "policy of its route; take a fresh one");
      }
      co_return co_await refuse(status_of(served.error().code), "this page cannot be made at the moment",
                                retry_at);
    }
    if (seen) forwarded = seen;
    for (Key& row : deciding_rows(page, served->meta.tags))
      rows_.push_back(std::move(row));
    // The first render of a page does not know what the origin varies it by.
    const bool for_others = served->as == ServedAs::miss && !suits(prepared(*served->body), may_vary);
    if (for_others) served->as = ServedAs::other;
    switch (served->as) {
      case ServedAs::other: {
        // Its Vary says what else of the request makes a different page.
        const PreparedPage& other = prepared(*served->body);
        varying_.insert(varying_.end(), other.vary.begin(), other.vary.end());
        auto next = next_variant(*route_, page, other, may_vary);
        if (!next && exchange_ == nullptr) co_return;
        if (!next) co_return co_await pass("there is no key for its variant", Forwarded::vary_miss);
        page = *std::move(next);
        forwarded = Forwarded::vary_miss;
        rendered = false;
        continue;
      }
      case ServedAs::pass:
        co_return co_await pass(std::move(served->reason), forwarded.value_or(Forwarded::uri_miss));
      case ServedAs::live: {
        Streaming streaming{page, forwarded.value_or(Forwarded::uri_miss), served->no_room};
        const bool streamed = co_await stream(*live, may_vary, std::move(streaming));
        if (streamed) co_return;
        if (live->has_failed())
          co_return co_await refuse_unanswered("the origin gave hints and no answer", 0);
        may_stream = false;  // It is for others: then this one waits for it like those others.
        continue;
      }
      case ServedAs::absent:
        if (asked_.rules.no_store && !asked_.rules.only_if_cached)
          co_return co_await pass("the request says no-store", Forwarded::request);
        if (!asked_.rules.only_if_cached)
          co_return co_await pass("the page is not stored, and the request is not for all of it",
                                  forwarded.value_or(Forwarded::uri_miss));
        state_ = name(served->as);
        co_return co_await refuse(
            504, "nothing is stored that could answer this, and the request says only-if-cached");
      case ServedAs::failed:
      case ServedAs::uncached:
        if (served->body->metadata.status == 0) {
          const Forwarded why = forwarded.value_or(Forwarded::uri_miss);
          Streaming streaming{page, why};
          const bool streamed = live && co_await stream(*live, may_vary, std::move(streaming));
          if (streamed) co_return;
          co_return co_await pass("it is not for everybody, or larger than pages may be", why);
        }
        // Of a page that is not stored no variant can be found: the origin is asked for this one.
        if (served->as == ServedAs::uncached && !suits(prepared(*served->body), may_vary))
          co_return co_await pass("it varies by what the render was not told", Forwarded::vary_miss);
        co_return co_await send_unstored(*std::move(served), forwarded.value_or(Forwarded::uri_miss));
      default: {
        Headers trailers = live ? live->trailers() : Headers{};
        co_return co_await send_page(*std::move(served), before, forwarded, std::move(trailers));
      }
    }
  }
  if (exchange_ == nullptr) co_return;
  co_await pass("Vary leads from variant to variant", Forwarded::vary_miss);
}

Task<void> Gateway::Request::send_page(Served served, WarmMoment before, std::optional<Forwarded> forwarded,
                                       Headers trailers) {
  state_ = name(served.as);
  reason_ = served.reason;
  const PreparedPage& page = prepared(*served.body);
  Coding coding = coding_for(page, request_.method, asked_.headers);
  auto bytes = page.coded(coding);
  if (!bytes) bytes = co_await parts_.compressor.coded(served.body, coding);
  const bool as_wished = bytes != nullptr;
  if (!as_wished) {
    coding = Coding::identity;
    bytes = page.coded(coding);
  }
  const AnswerContext context{request_.method, asked_.headers, parts_.isr.now(), forwarded};
  ServerResponse response = answer_with_page(served, bytes, coding, context);
  const bool may_be_stale = route_->policy.mode == ServeMode::swr ||
                            context.now < served_stale_until(page, served.meta, route_->policy);
  const bool while_rendered = served.as == ServedAs::stale && may_be_stale && before.table_version;
  if (as_wished && (served.as == ServedAs::hit || while_rendered))
    keep_warm(served, context.now, before, coding, bytes, response);
  if (exchange_ == nullptr) co_return;
  co_await respond(std::move(response), std::move(trailers));
}

// A whole answer, with the origin's trailers if it has come just now and the client takes them.
Task<void> Gateway::Request::respond(ServerResponse response, Headers trailers) {
  trailers = trailers_for(request_.headers, trailers);
  const bool has_body = !response.body_omitted && !is_bodiless(response.status) && request_.method == "GET";
  if (trailers.empty() || !has_body || request_.minor_version == 0) {
    [[maybe_unused]] auto sent = co_await exchange_->respond(std::move(response));
    co_return;
  }
  auto sent = co_await exchange_->begin(response.status, std::move(response.headers), std::nullopt);
  if (sent && !response.body.empty()) sent = co_await exchange_->write(response.body);
  if (sent) sent = co_await exchange_->finish(std::move(trailers));
}

// So that the next one who asks for the same need not come this way.
void Gateway::Request::keep_warm(const Served& served, std::int64_t now, const WarmMoment& before,
                                 Coding coding, const std::shared_ptr<const std::string>& bytes,
                                 const ServerResponse& response) {
  if (served.meta.pinned) return;  // A pin's window is nobody's business.
  const bool is_for_another_loop = exchange_ == nullptr;
  const std::string_view key =
      is_for_another_loop ? std::string_view() : warm_.key_of(view_of(request_), asked_.trusted);
  if (key.empty() && !is_for_another_loop) return;
  const PreparedPage& page = prepared(*served.body);
  WarmPage warm;
  warm.body = served.body;
  warm.touched = page.touched;
  if (!is_bodiless(response.status)) {
    const auto fixed = page.fixed(coding, parts_.fixed);
    warm.fixed = fixed != nullptr;
    warm.bytes = fixed ? fixed->bytes() : *bytes;
  }
  warm.rows = std::move(rows_);
  warm.judged_at = now;
  warm.as = served.as;
  if (before.table_version) warm.stale_until = served_stale_until(page, served.meta, route_->policy);
  warm.made_at = generation_of(served.meta) - page.age;
  warm.fresh_until = served.meta.generated_at + served.meta.revalidate_seconds;
  if (served.as == ServedAs::stale) {
    warm.wanted_at = now;  // Its render has begun.
    const bool window_ended = served.meta.generated_at != 0 && now >= warm.fresh_until;
    warm.for_a_second = !window_ended || now >= warm.stale_until;
  }
  warm.moment = before;
  warm.known_at = served.known_at;
  warm.host = asked_.target.host;
  warm.tenant = tenant_;
  warm.route = route_;
  warm.status = response.status;
  append_status_line(warm.head, response.status);
  for (const Headers::Field& field : response.headers) {
    const bool of_this_second = same_text(field.name, "age") || same_text(field.name, "cache-status") ||
                                same_text(field.name, "x-facetheory-isr");
    if (!of_this_second || warm.for_a_second) append_field(warm.head, field.name, field.value);
  }
  if (!is_bodiless(response.status)) append_field(warm.head, "Content-Length", std::to_string(bytes->size()));
  varying_.insert(varying_.end(), page.vary.begin(), page.vary.end());
  if (!is_for_another_loop) {
    warm_.keep(key, varying_, std::move(warm));
  } else if (warm_.seal(warm)) {
    fresh_ = FreshAnswer{site_, std::move(varying_), std::move(warm)};
  }
}

// What the origin answers to this request's own render, while it comes and while the client is there. False: nothing of it
// can be sent.
Task<bool> Gateway::Request::stream(LiveAnswer& live, const Headers& may_vary, Streaming streaming) {
  bool streamed = true;
  const auto streaming_it = [&]() -> Task<void> {
    streamed = co_await stream_to_its_end(live, may_vary, streaming);
  };
  // Whoever is let go may be in the middle of not reading.
  const auto ending = [&]() -> Task<void> {
    Task<void> leaving = exchange_->client_left();
    Task<void> let_go = live.until_let_go();
    co_await first_to_end(std::move(leaving), std::move(let_go));
  };
  Task<void> all = streaming_it();
  Task<void> end = ending();
  co_await first_to_end(std::move(all), std::move(end));
  co_return streamed;
}

Task<bool> Gateway::Request::stream_to_its_end(LiveAnswer& live, const Headers& may_vary,
                                               const Streaming& streaming) {
  std::optional<std::uint64_t> left;  // Of the bytes that were announced.
  std::string last;  // Kept back until the page is stored: who has all of it may ask for it again.
  for (;;) {
    auto next = co_await live.next();
    Result<void> sent;
    if (auto* hint = std::get_if<LiveHint>(&next)) {
      Headers fields = end_to_end(hint->headers);
      sent = co_await exchange_->interim(hint->status, std::move(fields));
    } else if (auto* head = std::get_if<LiveHead>(&next)) {
      left = head->length;
      ServerResponse response = head_of(*std::move(head), may_vary, streaming);
      if (response.status == 0) co_return false;
      sent = co_await exchange_->begin(response.status, std::move(response.headers), left);
    } else if (auto* piece = std::get_if<std::string>(&next)) {
      if (left) *left -= std::min<std::uint64_t>(*left, piece->size());
      if (left == 0U) {
        last = piece->back();
        piece->pop_back();
      }
      sent = co_await exchange_->write(*piece);
    } else if (auto* end = std::get_if<LiveEnd>(&next)) {
      if (!exchange_->answered()) co_return false;
      if (state_ == name(ServedAs::miss))
        co_await parts_.engine.wait_for_render(streaming.page, kStoredPatience);
      sent = co_await exchange_->write(last);
      Headers trailers = trailers_for(request_.headers, end->trailers);
      sent = co_await exchange_->finish(std::move(trailers));
      co_return true;
    } else if (std::holds_alternative<LiveRefusal>(next)) {
      if (!exchange_->answered()) {
        state_ = name(ServedAs::failed);
        reason_ = "as many answers for one client each are on their way as origins.*.streams allows";
        co_await refuse(503, "too much is asked of the origin at once", parts_.isr.now() + 1);
      }
      co_return true;
    } else {
      co_return exchange_
          ->answered();  // Cut off, where some of it was sent: the client sees that something is missing.
    }
    if (!sent) co_return true;  // The client has left.
  }
}

// Of an answer whose body is still to come; its status is 0 if it is a page for other requests than this one.
ServerResponse Gateway::Request::head_of(LiveHead head, const Headers& may_vary, const Streaming& streaming) {
  Rendered& shape = head.shape;
  Served served;
  served.as = ServedAs::miss;
  served.meta = would_be(parts_.isr, shape);
  served.body = prepare_page(std::move(shape.body)).body;
  ServerResponse response;
  response.status = 0;
  const PreparedPage& page = prepared(*served.body);
  if (!suits(page, may_vary)) return response;
  if (!shape.store || streaming.no_room) {
    state_ = name(ServedAs::uncached);
    reason_ = shape.store ? "there is no room for it on the disk" : std::move(shape.why_not_stored);
    return unstored_head(page.metadata, streaming.forwarded, 0);
  }
  state_ = name(served.as);
  reason_ = "it was rendered";
  const AnswerContext context{request_.method, asked_.headers, parts_.isr.now(), streaming.forwarded};
  response = answer_with_page(served, page.coded(Coding::identity), Coding::identity, context);
  // Whoever gets it whole may get it compressed.
  const bool large = !head.length || *head.length >= kLeastBytesToCompress;
  if (page.may_be_coded && large && !contains_name(page.vary, "accept-encoding")) {
    std::string varies(response.headers.get("vary").value_or(""));
    varies += varies.empty() ? "Accept-Encoding" : ", Accept-Encoding";
    response.headers.set("Vary", std::move(varies));
  }
  return response;
}

// As it came from the origin.
Task<void> Gateway::Request::send_unstored(Served served, Forwarded forwarded) {
  state_ = name(served.as);
  reason_ = served.reason;
  ServerResponse response = unstored_head(served.body->metadata, forwarded, served.retry_at);
  response.body = served.body->bytes;
  response.keep_alive = served.body;
  [[maybe_unused]] auto sent = co_await exchange_->respond(std::move(response));
}

ServerResponse Gateway::Request::unstored_head(const BodyMetadata& metadata, Forwarded forwarded,
                                               std::int64_t retry_at) const {
  ServerResponse response;
  response.status = metadata.status;
  if (!metadata.content_type.empty()) response.headers.add("Content-Type", metadata.content_type);
  int minor_version = 1;
  for (const auto& [name, value] : metadata.headers) {
    if (name == kReceivedField) {
      minor_version = 0;
    } else if (name != kVariantField && name != kWindowField) {
      response.headers.add(name, value);
    }
  }
  add_retry_after(response.headers, retry_at);
  response.headers.add("Via", via(minor_version));
  CacheStatus status;
  status.forwarded = forwarded;
  status.forwarded_status = metadata.status;
  add_cache_status(response.headers, status, state_);
  return response;
}

// Where the origin has not said it itself.
void Gateway::Request::add_retry_after(Headers& headers, std::int64_t retry_at) const {
  const std::int64_t wait = retry_at - parts_.isr.now();
  if (wait > 0 && !headers.get("retry-after")) headers.add("Retry-After", std::to_string(wait));
}

// The origin was asked for this request's render, and that came to nothing.
Task<void> Gateway::Request::refuse_unanswered(std::string reason, std::int64_t retry_at) {
  state_ = name(ServedAs::failed);
  reason_ = std::move(reason);
  co_await refuse(502, "the origin gave no answer", retry_at);
}

Task<void> Gateway::Request::refuse(int status, std::string why, std::int64_t retry_at, std::string allow) {
  if (reason_.empty()) reason_ = why;
  ServerResponse response = plain_response(status, std::move(why));
  // Who is refused may have sent more in the belief not to be: what follows a CONNECT is meant for the tunnel.
  response.close = status < 500 || status == 501;
  add_retry_after(response.headers, retry_at);
  if (status == 405) response.headers.add("Allow", std::move(allow));
  response.headers.add("Cache-Control", "no-store");
  response.headers.add("X-FaceTheory-ISR", state_);
  [[maybe_unused]] auto sent = co_await exchange_->respond(std::move(response));
}

Task<void> Gateway::Request::answer_options(std::string allow) {
  state_ = "own";
  ServerResponse response;
  response.headers.add("Allow", std::move(allow));
  response.headers.add("X-FaceTheory-ISR", state_);
  [[maybe_unused]] auto sent = co_await exchange_->respond(std::move(response));
}

// --- what is no page --------------------------------------------------------------------------------------------

Task<void> Gateway::Request::pass(std::string reason, Forwarded forwarded) {
  state_ = name(ServedAs::pass);
  reason_ = std::move(reason);
  PassThrough pass;
  pass.request.method = request_.method;
  pass.request.target = asked_.target.origin_form();
  pass.request.host = host_for(site_->config.origins.at(route_->origin), asked_.target.host);
  const auto withheld = [this, asked = asked_.request(request_.method)](std::string_view field) {
    return withheld_from_origin(site_->config, *route_, asked, field);
  };
  std::string forwarded_for = request_.peer;
  for (const Headers::Field& field : asked_.headers) {
    if (same_text(field.name, "x-forwarded-for") && asked_.trusted)
      forwarded_for = field.value + ", " + request_.peer;
    if (!same_text(field.name, "content-length") && !withheld(field.name))
      pass.request.headers.add(field.name, field.value);
  }
  if (asked_.hops_left) pass.request.headers.set("Max-Forwards", std::to_string(*asked_.hops_left));
  pass.takes_trailer = [this, withheld](std::string_view name) {
    return !withheld(name) && !names_tenant(site_->config, name);
  };
  pass.request.headers.add("X-Forwarded-For", forwarded_for);
  pass.request.headers.add("X-Forwarded-Proto", asked_.target.scheme);
  pass.request.headers.add("X-Forwarded-Host", asked_.target.host);
  pass.request.headers.add("Via", via(request_.minor_version, parts_.pseudonym));

  CacheStatus status;
  status.forwarded = forwarded;
  pass.tunnel_timeout = site_->config.limits.tunnel_timeout;
  add_cache_status(pass.added, status, state_);
  if (asked_.rules.kind == RequestKind::invalidate) {
    pass.before_answer = [this](int answered, const Headers& headers) {
      return invalidate_after(answered, headers);
    };
    pass.without_answer = [this] { return invalidate_after(200, no_fields_); };
  }
  OriginTiming timing(&parts_.metrics.origin(route_->origin), parts_.isr.clock);
  auto passed = co_await pass_through(*exchange_, *passing_->at(route_->origin), std::move(pass));
  if (passed) timing.answered(exchange_->status());
  if (passed || exchange_->answered()) co_return;
  reason_ = passed.error().message;
  if (passed.error().code == ErrorCode::exhausted)
    co_return co_await refuse(503, "too much is asked of the origin at once", parts_.isr.now() + 1);
  co_await refuse(502, "the origin gave no answer");
}

// Without what else makes a different page of an URL.
Headers Gateway::Request::naming_tenants() const {
  Headers kept;
  for (const std::string& name : site_->config.boundary_headers) {
    if (const auto value = asked_.headers.get(name)) kept.add(name, std::string(*value));
  }
  return kept;
}

// Before the client learns that its change was made, nobody is served what was true before it; unless the table takes too
// long, which must not keep the answer from the client: then the purges go on in the background.
Task<void> Gateway::Request::invalidate_after(int status, const Headers& headers) {
  const Invalidation found =
      invalidated_by(request_.method, asked_.target.origin(), asked_.target.sent_form(), status, headers);
  if (found.empty()) co_return;
  Clock& clock = parts_.isr.clock;
  const Duration until = clock.monotonic() + PurgeRate::kPatience;
  for (const std::string& text : found.targets) {
    const std::size_t question = std::min(text.find('?'), text.size());
    const std::string_view sent_path = std::string_view(text).substr(0, question);
    auto path = normalise_path(sent_path);
    if (!path) continue;
    const auto match = site_->routes.match(asked_.target.host, "GET", *path);
    if (!match) continue;
    const RouteConfig& route = site_->config.routes[match->route];
    const Headers tenants = naming_tenants();
    const std::string_view query = std::string_view(text).substr(std::min(question + 1, text.size()));
    // FaceTheory's key has two spellings of one path as two pages.
    const bool two_spellings = route.key == KeyStyle::facetheory && sent_path != *path;
    for (const bool as_sent : {true, false}) {
      if (!as_sent && !two_spellings) continue;
      const PageRequest bare{tenants, "GET", asked_.target.scheme, asked_.target.host,
                             *path,   query, asked_.trusted,       as_sent ? sent_path : std::string_view()};
      auto key = page_key(site_->config, route, match->variables, bare);
      if (key && std::holds_alternative<PageKey>(*key) && may_invalidate(route))
        co_await purge_url(std::get<PageKey>(*std::move(key)), key_has_more_than_the_url(route),
                           until - clock.monotonic());
    }
  }
  for (const std::string& group : found.groups) {
    auto tenant = tenant_of(site_->config, *route_, asked_.request(request_.method));
    if (tenant) co_await purge_group(*std::move(tenant), group, until - clock.monotonic());
  }
}

bool Gateway::Request::may_invalidate(const RouteConfig& route) const {
  switch (route.unsafe_invalidates) {
    case UnsafeInvalidates::same_site:
      return is_same_site(request_.headers, asked_.target.host);
    case UnsafeInvalidates::always:
      return true;
    case UnsafeInvalidates::never:
      break;
  }
  return false;
}

// What is purged may outlive the request.
Task<void> Gateway::Request::purge_url(PageKey key, bool tagged, Duration patience) {
  std::string page = key.page.pk;
  std::string url = asked_.target.origin() + key.target;
  std::string tag = url_tag(asked_.target, key.target);
  PurgeRate::Purge purge = [&parts = parts_, key = std::move(key), tag = std::move(tag), tagged] {
    return purge_pages_of_url(parts, key, tag, tagged);
  };
  co_await parts_.purges.purge(parts_.loop, std::move(page), std::move(url), std::move(purge), patience);
}

Task<void> Gateway::Request::purge_group(std::string tenant, std::string group, Duration patience) {
  std::string tag = group_tag(asked_.target.origin(), group);
  std::string row = tag_pk(tenant, tag);
  std::string name = "the cache group " + quoted_for_message(group);
  PurgeRate::Purge purge = [&parts = parts_, tenant = std::move(tenant), tag = std::move(tag)] {
    return purge_tag(parts, tenant, tag);
  };
  co_await parts_.purges.purge(parts_.loop, std::move(row), std::move(name), std::move(purge), patience);
}

std::shared_ptr<LiveMemory> make_live_memory(std::size_t most) {
  return std::make_shared<LiveMemory>(most);
}

// --- the gateway ------------------------------------------------------------------------------------------------

Gateway::Gateway(GatewayParts parts, std::shared_ptr<const Site> site)
    : parts_(std::move(parts)),
      loop_(LoopBound::to_loop(parts_.loop, "a gateway")),
      metrics_(parts_.metrics.add_loop()),
      warm_(loop_, parts_.engine, parts_.isr, site->config.pointer_ttl, parts_.warm_memory) {
  take(std::move(site));
}
Gateway::~Gateway() = default;

void Gateway::use(std::shared_ptr<const Site> site) {
  loop_.check();
  take(std::move(site));
}

void Gateway::take(std::shared_ptr<const Site> site) {
  site_ = std::move(site);
  warm_.configure(site_->config);
  passing_ = std::make_shared<const OriginClients>(passing_clients(site_->config, parts_.loop));
}

Task<void> Gateway::handle(ServerExchange& exchange) {
  loop_.check();
  const Duration began = parts_.isr.clock.monotonic();
  Request request(parts_, warm_, passing_failures_, site_, passing_, exchange.request(), &exchange);
  std::exception_ptr interrupted;
  try {
    co_await request.answer();
  } catch (...) {
    interrupted = std::current_exception();
  }
  const RequestRecord record = request.record(parts_.isr.clock.monotonic() - began);
  tell(record);
  if (interrupted) std::rethrow_exception(interrupted);
}

Task<std::optional<FreshAnswer>> Gateway::refresh(ServerRequest request) {
  loop_.check();
  Request refreshed(parts_, warm_, passing_failures_, site_, passing_, request, nullptr);
  co_return co_await refreshed.refresh();
}

void Gateway::was_refreshed(const ServerRequest& request, std::optional<FreshAnswer> answer) {
  loop_.check();
  const std::string_view key = warm_.key_of(view_of(request), is_trusted(site_->config, request.peer));
  if (key.empty()) return;
  warm_.was_seen_to(key);
  if (answer && answer->site == site_) warm_.take_over(key, answer->vary, std::move(answer->page));
}

// What the access log and the loop's metrics are told by, so that they too are used on this thread alone.
void Gateway::tell(const RequestRecord& record) {
  loop_.check();
  metrics_.answered(record.state, record.status, record.bytes, record.took);
  if (parts_.on_answered) parts_.on_answered(record);
}

void Gateway::refused(int status, std::string_view why, const std::string& peer) {
  RequestRecord record;
  record.peer = peer;
  record.method = "-";
  record.target = "-";
  record.status = status;
  record.state = "refused";
  record.reason = why;
  tell(record);
}

const ReadyAnswer* Gateway::ready(const RequestHead& head, const std::string& peer, std::uint64_t round) {
  loop_.check();
  if (round == 0 || round != round_) {
    round_ = round;
    round_began_ = parts_.isr.clock.monotonic();
    round_second_ = parts_.isr.now();
  }
  const std::string_view key = warm_.key_of(head, is_trusted(site_->config, peer));
  const WarmPage* page = key.empty() ? nullptr : warm_.find(key, round_second_);
  if (page == nullptr) return nullptr;
  std::shared_ptr<const Body> body = page->body.lock();
  if (!body) return nullptr;
  if (!page->touched->load(std::memory_order_relaxed)) page->touched->store(true, std::memory_order_relaxed);
  ready_.head = page->head;
  ready_.body = page->bytes;
  ready_.fixed = page->fixed;
  ready_.owner = std::move(body);

  RequestRecord record;
  record.peer = peer;
  record.method = head.method;
  record.target = head.target;
  record.status = page->status;
  record.bytes = ready_.body.size();
  record.state = name(page->as);
  record.host = page->host;
  record.tenant = page->tenant;
  record.route = page->route->pattern.text();
  if (parts_.on_answered) {
    const auto field = [&](std::string_view wanted) {
      const FieldView* found = find_field(head.fields, wanted);
      return found != nullptr ? found->value : std::string_view();
    };
    record.request_id = field(site_->config.request_id_header);
    record.user_agent = field("user-agent");
    record.referer = field("referer");
  }
  record.took = parts_.isr.clock.monotonic() - round_began_;
  tell(record);
  if (warm_.wants_render() && parts_.on_stale) parts_.on_stale(request_of(head, peer));
  return &ready_;
}

}  // namespace facetheory
