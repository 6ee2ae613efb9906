// Conditional and range requests answered from a stored page (RFC 9110, 13 and 14; RFC 9111, 4.3.2), and the validation
// of a stored page at the origin (RFC 9111, 4.3). Pure functions; evaluate() does not allocate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/http/message.h"

namespace facetheory {

// What of a stored page conditions are compared with.
struct PageValidators {
  int status = 200;
  std::uint64_t size = 0;                          // So many bytes would be sent.
  std::string_view etag = {};                      // It has its quotes; empty: there is none.
  std::optional<std::int64_t> last_modified = {};  // Seconds since 1970.
  std::int64_t date = 0;                           // It was made at that time.
};

struct PageAnswer {
  enum class Kind {
    full,           // The page as it is stored.
    not_modified,   // 304
    partial,        // 206: bytes `first` to `last`, both included.
    unsatisfiable,  // 416
  };
  Kind kind = Kind::full;
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  friend bool operator==(const PageAnswer&, const PageAnswer&) = default;
};

// Follows the order of RFC 9110, 13.2.2: If-None-Match, else If-Modified-Since; then Range, if If-Range allows.
// If-Match and If-Unmodified-Since are the origin's (RequestRules::for_origin). Conditions on anything but a 2xx are
// ignored, ranges on anything but a 200. Several ranges are answered with the whole page.
PageAnswer evaluate(std::string_view method, const Headers& request, const PageValidators& page,
                    std::int64_t now);

// "bytes 0-4/10", or "bytes */10" for 416.
std::string content_range(const PageAnswer& answer, std::uint64_t size);

// One range of bytes out of a representation of that size. Kind::full: not a single range of bytes, ignore it.
PageAnswer resolve_range(std::string_view range, std::uint64_t size);

// Whether a request asks only for what has changed.
bool has_condition(const Headers& request);

// The fields that ask the origin whether the page still holds: If-None-Match, If-Modified-Since. Empty: it has no
// validator.
Headers validation_fields(const PageValidators& page);

// Whether a 304 is about that page: its validators, as far as it carries any, are the page's.
bool confirms(const Headers& not_modified, const PageValidators& page, std::int64_t now);

}  // namespace facetheory
