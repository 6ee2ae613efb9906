#include "facetheory/site/asked_page.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "facetheory/http/field_values.h"
#include "facetheory/http/peers.h"
#include "facetheory/rules/replay.h"

namespace facetheory {
namespace {

// Those that are worth telling: others are passed on like them.
constexpr std::array<std::string_view, 7> kMethods = {"GET", "HEAD",  "OPTIONS", "POST",
                                                      "PUT", "PATCH", "DELETE"};

template <typename Names>
std::string text_of(const Names& methods) {
  std::string text;
  for (const std::string_view method : methods)
    text.append(text.empty() ? "" : ", ").append(method);
  return text;
}

// Lists the methods for which the target has a route.
std::string allowed_methods(const Site& site, const RequestTarget& target) {
  std::vector<std::string_view> allowed;
  for (const std::string_view method : kMethods) {
    if (site.routes.match(target.host, method, target.path)) allowed.push_back(method);
  }
  return text_of(allowed);
}

// RFC 9112, 3.2.4: "*", or what a proxy is sent instead of it, a URL without path and query. The server is this
// gateway, behind whose routes there may be several origins, of which none can speak for the others.
bool asks_about_server(std::string_view method, std::string_view target) {
  if (method != "OPTIONS") return false;
  const std::size_t colon = target.find("://");
  return target == "*" || (colon != std::string_view::npos && colon > 0 &&
                           target.find_first_of("/?", colon + 3) == std::string_view::npos);
}

// How often OPTIONS may be passed on (RFC 9110, 7.6.2); empty: as often as it takes.
Result<std::optional<std::uint64_t>> max_forwards(const Headers& headers) {
  constexpr std::uint64_t kMost = 1'000'000;
  if (!headers.get("max-forwards")) return std::optional<std::uint64_t>();
  const auto value = only_value(headers, "max-forwards");
  const auto hops = value ? parse_digits(*value, kMost) : std::nullopt;
  if (!hops) return Error{ErrorCode::invalid, "Max-Forwards is not one number"};
  return hops;
}

}  // namespace

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
      return 400;
    case ErrorCode::unauthorized:
      return 403;
    case ErrorCode::unavailable:
    case ErrorCode::exhausted:
      return 503;
    case ErrorCode::ambiguous:
      return 502;
    default:
      return 500;
  }
}

bool is_trusted(const Config& config, std::string_view peer) {
  if (config.trusted_peers.empty()) return false;
  const auto address = parse_ip(peer);
  return address && contains(config.trusted_peers, *address);
}

AskedPage asked_page(const Site& site, const ServerRequest& request) {
  AskedPage asked;
  const std::string_view method = request.method;
  asked.headers = end_to_end(request.headers);
  asked.trusted = is_trusted(site.config, request.peer);
  const auto refused = [&](int status, std::string why, std::string allow = {}) {
    asked.found = Refused{status, std::move(why), std::move(allow)};
    return std::move(asked);
  };
  if (method == "CONNECT") return refused(501, "this is no proxy for CONNECT");
  const bool of_server = asks_about_server(method, request.target);
  std::string_view target = request.target;
  if (of_server && target == "*") target = "/";
  const std::string& default_host =
      site.config.default_host.empty() ? request.own_address : site.config.default_host;
  auto read = read_target(target, request.headers, asked.trusted, default_host);
  if (!read) return refused(400, read.error().message);
  asked.target = *std::move(read);
  // What is reflected would hold the fields that proxies in front have added, for scripts to read. So nothing is, and
  // nothing is passed on, whatever Max-Forwards says.
  if (method == "TRACE")
    return refused(405, "TRACE is not answered here", allowed_methods(site, asked.target));
  if (method == "OPTIONS") {
    auto hops = max_forwards(asked.headers);
    if (!hops) return refused(400, hops.error().message);
    std::string allowed = of_server ? text_of(kMethods) : std::string();
    if (*hops == 0U && !of_server) allowed = allowed_methods(site, asked.target);
    if (!allowed.empty()) {
      asked.found = OwnOptions{std::move(allowed)};
      return asked;
    }
    if (*hops > 0U) asked.hops_left = **hops - 1;
  }

  const auto match = site.routes.match(asked.target.host, method, asked.target.path);
  if (!match) {
    std::string allowed = allowed_methods(site, asked.target);
    if (allowed.empty()) return refused(404, "no route of this gateway has this path");
    return refused(405, "no route of this gateway takes this method for this path", std::move(allowed));
  }
  asked.route = match->route;
  const RouteConfig& route = site.config.routes[match->route];
  asked.rules = read_rules(method, asked.headers, {route.honour_client_freshness});
  auto key = page_key(site.config, route, match->variables, asked.request(method));
  if (!key) return refused(status_of(key.error().code), key.error().message);
  if (auto* bypass = std::get_if<Bypass>(&*key)) {
    asked.found = std::move(*bypass);
  } else if (wanted_protocol(request.headers, request.minor_version)) {
    asked.found = Bypass{"it asks for another protocol"};
  } else if (is_event_stream(combined(asked.headers, "accept").value_or(""))) {
    asked.found = Bypass{"it asks for an event stream"};
  } else if (asked.rules.for_origin) {
    asked.found = Bypass{"only the origin can tell whether its condition holds"};
  } else {
    asked.found = std::get<PageKey>(*std::move(key));
  }
  return asked;
}

}  // namespace facetheory
