#include "facetheory/site/page_key.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/sha256.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/base/utf8.h"
#include "facetheory/http/cookies.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/isr/facetheory_key.h"
#include "facetheory/site/facetheory_request.h"
#include "facetheory/site/nextjs.h"
#include "facetheory/site/tag_template.h"
#include "facetheory/site/tracking_names.h"

namespace facetheory {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Error bad_request(std::string message) {
  return {ErrorCode::invalid, std::move(message)};
}

std::vector<std::string_view> values_of(const PageRequest& request, std::string_view lower_name) {
  std::vector<std::string_view> values;
  for (const Headers::Field& field : request.headers) {
    if (same_text(field.name, lower_name)) values.push_back(trimmed(field.value));
  }
  return values;
}

// The lines of one field are one list (RFC 9110, 5.3).
std::optional<std::string> value_of(const PageRequest& request, std::string_view lower_name) {
  const std::vector<std::string_view> values = values_of(request, lower_name);
  if (values.empty()) return std::nullopt;
  std::string joined(values.front());
  for (std::size_t i = 1; i < values.size(); ++i)
    joined.append(", ").append(values[i]);
  return std::string(trimmed(joined));  // As whoever gets it reads it, also where the last line is empty.
}

std::string key_digest(std::string_view value) {
  constexpr std::size_t kDigits = 32;
  return "#" + sha256_hex(value).substr(0, kDigits);
}

bool asks_for_payload(const RouteConfig& route, const PageRequest& request) {
  return route.preset == Preset::nextjs && value_of(request, nextjs::kPayloadField) == "1";
}

using Parameter = std::pair<std::string, std::string>;  // Name, decoded; "name=value" or "name", normalised.

// Those of one name keep their order, which can matter. (std::stable_sort: see sort_as_locale_compare().)
std::vector<std::size_t> order_by_name(const Pairs& pairs) {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    const int by_name = pairs[left].first.compare(pairs[right].first);
    return by_name != 0 ? by_name < 0 : left < right;
  });
  return order;
}

bool keeps_parameter(const RouteConfig& route, const std::string& name, bool payload) {
  if (route.preset == Preset::nextjs) {
    if (nextjs::internal_parameters().matches(name)) return false;
    if (name == nextjs::kPayloadParameter) return payload;
  }
  return route.query.keeps(name);
}

// Those that make a different page, sorted.
Result<std::vector<Parameter>> kept_parameters(const RouteConfig& route, const PageRequest& request) {
  const Result<std::string> query = normalise_query(request.query);
  if (!query) return query.error();
  const bool payload = asks_for_payload(route, request);
  std::vector<Parameter> kept;
  for (std::string_view rest = *query; !rest.empty();) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::string name = decode_percent(text.substr(0, text.find('=')));
    if (!text.empty() && keeps_parameter(route, name, payload)) {
      kept.emplace_back(std::move(name), text);
    }
  }
  std::vector<Parameter> sorted;
  for (const std::size_t i : order_by_name(kept))
    sorted.push_back(std::move(kept[i]));
  return sorted;
}

Pairs cookies_of(const PageRequest& request) {
  Pairs cookies;
  for (std::string_view rest : values_of(request, "cookie")) {
    while (const auto cookie = next_cookie(rest))
      cookies.emplace_back(cookie->first, cookie->second);
  }
  return cookies;
}

bool is_draft_cookie(const RouteConfig& route, std::string_view name) {
  return route.preset == Preset::nextjs && nextjs::bypass_cookies().matches(name);
}

std::optional<Bypass> bypass_by_rule(const RouteConfig& route, const PageRequest& request,
                                     const Pairs& cookies) {
  if (request.method != "GET" && request.method != "HEAD") {
    return Bypass{"the method is " + std::string(request.method) + ", and pages answer GET and HEAD"};
  }
  for (const PathPattern& pattern : route.bypass.paths) {
    if (pattern.matches(request.path))
      return Bypass{"bypass.paths has " + quoted_for_message(pattern.text())};
  }
  for (const Headers::Field& field : request.headers) {
    const std::string name = lower_case(field.name);
    if (route.bypass.headers.matches(name)) return Bypass{"bypass.headers has " + quoted_for_message(name)};
  }
  for (const auto& [name, value] : cookies) {
    const auto passed = [&cookie = name](const std::string& why) {
      return Bypass{"the request has the cookie " + quoted_for_message(cookie) + ", " + why};
    };
    if (use_of(route, name) != CookieUse::bypasses) continue;
    if (route.bypass.cookies.matches(name)) return passed("which is in bypass.cookies");
    if (is_draft_cookie(route, name)) return passed("by which Next.js shows a draft");
    return passed("of which the route does not say whether it makes a different page");
  }
  return std::nullopt;
}

