#include "facetheory/site/read_routes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/site/facetheory_request.h"
#include "facetheory/site/page_key.h"
#include "facetheory/site/tag_template.h"

namespace facetheory {
namespace {

constexpr std::chrono::seconds kLongestWindow = std::chrono::hours(24 * 365);
constexpr int kMaxHistory = 80;

struct RouteDraft {
  RouteConfig route = {};
  std::map<std::string, TomlPlace, std::less<>> own = {};        // Keys of the route's own table.
  std::map<std::string, TomlPlace, std::less<>> inherited = {};  // Those of [defaults].
};

constexpr auto kQueryKeys = std::to_array<ConfigKey<QueryRule>>({
    {"include",
     [](const ConfigValue& value, QueryRule& query) {
       if (auto names = value.names()) query.include = *std::move(names);
     }},
    {"ignore", [](const ConfigValue& value, QueryRule& query) { assign(query.ignore, value.names()); }},
    {"tracking",
     [](const ConfigValue& value, QueryRule& query) {
       if (const auto ignore = value.one_of<bool>({{"ignore", true}, {"keep", false}}))
         query.ignore_tracking = *ignore;
     }},
});

constexpr auto kBypassKeys = std::to_array<ConfigKey<BypassRule>>({
    {"paths",
     [](const ConfigValue& value, BypassRule& bypass) {
       if (!value.texts()) return;
       bypass.paths.clear();
       for (const ConfigValue& element : value.elements()) {
         auto pattern = PathPattern::parse(*element.text());
         if (pattern) {
           bypass.paths.push_back(*std::move(pattern));
         } else {
           element.problem(pattern.error().message);
         }
       }
     }},
    {"cookies",
     [](const ConfigValue& value, BypassRule& bypass) { assign(bypass.cookies, value.cookie_names()); }},
    {"headers",
     [](const ConfigValue& value, BypassRule& bypass) { assign(bypass.headers, value.field_names()); }},
});

void read_pattern(const ConfigValue& value, RouteDraft& draft) {
  const std::optional<std::string> text = value.text();
  if (!text) return;
  auto pattern = PathPattern::parse(*text);
  if (!pattern) return value.problem(pattern.error().message);
  draft.route.pattern = *std::move(pattern);
}

void read_hosts(const ConfigValue& value, RouteDraft& draft) {
  if (!value.texts()) return;
  draft.route.hosts = read_host_names(value);
  if (value.elements().empty()) value.problem("is empty, and matches nothing; leave it out for any host");
}

void read_methods(const ConfigValue& value, RouteDraft& draft) {
  if (!value.texts()) return;
  for (const ConfigValue& element : value.elements()) {
    const std::string text = *element.text();
    if (text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != std::string::npos) {
      element.problem(quoted_for_message(text) + " is no method; write \"GET\", in capitals");
    } else {
      draft.route.methods.push_back(text);
    }
  }
  if (value.elements().empty()) value.problem("is empty, and matches nothing; leave it out for any method");
}

void read_headers(const ConfigValue& value, RouteDraft& draft) {
  if (!value.texts()) return;
  draft.route.headers.clear();
  for (const ConfigValue& element : value.elements()) {
    const std::optional<std::string> name = element.field_name();
    if (!name) continue;
    constexpr std::array<std::string_view, 13> kNeverPartOfAPage = {
        "connection", "content-length",      "expect", "if-match", "if-modified-since", "if-none-match",
        "if-range",   "if-unmodified-since", "range",  "te",       "trailer",           "transfer-encoding",
        "upgrade"};
    if (*name == "cookie") {
      element.problem("name the cookies that matter in `cookies` instead");
    } else if (*name == "host") {
      element.problem("the host is always part of the key; drop it");
    } else if (std::find(kNeverPartOfAPage.begin(), kNeverPartOfAPage.end(), *name) !=
               kNeverPartOfAPage.end()) {
      element.problem(*name + " is about the transfer and not about the page; drop it");
    } else {
      draft.route.headers.push_back(*name);
    }
  }
}

void read_tenant(const ConfigValue& value, RouteDraft& draft) {
  const std::optional<std::string> text = value.text();
  if (!text) return;
  constexpr std::string_view kHeader = "header:";
  if (*text == "none" || *text == "host") {
    draft.route.tenant = {.kind = *text == "none" ? TenantSource::Kind::none : TenantSource::Kind::host};
    return;
  }
  const std::string name = lower_case(text->substr(std::min(kHeader.size(), text->size())));
  if (!text->starts_with(kHeader) || name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") != std::string::npos) {
    return value.problem(quoted_for_message(*text) +
                         " is no tenant source; write none, host or header:x-tenant-id");
  }
  draft.route.tenant = {.kind = TenantSource::Kind::header, .header = name};
}

// The first three say where a route is, and cannot be given for all.
constexpr std::size_t kPlacingKeys = 3;
constexpr auto kRouteKeys = std::to_array<ConfigKey<RouteDraft>>({
    {"pattern", read_pattern},
    {"hosts", read_hosts},
    {"methods", read_methods},
    {"origin", [](const ConfigValue& value, RouteDraft& draft) { assign(draft.route.origin, value.text()); }},
    {"cache", [](const ConfigValue& value, RouteDraft& draft) { assign(draft.route.cache, value.boolean()); }},
    {"revalidate",
     [](const ConfigValue& value, RouteDraft& draft) {
       if (value.is_text("origin")) {
         draft.route.revalidate.reset();
       } else if (const auto window = value.seconds(std::chrono::seconds(1), kLongestWindow)) {
         draft.route.revalidate = *window;
       }
     }},
    {"mode",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.policy.mode,
              value.one_of<ServeMode>({{"swr", ServeMode::swr}, {"blocking", ServeMode::blocking}}));
     }},
    {"stale_for",
     [](const ConfigValue& value, RouteDraft& draft) {
       if (value.is_text("forever")) {
         draft.route.policy.stale_for.reset();
       } else if (const auto window = value.seconds(std::chrono::seconds(0), kLongestWindow)) {
         draft.route.policy.stale_for = *window;
       }
     }},
    {"wait_limit",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.policy.wait_limit, value.duration(std::chrono::milliseconds(0), std::chrono::hours(1)));
     }},
    {"on_failure",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.policy.on_failure,
              value.one_of<OnFailure>({{"serve-stale", OnFailure::serve_stale}, {"error", OnFailure::error}}));
     }},
    {"on_contention",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.policy.on_contention,
              value.one_of<OnContention>(
                  {{"wait", OnContention::wait}, {"serve-stale", OnContention::serve_stale}}));
     }},
    {"renders",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.policy.publisher,
              value.one_of<Publisher>({{"gateway", Publisher::here}, {"origin", Publisher::elsewhere}}));
     }},
    {"history",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.policy.history, value.integer(0, kMaxHistory));
     }},
    {"ttl",
     [](const ConfigValue& value, RouteDraft& draft) {
       if (value.is_text("never")) {
         draft.route.policy.ttl.reset();
       } else if (const auto ttl = value.seconds(std::chrono::seconds(1), 10 * kLongestWindow)) {
         draft.route.policy.ttl = *ttl;
       }
     }},
    {"lease",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.policy.lease, value.seconds(kShortestLease, std::chrono::hours(1)));
     }},
    {"not_found",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.not_found, value.seconds(std::chrono::seconds(0), std::chrono::hours(24)));
     }},
    {"gone",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.gone, value.seconds(std::chrono::seconds(0), std::chrono::hours(24)));
     }},
    {"tags", [](const ConfigValue& value, RouteDraft& draft) { assign(draft.route.tags, value.texts()); }},
    {"query",
     [](const ConfigValue& value, RouteDraft& draft) {
       read_keys<QueryRule>(value, kQueryKeys, draft.route.query);
     }},
    {"cookies", [](const ConfigValue& value, RouteDraft& draft) { assign(draft.route.cookies, value.cookie_names()); }},
    {"ignore_cookies",
     [](const ConfigValue& value, RouteDraft& draft) { assign(draft.route.ignore_cookies, value.cookie_names()); }},
    {"other_cookies",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.other_cookies,
              value.one_of<OtherCookies>({{"bypass", OtherCookies::bypass}, {"strip", OtherCookies::strip}}));
     }},
    {"headers", read_headers},
    {"forward",
     [](const ConfigValue& value, RouteDraft& draft) { assign(draft.route.forward, value.field_names()); }},
    {"client_freshness",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.honour_client_freshness, value.one_of<bool>({{"ignore", false}, {"honour", true}}));
     }},
    {"unsafe_invalidates",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.unsafe_invalidates,
              value.one_of<UnsafeInvalidates>({{"same-site", UnsafeInvalidates::same_site},
                                               {"always", UnsafeInvalidates::always},
                                               {"never", UnsafeInvalidates::never}}));
     }},
    {"tenant", read_tenant},
    {"bypass",
     [](const ConfigValue& value, RouteDraft& draft) {
       read_keys<BypassRule>(value, kBypassKeys, draft.route.bypass);
     }},
    {"key",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.key,
              value.one_of<KeyStyle>({{"default", KeyStyle::url}, {"facetheory", KeyStyle::facetheory}}));
     }},
    {"preset",
     [](const ConfigValue& value, RouteDraft& draft) {
       assign(draft.route.preset, value.one_of<Preset>({{"none", Preset::none}, {"nextjs", Preset::nextjs}}));
     }},
});

