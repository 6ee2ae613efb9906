// Cache-Control of requests and responses (RFC 9111, 5.2; RFC 5861), and the targeted fields that stand in its place
// (RFC 9213). Pure functions.
//
// Origins and clients write all kinds of things here. What makes sense is taken; what makes none is read in the most
// careful way, never as permission: `max-age=soon` is max-age=0, `no-store=x` is no-store, `public=x` is nothing. Of a
// directive with a number the first occurrence counts (RFC 9111, 4.2.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/http/message.h"

namespace facetheory {

// Delta-seconds end here (RFC 9111, 1.2.2): longer than anyone waits.
inline constexpr std::int64_t kMaxDeltaSeconds = std::int64_t{1} << 31;

struct CacheControl {
  bool no_store = false;
  bool no_cache = false;                     // Unqualified.
  std::vector<std::string> no_cache_fields;  // no-cache="x-a, x-b": names in lower case.
  bool is_private = false;                   // Unqualified.
  std::vector<std::string> private_fields;   // private="x-a, x-b"
  bool is_public = false;
  bool must_revalidate = false;
  bool proxy_revalidate = false;
  bool must_understand = false;
  bool no_transform = false;
  bool only_if_cached = false;

  // Seconds, 0 to kMaxDeltaSeconds. Where a limit makes no sense it is 0; where a concession makes none it is absent.
  std::optional<std::int64_t> max_age;
  std::optional<std::int64_t> s_maxage;
  std::optional<std::int64_t> min_fresh;
  std::optional<std::int64_t> max_stale;  // It is kMaxDeltaSeconds where the client gives no argument.
  std::optional<std::int64_t> stale_while_revalidate;
  std::optional<std::int64_t> stale_if_error;
  // stale-while-revalidate without an argument, which RFC 5861 does not know and some frameworks write.
  bool bare_stale_while_revalidate = false;

  friend bool operator==(const CacheControl&, const CacheControl&) = default;
};

// All fields of that name; without one nothing is set.
CacheControl parse_cache_control(const Headers& headers);
// One field's value.
CacheControl parse_cache_control(std::string_view value);

// A targeted field, such as CDN-Cache-Control: a structured dictionary. Empty optional: it is absent, empty or not
// well-formed, and counts for nothing. A well-formed one replaces Cache-Control and Expires, even when it contains no
// directive known here. A directive with a value of the wrong type is read as above.
std::optional<CacheControl> parse_targeted_cache_control(const Headers& headers, std::string_view name);

// delta-seconds: digits, at most kMaxDeltaSeconds.
std::optional<std::int64_t> parse_delta_seconds(std::string_view text);

}  // namespace facetheory
