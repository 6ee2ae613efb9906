// HTTP-date (RFC 9110, 5.6.7): the preferred form, "Sun, 06 Nov 1994 08:49:37 GMT", and the two obsolete ones that
// recipients must read, "Sunday, 06-Nov-94 08:49:37 GMT" and "Sun Nov  6 08:49:37 1994". Times are whole seconds since
// 1970. Whoever calculates freshness compares without regard to case (RFC 9111, 4.2) and is strict about the rest: a
// day that does not exist, a weekday that is not that day's or a zone other than GMT make the date invalid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace facetheory {

// `now` decides the century of a two-digit year: never more than 50 years ahead.
std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now);

// The preferred form. Years outside 0 to 9999 become the nearest that can be written.
std::string format_http_date(std::int64_t time);

}  // namespace facetheory