// Fields that make a different page, those that the request lacks included.
std::vector<std::pair<std::string, std::optional<std::string>>> kept_fields(const RouteConfig& route,
                                                                            const PageRequest& request) {
  std::set<std::string, std::less<>> names(route.headers.begin(), route.headers.end());
  for (const std::string& name : facetheory_auth_headers()) {
    if (route.key == KeyStyle::facetheory && value_of(request, name)) names.insert(name);
  }
  if (asks_for_payload(route, request)) {
    names.emplace(nextjs::kPayloadField);
    names.insert(nextjs::kPayloadVariants.begin(), nextjs::kPayloadVariants.end());
  }
  if (route.preset == Preset::nextjs && value_of(request, nextjs::kDataField))
    names.emplace(nextjs::kDataField);
  std::vector<std::pair<std::string, std::optional<std::string>>> fields;
  for (const std::string& name : names) {
    if (!strips_field(route, name, request)) fields.emplace_back(name, value_of(request, name));
  }
  return fields;
}

std::string key_value(std::string_view name, const std::string& value) {
  constexpr std::size_t kLongest = 64;
  const bool secret = facetheory_auth_headers().matches(name);
  return secret || value.size() > kLongest ? key_digest(value) : encode_uri_component(value);
}

Result<Page> url_page(const PageRequest& request, const std::string& target, const PageKey& key,
                      const std::vector<std::pair<std::string, std::optional<std::string>>>& fields,
                      const Pairs& cookies) {
  std::string_view host = request.host;
  const std::string_view own_port = request.scheme == "https" ? ":443" : ":80";
  if (without_port(host).size() + own_port.size() == host.size() && host.ends_with(own_port)) {
    host.remove_suffix(own_port.size());
  }
  std::string text = std::string(request.scheme) + "://" + std::string(host) + target;
  for (const auto& [name, value] : fields) {
    text += " h:" + name;
    if (value) text += "=" + key_value(name, *value);
  }
  for (const std::size_t i : order_by_name(cookies)) {
    text += " c:" + encode_uri_component(cookies[i].first) + "=" + key_digest(cookies[i].second);
  }
  return page_of(text, key.page.tenant);
}

// What FaceTheory's key is made of, and what FaceTheory is to be asked for so that it makes the same.
struct FaceTheoryParts {
  FaceTheoryKey key;
  std::string target;
};

std::variant<FaceTheoryParts, Bypass> facetheory_parts(const RouteConfig& route, const std::string& tenant,
                                                       const PageRequest& request, const Pairs& cookies) {
  FaceTheoryPath path = facetheory_path(route.pattern, request.path, request.sent_path);
  FaceTheoryParts parts{.key = {.tenant = tenant.empty() ? "default" : tenant,
                                .route = route.pattern.text(),
                                .params = std::move(path.params),
                                .query = facetheory_query(request.query),
                                .cookies = cookies},
                        .target = std::move(path.path)};
  Pairs& query = parts.key.query;
  if (std::any_of(query.begin(), query.end(),
                  [](const auto& one) { return one.first == kHydrationParameter; }))
    return Bypass{"it asks for the hydration data of a page, which FaceTheory keeps beside it"};
  std::erase_if(query, [&](const auto& one) { return !route.query.keeps(one.first); });
  sort_as_facetheory(query);
  if (!query.empty()) parts.target += "?" + facetheory_query_text(query);
  for (const std::string& name : facetheory_auth_headers()) {
    std::string joined;
    const std::vector<std::string_view> values = values_of(request, name);
    for (std::size_t i = 0; i < values.size(); ++i)
      joined.append(i > 0 ? std::string_view("\0", 1) : std::string_view()).append(values[i]);
    if (!values.empty()) parts.key.auth.emplace_back(name, joined);
  }
  return parts;
}

std::string cookie_field_of(const Pairs& cookies) {
  std::string field;
  for (const auto& [name, value] : cookies) {
    // "=session=1" has no name, and must not get one on its way.
    const bool bare = name.empty() && !value.empty() && value.find('=') == std::string::npos;
    field += (field.empty() ? "" : "; ") + (bare ? value : name + "=" + value);
  }
  return field;
}

}  // namespace

CookieUse use_of(const RouteConfig& route, std::string_view cookie) {
  if (route.bypass.cookies.matches(cookie) || is_draft_cookie(route, cookie)) return CookieUse::bypasses;
  if (route.cookies.matches(cookie)) return CookieUse::makes_page;
  const bool known = route.ignore_cookies.matches(cookie) || tracking_cookies().matches(cookie);
  return known || route.other_cookies != OtherCookies::bypass ? CookieUse::ignored : CookieUse::bypasses;
}

bool strips_field(const RouteConfig& route, std::string_view name, const PageRequest& request) {
  if (route.preset != Preset::nextjs) return false;
  if (nextjs::internal_fields().matches(name)) return true;
  if (name == nextjs::kDataField) return request.path.find(nextjs::kDataPath) == std::string_view::npos;
  const auto& variants = nextjs::kPayloadVariants;
  const bool payload =
      name == nextjs::kPayloadField || std::find(variants.begin(), variants.end(), name) != variants.end();
  return payload && (request.method == "GET" || request.method == "HEAD") &&
         !asks_for_payload(route, request);
}

