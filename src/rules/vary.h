// Vary (RFC 9111, 4.1): which request fields choose among the variants of a page, and the variant that a request asks
// for, as text that becomes part of the cache key. Pure functions.
//
// Two requests have the same key only if each field that Vary names is absent from both or says the same in both.
// "The same" allows for what those fields do not distinguish: whitespace, one field or several, the way a weight is
// written, and, for Accept-Encoding, everything but which of the codings known here are acceptable.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/http/message.h"

namespace facetheory {

// The names in all Vary fields: lower case, sorted, each once. Empty optional: no key can tell the variants apart
// ("*", or something that is no name).
std::optional<std::vector<std::string>> vary_names(const Headers& response);

// Empty when there are no names. Printable ASCII; what might be secret (Cookie, Authorization) or is long appears as a
// digest. `names` as `vary_names` gives them, or in any order and case.
std::string variant_key(const std::vector<std::string>& names, const Headers& request);

// What a client can decode (RFC 9110, 12.5.3). Without the field only identity is safe to send.
struct AcceptedEncodings {
  bool br = false;
  bool zstd = false;
  bool gzip = false;
  bool identity = true;

  friend bool operator==(const AcceptedEncodings&, const AcceptedEncodings&) = default;
};
AcceptedEncodings accepted_encodings(const Headers& request);

// "br,zstd,gzip" as far as accepted, "identity" when none is; ",!identity" where identity is refused.
std::string to_string(const AcceptedEncodings& accepted);

}  // namespace facetheory
