// Finds out what a request asks for: whether its peer is trusted, its target, its route, and the page; or why it is
// passed on, or refused. The way that every request goes, and every explanation of one. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "facetheory/http/message.h"
#include "facetheory/http/server_request.h"
#include "facetheory/rules/request_rules.h"
#include "facetheory/rules/request_target.h"
#include "facetheory/site/page_key.h"
#include "facetheory/site/site.h"

namespace facetheory {

struct Refused {
  int status = 400;
  std::string why;         // For the client.
  std::string allow = {};  // Of a 405: what may be asked instead (RFC 9110, 15.5.6).
};

// OPTIONS that this gateway answers itself, as the server that it is to its clients: for all of it ("*"), or with
// Max-Forwards: 0.
struct OwnOptions {
  std::string allow;  // "GET, HEAD, ..."
};

struct AskedPage {
  Headers headers = {};  // Without what concerns the connection only.
  bool trusted = false;  // The peer may speak for others.
  RequestTarget target = {};
  std::optional<std::size_t> route = {};  // In the site's configuration.
  RequestRules rules = {};
  std::optional<std::uint64_t> hops_left = {};  // Of OPTIONS: the Max-Forwards that the origin gets.
  std::variant<Refused, OwnOptions, Bypass, PageKey> found = {};

  // Views of this.
  PageRequest request(std::string_view method) const {
    return {headers,     method,       target.scheme, target.host,
            target.path, target.query, trusted,       target.sent_path};
  }
};

AskedPage asked_page(const Site& site, const ServerRequest& request);

// Whether what that address says of others is believed.
bool is_trusted(const Config& config, std::string_view peer);

// Says which status tells of which error, so that this is decided in one place.
int status_of(ErrorCode code);

}  // namespace facetheory
