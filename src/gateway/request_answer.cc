#include "facetheory/gateway/request_answer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/counted.h"
#include "facetheory/base/first_to_end.h"
#include "facetheory/base/letter_case.h"
#include "facetheory/cache/render_within.h"
#include "facetheory/gateway/origin_render.h"
#include "facetheory/gateway/page_answer.h"
#include "facetheory/gateway/pass_through.h"
#include "facetheory/gateway/purge_after.h"
#include "facetheory/gateway/variant.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/message_head.h"
#include "facetheory/rules/compression.h"
#include "facetheory/rules/replay.h"
#include "facetheory/site/page_key.h"

namespace facetheory {
namespace {

// How long a client that has read a page while it was rendered waits for its last byte until the page is stored.
constexpr std::chrono::seconds kStoredPatience{1};
constexpr int kMostPassedFailures = 16;  // At once and loop, of pages whose renders fail.

// Whatever way the request ends: nobody takes any more of the answer that was last on its way to it, if any was.
struct LeavesLiveAnswer {
  const std::shared_ptr<LiveAnswer>& live;
  ~LeavesLiveAnswer() {
    if (live) live->leave();
  }
};

}  // namespace

RequestAnswer::RequestAnswer(GatewayParts& parts, WarmPages& warm, int& passing_failures,
                             std::shared_ptr<const Site> site, std::shared_ptr<const OriginClients> passing,
                             ServerExchange& exchange)
    : parts_(parts),
      warm_(warm),
      passing_failures_(passing_failures),
      site_(std::move(site)),
      passing_(std::move(passing)),
      exchange_(exchange),
      request_(exchange.request()),
      asked_(asked_page(*site_, request_)),
      route_(asked_.route ? &site_->config.routes[*asked_.route] : nullptr) {}

AccessRecord RequestAnswer::record(Duration took) {
  const auto field = [&](std::string_view name) { return request_.headers.get(name).value_or(""); };
  AccessRecord record;
  record.peer = request_.peer;
  record.method = request_.method;
  record.target = request_.target;
  record.status = exchange_.status();
  record.bytes = exchange_.bytes_sent();
  record.state = state_;
  record.host = asked_.target.host;
  record.tenant = tenant_;
  if (route_ != nullptr) record.route = route_->pattern.text();
  // A page as it should be needs no explanation.
  if (state_ == name(ServedAs::hit) || state_ == name(ServedAs::miss)) reason_.clear();
  if (exchange_.status() == 0 && state_ == kRefused) {
    record.state = "other";
    reason_ = "the connection was closed before there was an answer";
  }
  record.cut_off = explain_cut();
  record.detail = reason_;
  record.request_id = field(site_->config.request_id_header);
  record.user_agent = field("user-agent");
  record.referer = field("referer");
  record.took = took;
  return record;
}

// Who has cut the answer off, which `reason_` then says first. Either side of a tunnel may end it.
CutOff RequestAnswer::explain_cut() {
  const AnswerProgress progress = exchange_.progress();
  if (progress == AnswerProgress::whole || exchange_.status() < 200) return CutOff::no;
  CutOff by = CutOff::by_gateway;
  std::string why = "it made a mistake, of which stderr tells";
  if (cut_) {
    by = cut_->by;
    why = cut_->error.message;
  } else if (progress == AnswerProgress::client_gone) {
    by = CutOff::by_client;
    why = "it left, or took nothing for limits.write_timeout";
  } else if (progress == AnswerProgress::cut_short) {
    why = "limits.drain_timeout was over";
  }
  if (!reason_.empty()) why += "; " + reason_;
  reason_ = "cut off by the " + std::string(name(by)) + ": " + why;
  return by;
}

Task<void> RequestAnswer::answer() {
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

// --- a page -----------------------------------------------------------------------------------------------------

Task<void> RequestAnswer::serve_page(PageKey key) {
  tenant_ = key.page.tenant;
  PageVisit visit(parts_, warm_, *site_, request_, asked_, std::move(key));
  std::shared_ptr<LiveAnswer> live;  // Each time that the engine is asked it has one of its own.
  const LeavesLiveAnswer at_last{live};
  const VariantWalk::Ask ask = [&]() -> Task<Result<Served>> {
    if (live) live->leave();
    live = std::make_shared<LiveAnswer>(parts_.isr.clock, parts_.live);
    PageVisit::Terms terms;
    terms.live = live;
    terms.may_stream = may_stream_;
    terms.has_body = exchange_.has_body();
    terms.left = exchange_.probably_left();
    co_return co_await visit.ask_engine(std::move(terms));
  };
  for (;;) {
    auto found = co_await visit.find(ask);
    if (!found) co_return co_await serve_error(visit, std::move(found).error(), live);
    switch (found->led) {
      case VariantWalk::Led::on:
        break;
      case VariantWalk::Led::no_key:
        co_return co_await pass("there is no key for its variant", Forwarded::vary_miss);
      case VariantWalk::Led::too_far:
        co_return co_await pass("Vary leads from variant to variant", Forwarded::vary_miss);
    }
    const Step step = co_await serve(visit, std::move(found->served), live);
    if (step == Step::done) co_return;
  }
}

Task<RequestAnswer::Step> RequestAnswer::serve(PageVisit& visit, Served served,
                                               const std::shared_ptr<LiveAnswer>& live) {
  const Forwarded forwarded = visit.forwarded().value_or(Forwarded::uri_miss);
  switch (served.as) {
    case ServedAs::other:  // Which leads on to another page, where the walk has ended.
      break;
    case ServedAs::pass:
      co_await pass(std::move(served.reason), forwarded);
      break;
    case ServedAs::live:
      co_return co_await serve_live(visit, served.no_room, *live);
    case ServedAs::absent:
      co_await serve_absent(forwarded);
      break;
    case ServedAs::failed:
    case ServedAs::uncached:
      co_await serve_unstored(visit, std::move(served), *live);
      break;
    case ServedAs::hit:
    case ServedAs::miss:
    case ServedAs::wait_hit:
    case ServedAs::stale:
    case ServedAs::stale_metadata_error: {
      co_await send_hints(*live);
      co_await send_page(visit, std::move(served), *live);
      break;
    }
  }
  co_return Step::done;
}

Task<RequestAnswer::Step> RequestAnswer::serve_live(PageVisit& visit, bool no_room, LiveAnswer& live) {
  Streaming streaming{visit.page(), visit.forwarded().value_or(Forwarded::uri_miss), no_room};
  const bool streamed = co_await stream(live, visit.fields(), std::move(streaming));
  if (streamed) co_return Step::done;
  if (live.has_failed()) {
    AnswerFailure failure = live.failure();
    std::string reason = "after hints: " + failure.error.message;
    co_await refuse_unanswered(std::move(reason), std::move(failure.told), 0);
    co_return Step::done;
  }
  may_stream_ = false;  // It is for others: then this one waits for it like those others.
  co_return Step::again;
}

Task<void> RequestAnswer::serve_error(PageVisit& visit, Error error,
                                      const std::shared_ptr<LiveAnswer>& live) {
  // The origin was asked for this request, more than once if it closed an idle connection. That will do. But where
  // there was no place or no time for a render, the one before it is not what this ends by.
  if (error.code != ErrorCode::exhausted && live->has_failed()) {
    AnswerFailure failure = live->failure();
    co_return co_await refuse_unanswered(std::move(error.message), std::move(failure.told), error.retry_at);
  }
  // All wait after a failed render. That there is no page is no reason to hide what the origin says now.
  const bool backs_off = error.code == ErrorCode::unavailable && error.retry_at > 0;
  if (backs_off && passing_failures_ < kMostPassedFailures) {
    const Counted counted(passing_failures_);
    co_return co_await pass("renders of it have failed: " + error.message,
                            visit.forwarded().value_or(Forwarded::uri_miss));
  }
  state_ = name(ServedAs::failed);
  reason_ = error.message;  // For the log: it may name what is behind the gateway.
  if (error.code == ErrorCode::invalid && visit.names_render()) {
    co_return co_await refuse(409, "the " + site_->config.request_id_header +
                                       " of this request was used for this page before, under another "
                                       "policy of its route; take a fresh one");
  }
  co_await refuse(status_of(error.code), "this page cannot be made at the moment", error.retry_at);
}

Task<void> RequestAnswer::serve_absent(Forwarded forwarded) {
  if (asked_.rules.only_if_cached) {
    state_ = name(ServedAs::absent);
    co_return co_await refuse(
        504, "nothing is stored that could answer this, and the request says only-if-cached");
  }
  if (asked_.rules.no_store) co_return co_await pass("the request says no-store", Forwarded::request);
  co_await pass("the page is not stored, and the request is not for all of it", forwarded);
}

// What the origin has answered for this request, and what no page is made of.
Task<void> RequestAnswer::serve_unstored(PageVisit& visit, Served served, LiveAnswer& live) {
  const Forwarded forwarded = visit.forwarded().value_or(Forwarded::uri_miss);
  if (!served.body) {
    Streaming streaming{visit.page(), forwarded};
    const bool streamed = co_await stream(live, visit.fields(), std::move(streaming));
    if (!streamed) co_await pass("it is not for everybody, or larger than pages may be", forwarded);
    co_return;
  }
  // No variant can be found of a page that is not stored: the origin is asked for this one.
  if (served.as == ServedAs::uncached && !visit.is_suited_by(served))
    co_return co_await pass("it varies by what the render was not told", Forwarded::vary_miss);
  state_ = name(served.as);
  reason_ = served.reason;
  CacheStatus status;
  status.forwarded = forwarded;
  status.collapsed = served.joined;
  if (!served.joined) status.forwarded_status = live.noted_status().value_or(served.body->status());
  ServerResponse response = unstored_head(served.body->metadata(), status, served.retry_at);
  response.body = served.body->bytes();
  response.keep_alive = served.body;
  co_await send_hints(live);
  Headers trailers = live.trailers();
  co_await send_whole(std::move(response), std::move(trailers));
}

// What the origin said before an answer that came too soon to be sent while it came.
Task<void> RequestAnswer::send_hints(LiveAnswer& live) {
  const std::deque<LiveHint> hints = live.take_hints();
  for (const LiveHint& hint : hints) {
    Headers fields = end_to_end(hint.headers);
    auto sent = co_await exchange_.interim(hint.status, std::move(fields));
    if (!sent) co_return;  // The client has left, as the answer itself will find.
  }
}

Task<void> RequestAnswer::send_page(PageVisit& visit, Served served, const LiveAnswer& live) {
  state_ = name(served.as);
  reason_ = served.reason;
  PageVisit::Ready ready = co_await visit.make_ready(served, live.noted_status());
  // So that the next one who asks for the same need not come this way.
  if (ready.may_be_remembered) {
    const WarmKey key = warm_.key_of(view_of(request_), asked_.trusted);
    if (!key.is_for_long_way()) {
      WarmPage page = visit.warm_page(served, ready);
      warm_.remember(key, visit.varying(), std::move(page));
    }
  }
  Headers trailers = live.trailers();
  co_await send_whole(std::move(ready.response), std::move(trailers));
}

// A whole answer, with the origin's trailers if it has come just now and the client takes them.
Task<void> RequestAnswer::send_whole(ServerResponse response, Headers trailers) {
  trailers = trailers_for(request_.headers, trailers);
  const bool has_body = !response.body_omitted && !has_no_body(response.status) && request_.method == "GET";
  if (trailers.empty() || !has_body || request_.is_http_1_0()) {
    [[maybe_unused]] auto sent = co_await exchange_.respond(std::move(response));
    co_return;
  }
  auto sent = co_await exchange_.begin(response.status, std::move(response.headers), std::nullopt);
  if (sent && !response.body.empty()) sent = co_await exchange_.write(response.body);
  if (sent) sent = co_await exchange_.finish(std::move(trailers));
}

// --- while it is rendered -----------------------------------------------------------------------------------------

// What the origin answers to this request's own render, while it comes and while the client is there. False: nothing of
// it can be sent.
Task<bool> RequestAnswer::stream(LiveAnswer& live, const Headers& may_vary, Streaming streaming) {
  bool streamed = true;
  const auto streaming_it = [&]() -> Task<void> {
    streamed = co_await stream_to_its_end(live, may_vary, streaming);
  };
  // Whoever is let go may be in the middle of not reading.
  const auto ending = [&]() -> Task<void> {
    Task<void> leaving = exchange_.client_left();
    Task<void> let_go = live.until_let_go();
    co_await first_to_end(std::move(leaving), std::move(let_go));
    // Not later: a write that is cancelled now closes the connection, which cancels whoever awaits this.
    if (live.was_let_go()) cut_ = LiveAnswer::too_slow();
  };
  Task<void> all = streaming_it();
  Task<void> end = ending();
  co_await first_to_end(std::move(all), std::move(end));
  co_return streamed;
}

Task<bool> RequestAnswer::stream_to_its_end(LiveAnswer& live, const Headers& may_vary,
                                            const Streaming& streaming) {
  std::optional<std::uint64_t> left;  // How many of the announced bytes are still to come.
  std::string last;  // Kept back until the page is stored: who has all of it may ask for it again.
  for (;;) {
    auto next = co_await live.next();
    Result<void> sent;
    if (auto* hint = std::get_if<LiveHint>(&next)) {
      Headers fields = end_to_end(hint->headers);
      sent = co_await exchange_.interim(hint->status, std::move(fields));
    } else if (auto* head = std::get_if<LiveHead>(&next)) {
      left = head->length;
      ServerResponse response = head_of(*std::move(head), may_vary, streaming);
      if (response.status == 0) co_return false;
      sent = co_await exchange_.begin(response.status, std::move(response.headers), left);
    } else if (auto* piece = std::get_if<std::string>(&next)) {
      if (left) *left -= std::min<std::uint64_t>(*left, piece->size());
      if (left == 0U) {
        last = piece->back();
        piece->pop_back();
      }
      sent = co_await exchange_.write(*piece);
    } else if (auto* end = std::get_if<LiveEnd>(&next)) {
      if (!exchange_.answered()) co_return false;
      if (state_ == name(ServedAs::miss))
        co_await parts_.engine.wait_for_render(streaming.page, kStoredPatience);
      sent = co_await exchange_.write(last);
      Headers trailers = trailers_for(request_.headers, end->trailers);
      sent = co_await exchange_.finish(std::move(trailers));
      co_return true;
    } else if (std::holds_alternative<LiveRefusal>(next)) {
      if (!exchange_.answered()) {
        state_ = name(ServedAs::failed);
        reason_ = "as many answers for one client each are on their way as origins.*.streams allows";
        co_await refuse(503, "too much is asked of the origin at once", parts_.isr.now() + 1);
      }
      co_return true;
    } else {
      // Cut off, where some of it was sent: the client sees that something is missing.
      if (exchange_.answered()) cut_ = std::move(std::get<LiveFailure>(next).why);
      co_return exchange_.answered();
    }
    if (!sent) co_return true;  // The client has left.
  }
}

// The head of an answer whose body is still to come. Its status is 0 if it is a page for other requests than this one.
ServerResponse RequestAnswer::head_of(LiveHead head, const Headers& may_vary, const Streaming& streaming) {
  Rendered& shape = head.shape;
  Served served;
  served.as = ServedAs::miss;
  served.meta = would_be(parts_.isr, shape);
  served.body = prepare_page(std::move(shape.body)).body;
  ServerResponse response;
  response.status = 0;
  const PreparedPage& page = prepared(*served.body);
  if (!suits(page, may_vary)) return response;
  const bool is_page = shape.as == RenderedAs::page;
  if (!is_page || streaming.no_room) {
    state_ = name(ServedAs::uncached);
    reason_ = is_page ? "there is no room for it on the disk" : std::move(shape.why_not_stored);
    CacheStatus status;
    status.forwarded = streaming.forwarded;
    status.forwarded_status = page.status();
    return unstored_head(page.metadata(), status, 0);
  }
  state_ = name(served.as);
  reason_ = "it was rendered";
  const AnswerContext context{request_.method, asked_.headers, parts_.isr.now(), streaming.forwarded};
  response = answer_with_page(served, page.bytes(), Coding::identity, context);
  // Whoever gets it whole may get it compressed.
  const bool large = !head.length || *head.length >= kLeastBytesToCompress;
  if (page.may_be_coded() && large && !contains_name(page.vary(), "accept-encoding")) {
    std::string varies(response.headers.get("vary").value_or(""));
    varies += varies.empty() ? "Accept-Encoding" : ", Accept-Encoding";
    response.headers.set("Vary", std::move(varies));
  }
  return response;
}

// --- everything else ----------------------------------------------------------------------------------------------

ServerResponse RequestAnswer::unstored_head(const BodyMetadata& metadata, const CacheStatus& status,
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
  add_cache_status(response.headers, status, state_);
  return response;
}

// What the origin has said itself stays.
void RequestAnswer::add_retry_after(Headers& headers, std::int64_t retry_at) const {
  const std::int64_t wait = retry_at - parts_.isr.now();
  if (wait > 0 && !headers.get("retry-after")) headers.add("Retry-After", std::to_string(wait));
}

// The origin was asked for this request's render, and that came to nothing.
Task<void> RequestAnswer::refuse_unanswered(std::string reason, std::string told, std::int64_t retry_at) {
  state_ = name(ServedAs::failed);
  reason_ = std::move(reason);
  co_await refuse(502, std::move(told), retry_at);
}

Task<void> RequestAnswer::refuse(int status, std::string why, std::int64_t retry_at, std::string allow) {
  if (reason_.empty()) reason_ = why;
  ServerResponse response = plain_response(status, std::move(why));
  // A client may already have sent tunnel bytes, expecting a CONNECT to be accepted.
  response.close = status < 500 || status == 501;
  add_retry_after(response.headers, retry_at);
  if (status == 405) response.headers.add("Allow", std::move(allow));
  response.headers.add("Cache-Control", "no-store");
  response.headers.add("X-FaceTheory-ISR", state_);
  [[maybe_unused]] auto sent = co_await exchange_.respond(std::move(response));
}

Task<void> RequestAnswer::answer_options(std::string allow) {
  state_ = "own";
  ServerResponse response;
  response.headers.add("Allow", std::move(allow));
  response.headers.add("X-FaceTheory-ISR", state_);
  [[maybe_unused]] auto sent = co_await exchange_.respond(std::move(response));
}

Task<void> RequestAnswer::pass(std::string reason, Forwarded forwarded) {
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
  pass.request.headers.add("Via", via(request_, parts_.pseudonym));

  CacheStatus status;
  status.forwarded = forwarded;
  pass.tunnel_timeout = site_->config.limits.tunnel_timeout;
  add_cache_status(pass.added, status, state_);
  if (asked_.rules.kind == RequestKind::invalidate) {
    pass.before_answer = [this](int answered, const Headers& headers) {
      return purge_after(parts_, *site_, request_, asked_, answered, headers);
    };
    pass.without_answer = [this] { return purge_after(parts_, *site_, request_, asked_, 200, no_fields_); };
  }
  OriginTiming timing(&parts_.metrics.origin(route_->origin), parts_.isr.clock);
  auto failure = co_await pass_through(exchange_, *passing_->at(route_->origin), std::move(pass));
  if (!failure) {
    timing.answered(exchange_.status());
    co_return;
  }
  if (exchange_.answered()) {
    cut_ = std::move(failure);
    co_return;
  }
  reason_ = failure->error.message;
  if (failure->by == CutOff::by_client) {
    state_ = kRefused;
    co_return co_await refuse(failure->error.code == ErrorCode::exhausted ? 413 : 400,
                              std::move(failure->told));
  }
  if (failure->error.code == ErrorCode::exhausted)
    co_return co_await refuse(503, "too much is asked of the origin at once", parts_.isr.now() + 1);
  co_await refuse(502, std::move(failure->told));
}

}  // namespace facetheory
