// What a request names: scheme, host, path and query, read from its target, Host and, from trusted peers,
// X-Forwarded-Proto. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/http/message.h"

namespace facetheory {

struct RequestTarget {
  std::string scheme = "http";  // "http" or "https": what the client used, as far as is known here.
  std::string host = {};        // normalise_host() made it; the scheme's own port is removed.
  std::string path = {};        // normalise_path() made it.
  std::string sent_path = {};   // It stands as it was sent.
  std::string query = {};       // What follows the '?', as it was sent.

  // "https://example.com"
  std::string origin() const;
  // "/path?query"
  std::string origin_form() const;
  // The same with the path as it was sent.
  std::string sent_form() const;
};

// The target in origin form ("/path?query") or absolute form ("http://host/path?query", whose host counts and not the
// field's). `invalid`, to be answered 400, says what is wrong with it. A trusted peer may say "https" in
// X-Forwarded-Proto; the last value counts, since it is the nearest proxy's. `default_host` is what a request without
// Host asks for (RFC 9110, 7.1; RFC 9112, 3.3), which only HTTP/1.0 may be.
Result<RequestTarget> read_target(std::string_view target, const Headers& headers, bool trusted,
                                  std::string_view default_host = {});

}  // namespace facetheory