class RouteCheck {
 public:
  RouteCheck(RouteDraft& draft, const Config& config, std::string key, ConfigProblems& problems)
      : draft_(draft), route_(draft.route), config_(config), key_(std::move(key)), problems_(problems) {}

  void check(const std::string& default_origin) {
    check_origin(default_origin);
    check_times();
    check_names();
    check_tags();
    if (route_.tenant.kind == TenantSource::Kind::header && config_.trusted_peers.empty()) {
      problem("tenant",
              "nobody may name the tenant, since trusted_peers is empty; list the proxies that set " +
                  route_.tenant.header);
    }
    if (!route_.query.ignore_tracking) route_.query.ignore_tracking = route_.key != KeyStyle::facetheory;
    if (route_.key == KeyStyle::facetheory) check_facetheory_key();
  }

 private:
  void problem(std::string_view key, const std::string& what) {
    const std::string name(key);
    if (const auto own = draft_.own.find(key); own != draft_.own.end()) {
      problems_.add(own->second, key_ + "." + name, what);
    } else if (const auto inherited = draft_.inherited.find(key); inherited != draft_.inherited.end()) {
      problems_.add(inherited->second, "defaults." + name,
                    what + " (for the pattern " + quoted_for_message(route_.pattern.text()) + ")");
    } else {
      problems_.add(route_.place, key_ + "." + name, what);
    }
  }

