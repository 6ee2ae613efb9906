// Finds the page that a request asks for: which tenant, which cache key, which tags; or that it is no page at all.
//
// The cache key of a route with key = "default":
//
//   <scheme>://<host><path>[?<parameters>][ h:<name>[=<value>]]...[ c:<name>=<digest>]...
//
// Host and scheme are always part of it. Parameters that make no different page are left out, the others sorted by name
// (those of one name keep their order). A header field that makes a different page is there even when the request has
// none ("h:accept-language", without '='); values that are long or may be secret, and all of cookies, are there as
// digests. What separates the parts cannot be spelt within one, so that two requests share a key only where they are
// equal in everything that the route says makes a page.
//
// What renders a page is asked with nothing but what the key was made of (PageKey::target, ::headers). So nobody can
// put something of his own into a page that others get.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/http/message.h"
#include "facetheory/isr/page.h"
#include "facetheory/site/config.h"
#include "facetheory/site/name_patterns.h"

namespace facetheory {

// What of a request matters; what is pointed at outlives the call.
struct PageRequest {
  const Headers& headers;
  std::string_view method = "GET";
  std::string_view scheme = "http";  // The one that the client used: "http" or "https".
  std::string_view host = {};        // As normalise_host() leaves it.
  std::string_view path = "/";       // As normalise_path() leaves it.
  std::string_view query = {};       // What follows the '?'.
  bool trusted = false;              // The peer is one of Config::trusted_peers.
  std::string_view sent_path = {};   // What `path` was made of; empty: not known. FaceTheory's key has it so.
};

struct PageKey {
  Page page;
  std::vector<std::string> tags = {};
  std::string target = {};  // "/news/42?page=2"
  // Names in lower case; Cookie is one of them.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// The request is passed to the origin as it is: no page is looked up, and the answer is not stored.
struct Bypass {
  std::string reason;  // For people: "the request has the cookie \"session\", which ..."
};

// Errors are answers, before any look-up: `invalid` (400) and, where somebody names a tenant who may not,
// `unauthorized` (403). The tenant is told first, also of requests that are passed on. A route that never looks
// anything up (cache = false) needs none, and refuses who names one without being allowed to.
Result<std::variant<PageKey, Bypass>> page_key(const Config& config, const RouteConfig& route,
                                               const PathVariables& variables, const PageRequest& request);

// The tenant whose page is asked for; empty where the route has no tenants. Fails closed: a request that cannot be
// told, or that names a tenant in one way or another when the route knows no tenants or another one, is an error.
Result<std::string> tenant_of(const Config& config, const RouteConfig& route, const PageRequest& request);

// A route may ask for no tenant. Whoever names one all the same must be trusted, or name the one that the route's
// source does, since the origin would believe it.
Result<void> check_named_tenant(const Config& config, const RouteConfig& route, const PageRequest& request);

// What a cookie of that name means to a route.
enum class CookieUse { ignored, makes_page, bypasses };
CookieUse use_of(const RouteConfig& route, std::string_view cookie);

// Whether a field of a request never reaches the origin on this route, passed on or rendered; the name in lower case.
bool strips_field(const RouteConfig& route, std::string_view name, const PageRequest& request);

}  // namespace facetheory
