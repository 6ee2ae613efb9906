// Normal forms of what names a page: paths, queries and hosts. Two spellings are one only where RFC 3986 says so
// (6.2.2), and nothing is decoded that could make two pages one. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/base/result.h"

namespace facetheory {

// Normalises as RFC 3986 says (6.2.2): %41 becomes A, %c3 becomes %C3, a byte beyond ASCII is encoded. %2F stays what
// it is, and so do double slashes. `invalid`, to be answered 400: dot segments, also where %2F, a backslash or ';'
// would make one of them for some origin; control characters, also encoded ones; a '%' without two digits; no slash at
// the beginning.
Result<std::string> normalise_path(std::string_view path);

// The same for a query or a part of one, where a lone '%' stays. `invalid`: control characters, spaces, '#'.
Result<std::string> normalise_query(std::string_view query);

// Every %XX becomes its byte, once. A '%' without two digits stays.
std::string decode_percent(std::string_view text);

// Writes the host in lower case and without a final dot; `invalid` when it is no host, with or without a port.
Result<std::string> normalise_host(std::string_view host);
// "example.com" of "example.com:8080", "[::1]" of "[::1]:80".
std::string_view without_port(std::string_view host);

// What is behind normalise_path(), for patterns, which are normalised in pieces.
struct NormalEncoding {
  std::string text;
  bool lone_percent = false;
  bool encoded_control = false;
};
NormalEncoding normalise_encoding(std::string_view text);

// Whether some origin would take a part of this normalised path for "." or "..": one between slashes, encoded slashes
// or backslashes, with or without a parameter behind ';'.
bool has_dot_segment(std::string_view path);

}  // namespace facetheory