  void check_origin(const std::string& default_origin) {
    if (route_.origin.empty()) {
      route_.origin = default_origin;
      if (default_origin.empty() && !config_.origins.empty()) {
        problem("origin", "is missing, and there is no origin for all; name one of the tables of [origins]");
      }
    } else if (!config_.origins.contains(route_.origin)) {
      std::vector<std::string_view> known;
      for (const auto& [name, origin] : config_.origins)
        known.push_back(name);
      const auto meant = closest(route_.origin, known);
      problem("origin", quoted_for_message(route_.origin) + " is no origin; " +
                            (meant ? "did you mean " + std::string(*meant) + "?"
                                   : "make a table [origins." +
                                         (is_origin_name(route_.origin) ? route_.origin : "name") + "]"));
    }
  }

  void check_times() {
    const PagePolicy& policy = route_.policy;
    if (!route_.cache) {
      for (const std::string_view key : {"revalidate", "mode", "stale_for", "history", "ttl", "tags"}) {
        if (draft_.own.contains(key)) problem(key, "has no effect beside cache = false; drop one of them");
      }
      return;
    }
    if (policy.publisher == Publisher::elsewhere) {
      for (const std::string_view key : {"revalidate", "history", "ttl", "lease", "not_found", "gone"}) {
        if (draft_.own.contains(key))
          problem(key,
                  "is for pages that are published here, and renders = \"origin\" publishes none; drop one "
                  "of them");
      }
      if (route_.key == KeyStyle::url) {
        problem("renders",
                "the origin keeps its pages under keys of its own; write key = \"facetheory\", so that they "
                "are found");
      }
    }
    const std::chrono::seconds fresh = route_.revalidate.value_or(std::chrono::seconds(0));
    if (policy.ttl && *policy.ttl <= fresh) {
      problem(
          "ttl",
          "ends within the window of revalidate, and the table would forget a fresh page; give more than " +
              format_duration(fresh));
    } else if (policy.ttl && policy.stale_for && *policy.ttl < fresh + *policy.stale_for) {
      problem(
          "ttl",
          "ends before revalidate and stale_for do, and the table would forget a page that may be served; "
          "give at least " +
              format_duration(fresh + *policy.stale_for));
    }
    if (policy.mode == ServeMode::swr && policy.stale_for == std::chrono::seconds(0)) {
      problem("stale_for",
              "mode = \"swr\" serves stale pages, and 0s allows none; write mode = \"blocking\"");
    }
    if (policy.mode == ServeMode::swr && draft_.own.contains("on_contention")) {
      problem("on_contention", "is about mode = \"blocking\", and the mode is swr; drop one of them");
    }
  }

