// Input: a byte each for method, status (two), delay and policy; the request's fields; an empty line; the response's
// fields.
//
// Nothing is stored that must not be, whatever else is said; and what is stored is ready to be kept and replayed.
#include <algorithm>
#include <string>

#include "facetheory/gateway/prepared_page.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/http_date.h"
#include "facetheory/http/message_head.h"
#include "facetheory/isr/page.h"
#include "facetheory/rules/storing.h"
#include "facetheory/rules/vary.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

template <typename Names>
bool sorted_without_repetition(const Names& names) {
  return std::is_sorted(names.begin(), names.end()) &&
         std::adjacent_find(names.begin(), names.end()) == names.end();
}

Headers with_field(Headers headers, const std::string& name, const std::string& value) {
  headers.add(name, value);
  return headers;
}

void require_times(const StoreDecision& decision, const ExchangeTimes& times) {
  require(decision.lifetime >= 0 && decision.lifetime <= kMaxDeltaSeconds, "a lifetime is within bounds");
  require(decision.age >= 0, "nothing is younger than new");
  require(decision.fresh_until == times.requested_at + decision.lifetime - decision.age,
          "it is fresh for its lifetime, less its age");
  require(decision.revalidate == std::max<std::int64_t>(0, decision.fresh_until - times.requested_at),
          "its window ends when its freshness does");
  for (const auto& seconds : {decision.stale.while_revalidate, decision.stale.if_error})
    require(!seconds || (*seconds >= 0 && *seconds <= kMaxDeltaSeconds), "staleness is within bounds");
  require(!decision.stale.forbidden || (!decision.stale.while_revalidate && !decision.stale.if_error),
          "what is forbidden has no windows");
}

void require_replayed(const StoreDecision& decision) {
  std::size_t dates = 0;
  for (const auto& [name, value] : decision.replayed.headers) {
    require(is_token(name) && lower_case(name) == name && is_field_value(value),
            "a stored field is well-formed");
    for (const std::string_view never :
         {"set-cookie", "connection", "transfer-encoding", "content-length", "te", "content-type", "etag"})
      require(name != never, "fields of one answer or one connection are not stored");
    require(!name.starts_with("x-facetheory-"), "nobody speaks for us");
    if (name == "date") {
      ++dates;
      require(parse_http_date(value, 0).has_value(), "a stored date makes sense");
    }
    if (name == "age") require(value == std::to_string(decision.age), "the stored age is the page's");
  }
  require(dates == 1, "there is one date");
}

// Read from the store, the page says of itself what was decided when it came.
void require_judged_again(const StoreDecision& decision, int status, const Headers& request,
                          const StorePolicy& policy) {
  const StorePolicy usual;
  if (policy.targeted != usual.targeted ||
      policy.bare_stale_while_revalidate != usual.bare_stale_while_revalidate ||
      policy.s_maxage_forbids_stale != usual.s_maxage_forbids_stale)
    return;
  const PreparedPage page(Body{"", stored_metadata(decision, status, request)});
  const bool by_the_origin =
      decision.source != LifetimeSource::none && decision.source != LifetimeSource::route;
  require(page.stale() == decision.stale, "what may be stale is remembered");
  require(page.granted().has_value() == by_the_origin, "whose lifetime it is, is remembered");
  require(page.window_closed() == (decision.revalidate == 0), "a window that never opened is remembered");
  require(page.vary() == decision.vary, "what it varies by is remembered");
}

void require_stored(const StoreDecision& decision, std::string_view method, int status,
                    const Headers& request, const Headers& response, const ExchangeTimes& times,
                    const StorePolicy& policy) {
  require(method == "GET" && status >= 200 && status < 500 && status != 206 && status != 304,
          "only whole answers to GET are stored");
  require(!response.get("set-cookie"), "what sets a cookie is not stored");
  require(!parse_cache_control(request).no_store, "the request's no-store holds");
  const CacheControl control = effective_control(response, policy.targeted).control;
  require(!control.is_private && (!control.no_store || control.must_understand),
          "the response's directives hold");
  if (request.get("authorization")) {
    require(control.is_public || control.s_maxage || control.must_revalidate,
            "credentials keep a page private");
  }
  require_times(decision, times);
  require(sorted_without_repetition(decision.vary), "names of Vary are sorted");
  for (const std::string& name : decision.vary)
    require(is_token(name) && name != "*" && lower_case(name) == name, "names of Vary are names");
  require(sorted_without_repetition(decision.tags) && decision.tags.size() <= kMaxTags,
          "tags are sorted and few");
  for (const std::string& tag : decision.tags)
    require(check_tag(tag).has_value(), "tags can be kept");
  require(!decision.etag || is_entity_tag(*decision.etag), "an entity tag is one");
  require_replayed(decision);
  require_judged_again(decision, status, request, policy);
}

}  // namespace

void fuzz_storing(std::string_view bytes) {
  constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST"};
  constexpr int kStatuses[] = {200, 404, 410, 301, 302, 204, 206, 304, 500, 203, 451, 299, 100};
  constexpr std::int64_t kNow = 1'700'000'000;
  Input input(bytes);
  const std::string_view method = kMethods[std::min(input.byte() / 100, 2)];
  const std::uint8_t chosen = input.byte();
  const int status = chosen < 200 ? kStatuses[chosen % std::size(kStatuses)] : 100 + 4 * input.byte();
  const ExchangeTimes times{.requested_at = kNow,
                            .received_at = kNow + static_cast<std::int8_t>(input.byte())};
  const std::uint8_t said = input.byte();
  StorePolicy policy;
  if ((said & 1) != 0) policy.revalidate = std::chrono::seconds(60);
  if ((said & 2) != 0) policy.not_found = std::chrono::seconds(0);
  if ((said & 4) != 0) policy.s_maxage_forbids_stale = false;
  if ((said & 8) != 0) policy.bare_stale_while_revalidate.reset();
  if ((said & 16) != 0) policy.targeted.clear();
  policy.origin = "https://example.com";
  const std::size_t end = std::min(input.rest().find("\n\n"), input.rest().size());
  const Headers request = headers_of(input.rest().substr(0, end));
  const Headers response = headers_of(input.rest().substr(std::min(end + 2, input.rest().size())));

  const StoreDecision decision = decide_store(method, request, status, response, times, policy);
  require(!decision.reason.empty(), "every decision has a reason");
  const auto stored_with = [&](const std::string& name, const std::string& value) {
    return decide_store(method, request, status, with_field(response, name, value), times, policy).store;
  };
  require(!stored_with("Set-Cookie", "a=b"), "nothing makes a cookie storable");
  require(!stored_with("vary", "*"), "nothing makes Vary: * storable");
  const EffectiveControl effective = effective_control(response, policy.targeted);
  if (!effective.targeted) {
    require(!stored_with("cache-control", "private"), "nothing makes private storable");
    if (!effective.control.must_understand)
      require(!stored_with("cache-control", "no-store"), "nothing makes no-store storable");
  }
  if (decision.store) require_stored(decision, method, status, request, response, times, policy);
}

}  // namespace facetheory::fuzz
