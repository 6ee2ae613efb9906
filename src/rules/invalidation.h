// What a successful unsafe request makes invalid (RFC 9111, 4.4; RFC 9875, 3): a pure function.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/http/message.h"

namespace facetheory {

struct Invalidation {
  // Targets in origin form ("/path?query") on the request's own origin: the request's, and those that Location and
  // Content-Location name there. None elsewhere: or one site could empty another's pages.
  std::vector<std::string> targets = {};
  // Cache-Group-Invalidation names them, on the same origin; group_tag() has the tag.
  std::vector<std::string> groups = {};

  bool empty() const { return targets.empty() && groups.empty(); }
  friend bool operator==(const Invalidation&, const Invalidation&) = default;
};

// Empty unless the method is unsafe and the status 2xx or 3xx. `origin`: "https://example.com", the port only where it
// is not the scheme's own, in lower case. `target`: the request's, in origin form.
Invalidation invalidated_by(std::string_view method, std::string_view origin, std::string_view target,
                            int status, const Headers& response);

// Whether a request to that host comes from a page of the same site, or from no page at all. Browsers say so in
// Sec-Fetch-Site, older ones in Origin (whose host then must be the same); who says neither is a program, or somebody
// who pretends to be one.
bool is_same_site(const Headers& request, std::string_view host);

// The target that a reference (RFC 3986, 5.2) leads to, if it is on that origin; without its fragment, dot segments
// removed.
std::optional<std::string> target_on_origin(std::string_view origin, std::string_view base_target,
                                            std::string_view reference);

}  // namespace facetheory