  void check_names() {
    const auto in_both = [&](const auto& left, const NamePatterns& right, std::string_view key,
                             const std::string& other) {
      for (const std::string& name : left) {
        if (std::find(right.begin(), right.end(), name) == right.end()) continue;
        problem(key, quoted_for_message(name) + " is in " + other + " too; drop one of them");
      }
    };
    in_both(route_.cookies, route_.ignore_cookies, "cookies", "ignore_cookies");
    in_both(route_.cookies, route_.bypass.cookies, "cookies", "bypass.cookies");
    if (route_.query.include) in_both(*route_.query.include, route_.query.ignore, "query", "query.ignore");
    // A key made of it is the other safe way to treat it.
    if (route_.bypass.headers == BypassRule{}.headers &&
        std::find(route_.headers.begin(), route_.headers.end(), "authorization") != route_.headers.end()) {
      route_.bypass.headers = {};
    }
    in_both(route_.headers, route_.bypass.headers, "headers", "bypass.headers");
    for (const std::string& name : route_.headers) {
      const auto& boundary = config_.boundary_headers;
      if (std::find(boundary.begin(), boundary.end(), name) != boundary.end()) {
        problem("headers", name + " names a tenant; write tenant = \"header:" + name + "\"");
      }
    }
  }

  void check_tags() {
    if (route_.tags.size() > kMaxTags) {
      problem("tags", "a page has at most " + std::to_string(kMaxTags) + " tags");
    }
    for (const std::string& tag : route_.tags) {
      if (auto checked = check_tag_template(tag, route_.pattern); !checked)
        problem("tags", checked.error().message);
    }
  }

  void check_facetheory_key() {
    for (const std::string& name : route_.headers) {
      if (!facetheory_auth_headers().matches(name)) {
        problem("headers",
                "FaceTheory's key has no place for " + name + "; drop it, or write key = \"default\"");
      }
    }
    if (route_.preset != Preset::none) {
      problem("preset", "FaceTheory's key has no place for what the preset tells apart; drop one of them");
    }
    using Kind = PathPattern::Segment::Kind;
    for (const PathPattern::Segment& segment : route_.pattern.segments()) {
      const bool tail = segment.kind == Kind::tail || segment.kind == Kind::optional_tail;
      if (tail && !route_.pattern.text().ends_with("+}") && !route_.pattern.text().ends_with("*}")) {
        problem("pattern",
                "the tail of FaceTheory's patterns is {proxy+} or {proxy*}; write it so, as the key has it");
      }
    }
    const auto origin = config_.origins.find(route_.origin);
    const bool one_host = route_.hosts.size() == 1 && !route_.hosts.front().starts_with("*.");
    if (route_.tenant.kind == TenantSource::Kind::none && !one_host && origin != config_.origins.end() &&
        origin->second.host == HostPolicy::client) {
      problem(
          "key",
          "FaceTheory's key does not tell hosts apart, and the origin sees the client's; name one host in "
          "`hosts`, write tenant = \"host\", or give the origin's table host = \"origin\"");
    }
  }

  RouteDraft& draft_;
  RouteConfig& route_;
  const Config& config_;
  const std::string key_;
  ConfigProblems& problems_;
};

// FaceTheory's key says nothing of the route but its pattern.
void check_shared_keys(const Config& config, ConfigProblems& problems) {
  for (std::size_t i = 0; i < config.routes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const RouteConfig& route = config.routes[i];
      const RouteConfig& other = config.routes[j];
      if (route.key != KeyStyle::facetheory || other.key != KeyStyle::facetheory ||
          route.pattern.text() != other.pattern.text() ||
          (route.tenant == other.tenant && route.tenant.kind != TenantSource::Kind::none)) {
        continue;
      }
      problems.add(route.place, "routes[" + std::to_string(i) + "].key",
                   "the route of line " + std::to_string(other.place.line) +
                       " has the same pattern, and FaceTheory's key would give both the same pages; give "
                       "both the same "
                       "tenant source, or one of them key = \"default\"");
    }
  }
}

void check_overlaps(const Config& config, ConfigProblems& problems) {
  RouteTable table;
  for (std::size_t i = 0; i < config.routes.size(); ++i) {
    const RouteConfig& route = config.routes[i];
    if (route.pattern.segments().empty()) continue;
    if (const auto other = table.add_or_find_conflict(i, route.pattern, route.hosts, route.methods)) {
      problems.add(
          route.place, "routes[" + std::to_string(i) + "]",
          "matches what the route of line " + std::to_string(config.routes[*other].place.line) +
              " matches, and neither is more specific; drop one, or give them different hosts or methods");
    }
  }
}

RouteDraft read_defaults(const std::optional<ConfigValue>& table) {
  RouteDraft defaults;
  if (!table) return defaults;
  read_keys<RouteDraft>(*table, std::span<const ConfigKey<RouteDraft>>(kRouteKeys).subspan(kPlacingKeys),
                        defaults);
  if (const auto entries = table->entries()) {
    for (const auto& [name, value] : *entries)
      defaults.inherited.emplace(name, value.place());
  }
  return defaults;
}

