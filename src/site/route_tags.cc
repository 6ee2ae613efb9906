#include "facetheory/site/route_tags.h"

#include <algorithm>
#include <utility>

#include "facetheory/isr/page.h"
#include "facetheory/site/tag_template.h"

namespace facetheory {
namespace {

// "CACHE#<tenant>::<route>?<params, then query>[#...]"
struct NamedRoute {
  std::string_view pattern;
  PathVariables variables = {};  // And what of the query stands behind them; still encoded.
};

std::optional<NamedRoute> route_in(std::string_view pk) {
  constexpr std::string_view kCachePrefix = "CACHE#";
  if (!pk.starts_with(kCachePrefix)) return std::nullopt;
  const std::size_t tenant_end = pk.find(kTenantEnd);
  const std::size_t question = pk.find('?');
  if (tenant_end == std::string_view::npos || question == std::string_view::npos || question < tenant_end)
    return std::nullopt;
  const std::size_t begin = tenant_end + kTenantEnd.size() - 1;  // The slash is the route's.
  NamedRoute route{pk.substr(begin, question - begin)};
  std::string_view pairs = pk.substr(question + 1);
  pairs = pairs.substr(0, pairs.find('#'));
  while (!pairs.empty() && route.variables.count < kMaxPathVariables) {
    const std::size_t end = std::min(pairs.find('&'), pairs.size());
    const std::string_view pair = pairs.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    route.variables.items[route.variables.count++] = {pair.substr(0, equals), value};
    pairs.remove_prefix(std::min(end + 1, pairs.size()));
  }
  return route;
}

}  // namespace

bool names_route(std::string_view pk) {
  return route_in(pk).has_value();
}

std::optional<std::vector<std::string>> tags_by_route(const Config& config, std::string_view pk) {
  const auto named = route_in(pk);
  if (!named) return std::nullopt;
  std::optional<std::vector<std::string>> tags;
  for (const RouteConfig& route : config.routes) {
    if (route.key != KeyStyle::facetheory || route.pattern.text() != named->pattern) continue;
    if (!tags) tags.emplace();
    for (const std::string& tag : route.tags) {
      std::optional<std::string> filled = filled_tag(tag, named->variables);
      if (filled && check_tag(*filled)) tags->push_back(*std::move(filled));
    }
  }
  return tags;
}

}  // namespace facetheory
