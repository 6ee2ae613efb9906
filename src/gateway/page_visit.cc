#include "facetheory/gateway/page_visit.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/letter_case.h"
#include "facetheory/gateway/live_answer.h"
#include "facetheory/gateway/origin_render.h"
#include "facetheory/gateway/page_answer.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/response_writer.h"
#include "facetheory/isr/marks.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/requests.h"
#include "facetheory/rules/preconditions.h"
#include "facetheory/rules/replay.h"
#include "facetheory/rules/vary.h"

namespace facetheory {
namespace {

StorePolicy store_policy_of(const RouteConfig& route, const RequestTarget& target) {
  StorePolicy policy;
  policy.revalidate = route.revalidate;
  policy.not_found = route.not_found;
  policy.gone = route.gone;
  policy.origin = target.origin();
  return policy;
}

// A part, or no more than the head, can only be told of a page that is whole.
bool wants_all(const AskedPage& asked) {
  return !asked.rules.head && !asked.rules.range && !has_condition(asked.headers);
}

}  // namespace

PageVisit::PageVisit(GatewayParts& parts, WarmPages& warm, const Site& site, const ServerRequest& request,
                     const AskedPage& asked, PageKey key)
    : parts_(parts),
      warm_(warm),
      site_(site),
      request_(request),
      asked_(asked),
      route_(site.config.routes[*asked.route]),
      key_(std::move(key)),
      walk_(site.config, route_, key_, asked.request("GET")) {}

std::optional<std::string> PageVisit::request_id() const {
  if (!asked_.trusted || route_.policy.publisher != Publisher::here) return std::nullopt;
  const auto id = asked_.headers.get(site_.config.request_id_header);
  if (!id || id->empty()) return std::nullopt;
  return std::string(*id);
}

HttpRequest PageVisit::render_request() const {
  HttpRequest request;
  request.target = key_.target;
  request.host = host_for(site_.config.origins.at(route_.origin), asked_.target.host);
  std::vector<std::string> keyed;
  for (const auto& [name, value] : key_.headers) {
    request.headers.add(name, value);
    keyed.push_back(name);
  }
  for (const Headers::Field& field : walk_.fields()) {
    const bool wanted = contains_name(walk_.varying(), field.name) || route_.forward.matches(field.name);
    if (wanted && !contains_name(keyed, field.name)) request.headers.add(field.name, field.value);
  }
  request.headers.set("accept-encoding", "identity");
  request.headers.add("X-Forwarded-Proto", asked_.target.scheme);
  request.headers.add("X-Forwarded-Host", asked_.target.host);
  request.headers.add("Via", via(request_, parts_.pseudonym));
  return request;
}

Renderer PageVisit::renderer(const std::shared_ptr<LiveAnswer>& live,
                             std::vector<std::string>& known_tags) const {
  OriginRender render{site_.renderers.at(route_.origin),      render_request(),
                      store_policy_of(route_, asked_.target), key_.tags,
                      url_tag(asked_.target, key_.target),    &parts_.metrics.origin(route_.origin),
                      parts_.isr.bodies.max_metadata_bytes()};
  if (key_has_more_than_the_url(route_) || walk_.is_at_variant()) render.tags.push_back(render.varying_tag);
  render.page_bytes = site_.config.limits.page_bytes;
  render.live = live;
  known_tags = render.tags;
  ReadBody read_body = [&engine = parts_.engine](std::string s3_key) {
    return engine.body(std::move(s3_key));
  };
  return render_from_origin(std::move(render), std::move(read_body), parts_.isr.clock);
}

ServeRequest PageVisit::serve_request(const Terms& terms) const {
  ServeRequest serve;
  serve.page = page();
  serve.policy = route_.policy;
  serve.policy.render_limit = site_.config.origins.at(route_.origin).render_timeout;
  serve.only_if_cached = asked_.rules.only_if_cached || asked_.rules.no_store || terms.only_stored;
  // These ask for less than all of a page, and the origin can give just that where the page is not stored. A body that
  // nobody reads is not given to an origin that may take it for another request.
  serve.renders_missing = terms.has_body || (!asked_.rules.head && !asked_.rules.range);
  if (terms.live && terms.may_stream && wants_all(asked_)) serve.readable = terms.live->readable();
  if (const auto id = request_id()) {
    // Under another deploy or policy version the same id is another request. The id stays in the key: the CLI's key of
    // a version is of the page instead, which would be rendered once and no more.
    const RequestVersion& version = site_.config.request_version;
    serve.request_id = version.empty() ? *id : key_of_version(*id, version.deploy_id, version.policy_version);
    const PublishPolicy policy{route_.revalidate, route_.policy.history, route_.policy.ttl};
    serve.inputs = request_inputs(page(), policy);
    serve.other_hashes = hashes_without_policy(page(), {});
  }
  serve.left = terms.left;
  return serve;
}

Task<Result<Served>> PageVisit::ask_engine(Terms terms) {
  if (walk_.is_at_variant()) forwarded_ = Forwarded::vary_miss;
  ServeRequest serve = serve_request(terms);
  Renderer renders = renderer(terms.live, serve.tags);
  std::optional<Forwarded> seen;  // What the page was asked for that stood there before.
  serve.review = [this, &seen](const KeptBody& body, const MetaRow& meta, PageState state) {
    const std::int64_t now = parts_.isr.now();
    const bool fresh = state == PageState::fresh && age_of(prepared(body), meta, now).fresh_for > 0;
    seen = fresh ? Forwarded::request : Forwarded::stale;
    return walk_.review(body, meta, state, asked_.rules, now);
  };
  // That page did not stand there when this request came.
  serve.review_joined = [this](const KeptBody& body, const MetaRow& meta, PageState state) {
    return walk_.review(body, meta, state, asked_.rules, parts_.isr.now());
  };
  before_ = warm_.moment();
  auto served = co_await parts_.engine.serve(std::move(serve), std::move(renders));
  if (seen) forwarded_ = seen;
  co_return served;
}

Task<Result<VariantWalk::End>> PageVisit::find(const VariantWalk::Ask& ask) {
  // Whatever was found on the way decides on an answer that is remembered.
  const VariantWalk::Ask noting = [&]() -> Task<Result<Served>> {
    auto served = co_await ask();
    ++asked_engine_;
    if (!served) co_return served;
    for (Key& row : deciding_rows(page(), served->meta.tags))
      rows_.push_back(std::move(row));
    co_return served;
  };
  co_return co_await walk_.to_its_end(noting);
}

Task<PageVisit::Ready> PageVisit::make_ready(const Served& served, std::optional<int> origin_status) {
  Ready ready;
  const PreparedPage& page = prepared(*served.body);
  ready.coding = coding_for(page, request_.method, asked_.headers);
  ready.bytes = page.coded(ready.coding);
  if (!ready.bytes) {
    ready.bytes = co_await parts_.compressor.coded(served.body, ready.coding);
    if (ready.bytes) parts_.engine.note_size(served.meta.s3_key, page.cost());
  }
  const bool as_wished = ready.bytes.has_value();
  if (!as_wished) {
    ready.coding = Coding::identity;
    ready.bytes = page.coded(ready.coding);
  }
  ready.now = parts_.isr.now();
  const AnswerContext context{request_.method, asked_.headers, ready.now, forwarded_, origin_status};
  ready.response = answer_with_page(served, *ready.bytes, ready.coding, context);
  const bool may_be_stale = route_.policy.mode == ServeMode::swr ||
                            ready.now < served_stale_until(page, served.meta, route_.policy);
  const bool while_rendered = served.as == ServedAs::stale && may_be_stale && before_.table_version;
  // A pin's window is nobody's business.
  ready.may_be_remembered =
      as_wished && !served.meta.pinned && (served.as == ServedAs::hit || while_rendered);
  co_return ready;
}

WarmPage PageVisit::warm_page(const Served& served, const Ready& ready) {
  const PreparedPage& page = prepared(*served.body);
  WarmPage warm;
  warm.body = served.body;
  warm.touched = page.touched;
  warm.is_bodiless = has_no_body(ready.response.status);
  if (!warm.is_bodiless) {
    const auto fixed = page.fixed(ready.coding, parts_.fixed);
    warm.fixed = fixed != nullptr;
    warm.bytes = fixed ? fixed->bytes() : *ready.bytes;
    if (ready.coding == Coding::identity) warm.on_disk = page.on_disk();
  }
  warm.use = Engine::use_of(served.meta.s3_key);
  warm.judged_at = ready.now;
  warm.as = served.as;
  if (before_.table_version) warm.stale_until = served_stale_until(page, served.meta, route_.policy);
  warm.made_at = generation_of(served.meta) - page.age();
  warm.fresh_until = served.meta.generated_at + served.meta.revalidate_seconds;
  if (served.as == ServedAs::stale) {
    warm.render_asked_at = ready.now;  // Its render has begun.
    const bool window_ended = served.meta.generated_at != 0 && ready.now >= warm.fresh_until;
    warm.valid_this_second_only = !window_ended || ready.now >= warm.stale_until;
  }
  warm.moment = before_;
  warm.known_at = served.known_at;
  if (asked_engine_ == 1) warm.trust = served.trust;
  warm.route = &route_;
  warm.status = ready.response.status;
  std::string head;
  append_status_line(head, ready.response.status);
  for (const Headers::Field& field : ready.response.headers) {
    const bool of_this_second = same_text(field.name, "age") || same_text(field.name, "cache-status") ||
                                same_text(field.name, "x-facetheory-isr");
    if (!of_this_second || warm.valid_this_second_only) append_field(head, field.name, field.value);
  }
  if (!has_no_body(ready.response.status))
    append_field(head, "Content-Length", std::to_string(ready.bytes->size()));
  warm.text = WarmText(head, asked_.target.host, key_.page.tenant, rows_);
  varying_ = walk_.varying();
  const std::vector<std::string> vary = page.vary();
  varying_.insert(varying_.end(), vary.begin(), vary.end());
  return warm;
}

}  // namespace facetheory
