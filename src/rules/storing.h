// Whether a response may be stored by this shared cache, and for how long (RFC 9111, 3 and 4.2): a pure function of
// request, response, times and the route's policy. Times are whole seconds since 1970.
//
// Freshness comes from the first of: the targeted fields (CDN-Cache-Control), in whose presence Cache-Control and
// Expires do not count; s-maxage; max-age; Expires; the route. A page's window begins when it was asked for, since
// generated_at is the time of the request: the age that the response had already then is taken off. Whoever gives the
// window also says what may be served after it: the origin by stale-while-revalidate and stale-if-error, or else the
// route by its mode.
//
// Never stored: answers to other methods than GET; 206, 304, 5xx, and 4xx other than 404 and 410, which say more about
// one request than about the page; no-store, private, Set-Cookie, Vary: *; event streams, which have no end; answers to
// Authorization unless the origin says that they are for everyone (RFC 9111, 3.5); what neither the origin nor the
// route gives a lifetime, unless the origin wants it to be validated each time (no-cache).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/http/message.h"
#include "facetheory/rules/cache_control.h"
#include "facetheory/rules/replay.h"

namespace facetheory {

inline constexpr std::chrono::seconds kDefaultNotFound{10};
inline constexpr std::chrono::seconds kDefaultGone{60};

struct StorePolicy {
  // Freshness where the origin says nothing; empty: then the answer is not stored.
  std::optional<std::chrono::seconds> revalidate = {};
  // The same for 404 and 410. Zero: they are not stored at all.
  std::optional<std::chrono::seconds> not_found = kDefaultNotFound;
  std::optional<std::chrono::seconds> gone = kDefaultGone;
  // Targeted fields, the most specific first (RFC 9213, 2.2).
  std::vector<std::string> targeted = {"CDN-Cache-Control", "Surrogate-Control"};
  // What stale-while-revalidate without a number stands for, as Next.js writes it; empty: nothing.
  std::optional<std::chrono::seconds> bare_stale_while_revalidate = std::chrono::hours(365 * 24);
  // s-maxage forbids stale answers (RFC 9111, 5.2.2.10) other than those it is accompanied by.
  bool s_maxage_forbids_stale = true;
  std::string origin = {};  // "https://example.com": whose cache groups these are.
};

struct ExchangeTimes {
  std::int64_t requested_at = 0;  // The request left here then.
  std::int64_t received_at = 0;   // The response's header arrived then.
};

enum class LifetimeSource { none, targeted, s_maxage, max_age, expires, route };

// Serving the page after its window.
struct StaleRules {
  bool forbidden = false;  // Whatever the route would allow.
  // Seconds beyond the window; empty: the origin does not say. Then the route decides on what is served after a
  // failure, and while a page is rendered again only if the window is the route's.
  std::optional<std::int64_t> while_revalidate = {};
  std::optional<std::int64_t> if_error = {};

  friend bool operator==(const StaleRules&, const StaleRules&) = default;
};

struct StoreDecision {
  bool store = false;
  std::string reason;  // People read it: "fresh for 60 s by max-age", "it sets a cookie".

  // The rest means something only when stored.
  LifetimeSource source = LifetimeSource::none;
  std::int64_t lifetime = 0;  // This is what was granted, whatever the age.
  // The age that the page had when it was asked for; Age is this and the time since then. In `replayed` when not 0.
  std::int64_t age = 0;
  std::int64_t fresh_until = 0;  // May lie in the past.
  // The window from requested_at on; 0: stale from the beginning (no-cache, max-age=0), of use for validation only.
  std::int64_t revalidate = 0;
  StaleRules stale = {};
  std::vector<std::string> vary = {};  // Lower case, sorted.
  // Cache-Tag, Surrogate-Key and Cache-Groups named them; each stands once, and all of them are good.
  std::vector<std::string> tags = {};
  std::optional<std::string> etag = {};
  std::optional<std::int64_t> last_modified = {};
  ReplayedHeaders replayed = {};  // Always with a date that makes sense.
};

StoreDecision decide_store(std::string_view method, const Headers& request, int status,
                           const Headers& response, const ExchangeTimes& times, const StorePolicy& policy);

// The directives that count for this cache: those of the first targeted field that is well-formed, or Cache-Control.
// `targeted` says which it was.
struct EffectiveControl {
  CacheControl control;
  bool targeted = false;
};
EffectiveControl effective_control(const Headers& response, const std::vector<std::string>& targeted);

StaleRules stale_rules(const EffectiveControl& effective, const StorePolicy& policy);

// How many seconds the origin lets the response be fresh, whatever its age; empty: it does not say.
struct Lifetime {
  LifetimeSource source = LifetimeSource::none;
  std::int64_t seconds = 0;
};
std::optional<Lifetime> named_lifetime(const EffectiveControl& effective, const Headers& response,
                                       std::int64_t received_at);

// RFC 9111, 4.2.3: the age of a response on its arrival.
std::int64_t corrected_initial_age(const Headers& response, const ExchangeTimes& times);

// The tag that stands for a cache group of that origin (RFC 9875: groups belong to one origin).
std::string group_tag(std::string_view origin, std::string_view group);

}  // namespace facetheory