std::vector<RouteDraft> read_drafts(const std::optional<ConfigValue>& tables, const RouteDraft& defaults,
                                    ConfigProblems& problems) {
  std::vector<RouteDraft> drafts;
  if (!tables) return drafts;
  if (!tables->is_array()) {
    tables->problem("expected tables; begin each route with [[routes]], in two brackets");
    return drafts;
  }
  for (const ConfigValue& table : tables->elements()) {
    RouteDraft& route = drafts.emplace_back(defaults);
    route.route.place = table.place();
    const auto entries = table.entries();
    if (!entries) continue;
    for (const auto& [name, value] : *entries)
      route.own.emplace(name, value.place());
    read_keys<RouteDraft>(table, kRouteKeys, route);
    if (!route.own.contains("pattern")) {
      problems.add(table.place(), table.key() + ".pattern", "is missing; write pattern = \"/news/{slug}\"");
    }
  }
  return drafts;
}

// Every tenant header is a boundary for the routes that do not use it.
void add_boundary_headers(const RouteDraft& defaults, const std::vector<RouteDraft>& drafts,
                          std::vector<std::string>& names) {
  for (const std::string_view name : {"x-tenant-id", "x-facetheory-tenant"})
    names.emplace_back(name);
  const auto add = [&](const RouteDraft& route) {
    if (!route.route.tenant.header.empty()) names.push_back(route.route.tenant.header);
  };
  std::for_each(drafts.begin(), drafts.end(), add);
  add(defaults);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

bool takes_everything(const RouteDraft& route) {
  const auto& segments = route.route.pattern.segments();
  return segments.size() == 1 && segments[0].kind >= PathPattern::Segment::Kind::tail &&
         route.route.hosts.empty() && route.route.methods.empty();
}

// The route for requests that no other route takes. With no routes at all, what it leads to is a page like any other,
// else it is passed on.
std::optional<RouteDraft> draft_of_the_rest(const RouteDraft& defaults, const std::vector<RouteDraft>& drafts,
                                            const std::string& default_origin) {
  const std::string& origin = default_origin.empty() ? defaults.route.origin : default_origin;
  if (origin.empty() || std::any_of(drafts.begin(), drafts.end(), takes_everything)) return std::nullopt;
  RouteDraft rest = defaults;
  if (!drafts.empty()) rest = RouteDraft{.route = {.pattern = {}, .origin = origin, .cache = false}};
  rest.route.pattern = *PathPattern::parse("/*");
  return rest;
}

}  // namespace

void read_routes(const std::optional<ConfigValue>& defaults_value,
                 const std::optional<ConfigValue>& routes_value, const std::string& default_origin,
                 Config& config, ConfigProblems& problems) {
  const RouteDraft defaults = read_defaults(defaults_value);
  std::vector<RouteDraft> drafts = read_drafts(routes_value, defaults, problems);
  add_boundary_headers(defaults, drafts, config.boundary_headers);
  std::optional<RouteDraft> rest = draft_of_the_rest(defaults, drafts, default_origin);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    RouteCheck(drafts[i], config, "routes[" + std::to_string(i) + "]", problems).check(default_origin);
    config.routes.push_back(std::move(drafts[i].route));
  }
  if (rest) {
    RouteCheck(*rest, config, "defaults", problems).check(default_origin);
    config.routes.push_back(std::move(rest->route));
  }
  check_overlaps(config, problems);
  check_shared_keys(config, problems);
}

std::vector<std::string> read_host_names(const ConfigValue& value) {
  std::vector<std::string> names;
  if (!value.texts()) return names;
  for (const ConfigValue& element : value.elements()) {
    const std::string text = *element.text();
    const bool wildcard = text.starts_with("*.");
    const auto host = normalise_host(std::string_view(text).substr(wildcard ? 2 : 0));
    if (!host) {
      element.problem(host.error().message + "; write example.com or *.example.com");
    } else if (without_port(*host) != *host) {
      element.problem("is for a host whatever its port; write " + std::string(without_port(*host)));
    } else {
      names.push_back((wildcard ? "*." : "") + *host);
    }
  }
  return names;
}

bool is_origin_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
             std::string_view::npos;
}

std::vector<std::string> route_keys() {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& prefix, const auto& list) {
    for (const auto& key : list)
      keys.push_back(prefix + std::string(key.name));
  };
  add("", kRouteKeys);
  add("query.", kQueryKeys);
  add("bypass.", kBypassKeys);
  return keys;
}

}  // namespace facetheory
