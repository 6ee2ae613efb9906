#include "facetheory/rules/request_rules.h"

#include <algorithm>
#include <iterator>

#include "facetheory/http/field_values.h"
#include "facetheory/rules/cache_control.h"

namespace facetheory {

RequestKind kind_of(std::string_view method) {
  if (method == "GET" || method == "HEAD") return RequestKind::lookup;
  constexpr std::string_view kSafe[] = {"OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"};
  return std::find(std::begin(kSafe), std::end(kSafe), method) != std::end(kSafe) ? RequestKind::pass
                                                                                  : RequestKind::invalidate;
}

RequestRules read_rules(std::string_view method, const Headers& request, const RequestPolicy& policy) {
  RequestRules rules;
  rules.kind = kind_of(method);
  rules.head = method == "HEAD";
  const CacheControl control = parse_cache_control(request);
  rules.only_if_cached = control.only_if_cached;
  rules.no_store = control.no_store;
  if (policy.honour_client_freshness) {
    rules.no_cache = control.no_cache || !control.no_cache_fields.empty();
    rules.max_age = control.max_age;
    rules.min_fresh = control.min_fresh;
    rules.max_stale = control.max_stale;
    // Pragma counts only where there is no Cache-Control (RFC 9111, 5.4).
    if (!request.get("cache-control")) {
      for_each_element(request, "pragma", [&](std::string_view element) {
        rules.no_cache = rules.no_cache || same_text(element, "no-cache");
      });
    }
  }
  rules.for_origin = request.get("if-match") || request.get("if-unmodified-since");
  rules.range = method == "GET" && request.get("range");
  rules.authorization = request.get("authorization").has_value();
  return rules;
}

bool accepts(const RequestRules& rules, const PageAge& page) {
  if (rules.no_cache) return false;
  // max-stale without a number, or beyond all numbers: any age will do.
  const bool however_stale = rules.max_stale && *rules.max_stale >= kMaxDeltaSeconds;
  if (rules.max_age && !however_stale && page.age > *rules.max_age + rules.max_stale.value_or(0))
    return false;
  if (rules.min_fresh && page.fresh_for < *rules.min_fresh) return false;
  if (page.fresh_for > 0) return true;
  if (page.stale_forbidden) return false;
  if (rules.max_stale) return however_stale || -page.fresh_for <= *rules.max_stale;
  // A client that says max-age without max-stale does not want what is stale (RFC 9111, 5.2.1.1).
  return page.stale_allowed && !rules.max_age;
}

}  // namespace facetheory
