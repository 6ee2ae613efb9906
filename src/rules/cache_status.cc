#include "facetheory/rules/cache_status.h"

#include <array>
#include <charconv>
#include <cstddef>

#include "facetheory/http/structured_fields.h"

namespace facetheory {
namespace {

using namespace std::literals::string_view_literals;

constexpr std::string_view kCacheName = "facetheory";
constexpr std::size_t kLongestStatusText = 256;
// The largest number that a structured field can carry.
constexpr std::int64_t kLargestSfInteger = 999'999'999'999'999;

void append_number(std::string& to, std::int64_t number) {
  if (number > kLargestSfInteger) number = kLargestSfInteger;
  if (number < -kLargestSfInteger) number = -kLargestSfInteger;
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  to.append(digits.data(), end.ptr);
}

// A String: what is not printable ASCII becomes a question mark, what is too long is cut.
void append_sf_string(std::string& to, std::string_view text) {
  const bool cut = text.size() > kLongestStatusText;
  to.push_back('"');
  for (const char c : text.substr(0, kLongestStatusText)) {
    if (c == '"' || c == '\\') to.push_back('\\');
    to.push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  if (cut) to.append("...");
  to.push_back('"');
}

void append_token_or_string(std::string& to, std::string_view text) {
  if (is_sf_token(text) && text.size() <= kLongestStatusText) {
    to.append(text);
  } else {
    append_sf_string(to, text);
  }
}

}  // namespace

std::string_view name(Forwarded forwarded) {
  switch (forwarded) {
    case Forwarded::bypass:
      return "bypass";
    case Forwarded::method:
      return "method";
    case Forwarded::uri_miss:
      return "uri-miss";
    case Forwarded::vary_miss:
      return "vary-miss";
    case Forwarded::miss:
      return "miss";
    case Forwarded::request:
      return "request";
    case Forwarded::stale:
      return "stale";
    case Forwarded::partial:
      return "partial";
  }
  return "miss";
}

void append(std::string& to, const CacheStatus& status) {
  to.append(kCacheName);
  if (status.forwarded) {
    to.append("; fwd="sv).append(name(*status.forwarded));
    if (status.forwarded_status) {
      to.append("; fwd-status="sv);
      append_number(to, *status.forwarded_status);
    }
    if (status.stored) to.append("; stored"sv);
    if (status.collapsed) to.append("; collapsed"sv);
  } else {
    to.append("; hit"sv);
  }
  if (status.ttl) {
    to.append("; ttl="sv);
    append_number(to, *status.ttl);
  }
  if (!status.key.empty()) {
    to.append("; key="sv);
    append_sf_string(to, status.key);
  }
  if (!status.detail.empty()) {
    to.append("; detail="sv);
    append_token_or_string(to, status.detail);
  }
}

std::string to_string(const CacheStatus& status) {
  std::string text;
  append(text, status);
  return text;
}

}  // namespace facetheory
