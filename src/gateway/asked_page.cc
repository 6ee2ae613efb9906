#include "facetheory/gateway/asked_page.h"

#include <utility>

#include "facetheory/gateway/pass_through.h"
#include "facetheory/gateway/peers.h"
#include "facetheory/gateway/replay.h"
#include "facetheory/http/field_values.h"

namespace facetheory {

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

AskedPage asked_page(const Site& site, std::string_view method, std::string_view target,
                     const Headers& headers, std::string_view peer) {
  AskedPage asked;
  asked.headers = end_to_end(headers);
  asked.trusted = is_trusted(site.config, peer);
  const auto refused = [&](int status, std::string why) {
    asked.found = Refused{status, std::move(why)};
    return std::move(asked);
  };
  if (method == "CONNECT") return refused(501, "this is no proxy for CONNECT");
  if (method == "TRACE") return refused(405, "TRACE is not answered here");
  auto read = read_target(target, headers, asked.trusted);
  if (!read) return refused(400, read.error().message);
  asked.target = *std::move(read);

  const auto match = site.routes.match(asked.target.host, method, asked.target.path);
  if (!match) return refused(404, "no route of this gateway has this path");
  asked.route = match->route;
  const RouteConfig& route = site.config.routes[match->route];
  asked.rules = read_rules(method, asked.headers, {route.honour_client_freshness});
  auto key = page_key(site.config, route, match->variables, asked.request(method));
  if (!key) return refused(status_of(key.error().code), key.error().message);
  if (auto* bypass = std::get_if<Bypass>(&*key)) {
    asked.found = std::move(*bypass);
  } else if (wanted_protocol(headers)) {
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
