// Cache-Status (RFC 9211): one member that says how this cache handled the request, to be appended to those of caches
// closer to the origin. Whatever goes in, what comes out is a well-formed structured field: it cannot break a header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace facetheory {

// Why the request went to the origin.
enum class Forwarded {
  bypass,     // The cache was told not to handle it.
  method,     // The method's semantics demand it.
  uri_miss,   // Nothing is stored under that URI.
  vary_miss,  // Something is stored under it, but no such variant.
  miss,       // Nothing stored could be used; which of the two is not known.
  request,    // There is a fresh page, but the request's own directives refuse it.
  stale,      // There is a page whose window has ended.
  partial,    // There is a page, but it lacks the range asked for.
};
std::string_view name(Forwarded forwarded);

struct CacheStatus {
  std::optional<Forwarded> forwarded = {};  // Empty: a hit, fresh or (with a ttl below 0) stale.
  std::optional<int> forwarded_status = {};
  std::optional<std::int64_t> ttl = {};  // Freshness left, in seconds.
  bool stored = false;                   // Only a forwarded request can have this.
  bool collapsed = false;                // It waited for another request's answer.
  std::string_view key = {};             // Empty: not told.
  std::string_view detail = {};
};

// "facetheory; fwd=stale; fwd-status=200; stored; ttl=60"
std::string to_string(const CacheStatus& status);

// The same, behind what `to` holds; allocates only when `to` must grow.
void append(std::string& to, const CacheStatus& status);

}  // namespace facetheory
