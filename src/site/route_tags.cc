#include "facetheory/site/route_tags.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "facetheory/http/normal_form.h"
#include "facetheory/isr/facetheory_key.h"
#include "facetheory/site/tag_template.h"

namespace facetheory {
namespace {

using SegmentKind = PathPattern::Segment::Kind;

// "CACHE#<tenant>::<route>?<params, then query>[#...]"
struct NamedRoute {
  std::string_view pattern;
  FaceTheoryKey::Pairs pairs =
      {};  // Decoded: segments of the path as they were sent, and what of the query follows.
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
  while (!pairs.empty()) {
    const std::size_t end = std::min(pairs.find('&'), pairs.size());
    const std::string_view pair = pairs.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    route.pairs.emplace_back(decode_percent(pair.substr(0, equals)),
                             decode_percent(pair.substr(std::min(equals + 1, pair.size()))));
    pairs.remove_prefix(std::min(end + 1, pairs.size()));
  }
  return route;
}

// The values of the pattern's variables, as the path that was asked for has them, normalised; what owns them.
using VariableValues = FaceTheoryKey::Pairs;

// The params are the first of the pairs, in the order of a key. Empty: they are not those of this pattern, whose tail
// has something or (not `with_tail`) nothing: then the key leaves it out, and a pair of its name is one of the query.
std::optional<VariableValues> variable_values(const PathPattern& pattern, const FaceTheoryKey::Pairs& pairs,
                                              bool with_tail) {
  VariableValues values;
  std::optional<std::string> empty_tail;
  for (const PathPattern::Segment& segment : pattern.segments()) {
    if (segment.kind == SegmentKind::literal) continue;
    if (segment.kind == SegmentKind::variable || with_tail) {
      values.emplace_back(segment.text, "");
    } else {
      empty_tail = segment.text;
    }
  }
  sort_as_facetheory(values);
  if (values.size() > pairs.size()) return std::nullopt;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].first != pairs[i].first) return std::nullopt;
    values[i].second = normalise_encoding(pairs[i].second).text;
  }
  if (empty_tail) values.emplace_back(*std::move(empty_tail), "");
  return values;
}

bool ends_in_tail(const PathPattern& pattern) {
  return !pattern.segments().empty() && pattern.segments().back().kind >= SegmentKind::tail;
}

// Those that can be made: the others no page of the gateway has, either.
void add_tags(const RouteConfig& route, const PathVariables& variables, std::vector<std::string>& tags) {
  for (const std::string& tag : route.tags) {
    std::optional<std::string> filled = filled_tag(tag, variables);
    if (filled && check_tag(*filled) && std::ranges::find(tags, *filled) == tags.end())
      tags.push_back(*std::move(filled));
  }
}

void add_tags(const RouteConfig& route, const VariableValues& values, std::vector<std::string>& tags) {
  PathVariables variables;
  for (const auto& [name, value] : values) {
    if (variables.count < kMaxPathVariables) variables.items[variables.count++] = {name, value};
  }
  add_tags(route, variables, tags);
}

std::optional<std::vector<std::string>> tags_by_key(const Config& config, const NamedRoute& named) {
  std::optional<std::vector<std::string>> tags;
  for (const RouteConfig& route : config.routes) {
    if (route.key != KeyStyle::facetheory || route.pattern.text() != named.pattern) continue;
    if (!tags) tags.emplace();
    bool told = false;
    for (const bool with_tail : {false, true}) {
      if (with_tail && !ends_in_tail(route.pattern)) continue;
      const auto values = variable_values(route.pattern, named.pairs, with_tail);
      if (!values) continue;
      add_tags(route, *values, *tags);
      told = true;
    }
    if (!told)
      add_tags(route, PathVariables(), *tags);  // Another's key; tags without variables hold all the same.
  }
  return tags;
}

// "<scheme>://<host><path>[?...][ h:...][ c:...]"
struct NamedUrl {
  std::string_view host;
  std::string_view path;
};

std::optional<NamedUrl> url_in(std::string_view cache_key) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!cache_key.starts_with(scheme)) continue;
    const std::string_view rest = cache_key.substr(scheme.size());
    const std::size_t slash = rest.find('/');
    if (slash == 0 || slash == std::string_view::npos) return std::nullopt;
    const std::string_view path = rest.substr(slash);
    return NamedUrl{rest.substr(0, slash), path.substr(0, path.find_first_of("? "))};
  }
  return std::nullopt;
}

bool has_tenant(const RouteConfig& route, std::string_view host, const std::string& tenant) {
  switch (route.tenant.kind) {
    case TenantSource::Kind::none:
      return tenant.empty();
    case TenantSource::Kind::host:
      return tenant == without_port(host);
    case TenantSource::Kind::header:
      break;
  }
  return !tenant.empty();
}

}  // namespace

bool names_route(const Page& page) {
  return route_in(page.pk) || url_in(page.cache_key);
}

RouteTags::RouteTags(Config config) : config_(std::move(config)), routes_(route_table(config_)) {}

std::optional<std::vector<std::string>> RouteTags::of(const Page& page) const {
  if (const auto named = route_in(page.pk)) return tags_by_key(config_, *named);
  const auto url = url_in(page.cache_key);
  if (!url) return std::nullopt;
  // A row may name any cache key. The page's own is the one whose hash its partition has.
  const Result<Page> named = page_of(page.cache_key, page.tenant);
  if (!named || named->pk != page.pk) return std::nullopt;
  const auto match = routes_.match(url->host, "GET", url->path);
  if (!match) return std::nullopt;
  const RouteConfig& route = config_.routes[match->route];
  if (!route.cache || route.key != KeyStyle::url || !has_tenant(route, url->host, page.tenant))
    return std::nullopt;
  std::vector<std::string> tags;
  add_tags(route, match->variables, tags);
  return tags;
}

}  // namespace facetheory
