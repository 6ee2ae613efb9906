// What a request asks of a cache (RFC 9111, 4 and 5.2.1; RFC 9110, 9.2): pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "facetheory/http/message.h"

namespace facetheory {

enum class RequestKind {
  lookup,      // GET and HEAD: a stored page may answer it.
  pass,        // Safe, but nothing that is stored answers it.
  invalidate,  // Unsafe, or nobody knows: its success makes stored pages invalid (invalidation.h).
};
// Methods are case-sensitive: "get" is not GET.
RequestKind kind_of(std::string_view method);

struct RequestPolicy {
  // Whether clients decide what is fresh enough for them: no-cache, max-age, min-fresh, max-stale, Pragma. A site that
  // does not want its readers to cause renders says no. only-if-cached and no-store hold in any case.
  bool honour_client_freshness = true;
};

struct RequestRules {
  RequestKind kind = RequestKind::lookup;
  bool head = false;
  bool only_if_cached = false;  // 504 instead of a request to the origin.
  bool no_store = false;        // Neither the request nor its answer is stored.
  bool no_cache = false;        // Nothing stored is served without validation.
  std::optional<std::int64_t> max_age = {};
  std::optional<std::int64_t> min_fresh = {};
  std::optional<std::int64_t> max_stale = {};
  // If-Match or If-Unmodified-Since: only the origin can tell (RFC 9111, 4.3.2).
  bool for_origin = false;
  bool range = false;          // Asks for a part (preconditions.h).
  bool authorization = false;  // Carries credentials.
};

RequestRules read_rules(std::string_view method, const Headers& request, const RequestPolicy& policy = {});

// Whether a page of that age may answer without the origin being asked first. `fresh_for`: seconds of freshness left,
// not above 0 when it is stale. `stale_allowed`: origin and route let it be served that stale; even so the request may
// refuse it, and max-stale may ask for it or set a limit. `stale_forbidden`: the origin forbids it, max-stale or not.
struct PageAge {
  std::int64_t age = 0;
  std::int64_t fresh_for = 0;
  bool stale_allowed = false;
  bool stale_forbidden = false;
};
bool accepts(const RequestRules& rules, const PageAge& page);

}  // namespace facetheory