Result<std::string> tenant_of(const Config& config, const RouteConfig& route, const PageRequest& request) {
  std::string tenant;
  switch (route.tenant.kind) {
    case TenantSource::Kind::none:
      break;
    case TenantSource::Kind::host:
      tenant = without_port(request.host);
      if (tenant.empty()) return bad_request("the request names no host, and the host names the tenant");
      break;
    case TenantSource::Kind::header: {
      if (!request.trusted) {
        return Error{ErrorCode::unauthorized,
                     "the tenant is named by " + route.tenant.header +
                         ", which only trusted_peers may send; add the peer there if it may"};
      }
      const std::vector<std::string_view> values = values_of(request, route.tenant.header);
      if (values.size() != 1 || values.front().empty()) {
        return bad_request("the request must name its tenant in " + route.tenant.header + ", once");
      }
      tenant = values.front();
      break;
    }
  }
  if (auto checked = check_tenant(tenant); !checked) return bad_request(checked.error().message);

  for (const std::string& name : config.boundary_headers) {
    for (const std::string_view value : values_of(request, name)) {
      if (route.tenant.kind == TenantSource::Kind::none) {
        return bad_request(
            "the request names a tenant in " + name +
            ", and the route has no tenants; set `tenant` on the route, or let nothing send it");
      }
      if (value != tenant) {
        return bad_request("the request names the tenant " + quoted_for_message(value) + " in " + name +
                           " and another one by the route's `tenant`");
      }
    }
  }
  return tenant;
}

Result<void> check_named_tenant(const Config& config, const RouteConfig& route, const PageRequest& request) {
  const bool names_one =
      std::any_of(config.boundary_headers.begin(), config.boundary_headers.end(),
                  [&](const std::string& name) { return request.headers.get(name).has_value(); });
  // A proxy in front that names the tenant of every request does so here, too.
  const bool may_name_any = request.trusted && route.tenant.kind == TenantSource::Kind::none;
  if (!names_one || may_name_any) return {};
  auto tenant = tenant_of(config, route, request);
  if (!tenant) return std::move(tenant).error();
  return {};
}

Result<std::variant<PageKey, Bypass>> page_key(const Config& config, const RouteConfig& route,
                                               const PathVariables& variables, const PageRequest& request) {
  using Outcome = std::variant<PageKey, Bypass>;
  if (!route.cache) {
    if (auto named = check_named_tenant(config, route, request); !named) return std::move(named).error();
    return Outcome(Bypass{"nothing is stored on this route"});
  }
  Result<std::string> tenant = tenant_of(config, route, request);
  if (!tenant) return tenant.error();
  if (request.host.empty()) return bad_request("the request names no host");
  if (request.scheme != "http" && request.scheme != "https") {
    return bad_request("the scheme " + quoted_for_message(request.scheme) + " is neither http nor https");
  }
  const bool facetheory = route.key == KeyStyle::facetheory;
  Pairs cookies = facetheory ? facetheory_cookies(values_of(request, "cookie")) : cookies_of(request);
  if (std::optional<Bypass> bypass = bypass_by_rule(route, request, cookies))
    return Outcome(*std::move(bypass));
  std::erase_if(cookies, [&](const auto& cookie) { return !route.cookies.matches(cookie.first); });
  if (facetheory) sort_as_facetheory(cookies);

  const Result<std::vector<Parameter>> parameters = kept_parameters(route, request);
  if (!parameters) return parameters.error();
  PageKey key{.page = {.pk = {}, .tenant = *tenant}};
  const auto fields = kept_fields(route, request);
  for (const auto& [name, value] : fields) {
    if (value) key.headers.emplace_back(name, *value);
  }
  // Which is in the key already; the origin cannot make its page without knowing it.
  if (route.tenant.kind == TenantSource::Kind::header) key.headers.emplace_back(route.tenant.header, *tenant);
  if (!cookies.empty()) {
    key.headers.emplace_back("cookie",
                             facetheory ? facetheory_cookie_field(cookies) : cookie_field_of(cookies));
  }

  Result<Page> page = bad_request("");
  if (facetheory) {
    auto parts = facetheory_parts(route, *tenant, request, cookies);
    if (auto* bypass = std::get_if<Bypass>(&parts)) return Outcome(std::move(*bypass));
    auto& [made_of, target] = std::get<FaceTheoryParts>(parts);
    page = page_of(made_of);
    key.target = std::move(target);
  } else {
    key.target = request.path;
    for (std::size_t i = 0; i < parameters->size(); ++i)
      key.target += (i == 0 ? "?" : "&") + (*parameters)[i].second;
    page = url_page(request, key.target, key, fields, cookies);
  }
  // What has no key is nobody's page.
  if (!page) return Outcome(Bypass{page.error().message});
  key.page = *std::move(page);

  for (const std::string& tag : route.tags) {
    std::optional<std::string> filled = filled_tag(tag, variables);
    if (!filled || !check_tag(*filled))
      return Outcome(Bypass{"its tag " + quoted_for_message(tag) + " cannot be made"});
    key.tags.push_back(*std::move(filled));
  }
  return Outcome(std::move(key));
}

}  // namespace facetheory
