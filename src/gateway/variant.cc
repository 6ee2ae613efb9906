#include "facetheory/gateway/variant.h"

#include <algorithm>
#include <array>
#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/sha256.h"
#include "facetheory/http/field_values.h"
#include "facetheory/rules/vary.h"

namespace facetheory {
namespace {

constexpr std::array<std::string_view, 8> kSaidByProxies = {
    "forwarded",        "x-forwarded-for",    "x-forwarded-host",   "x-forwarded-proto",
    "x-forwarded-port", "x-forwarded-prefix", "x-forwarded-server", "x-real-ip"};

// The fields of the framing and of the connection whose name has a '-', for which others may read a '_'.
constexpr std::array<std::string_view, 7> kFraming = {
    "content-length",     "transfer-encoding",         "keep-alive",         "proxy-connection",
    "proxy-authenticate", "proxy-authentication-info", "proxy-authorization"};

// CGI makes the variable HTTP_PROXY of it, by which programs find the proxy for requests of their own. No protocol has
// such a field.
constexpr std::string_view kTakenForASetting = "proxy";

// They say something of one request and not of a page, and are never sent along with a render.
constexpr std::array<std::string_view, 12> kOfOneRequest = {"host",
                                                            "cookie",
                                                            "accept-encoding",
                                                            "if-match",
                                                            "if-none-match",
                                                            "if-modified-since",
                                                            "if-range",
                                                            "if-unmodified-since",
                                                            "range",
                                                            "cache-control",
                                                            "content-length",
                                                            "expect"};

}  // namespace

std::string name_at_origin(std::string_view field) {
  std::string name = lower_case(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool names_tenant(const Config& config, std::string_view field) {
  const auto& names = config.boundary_headers;
  return std::any_of(names.begin(), names.end(), [name = name_at_origin(field)](const std::string& one) {
    return name_at_origin(one) == name;
  });
}

bool withheld_from_origin(const Config& config, const RouteConfig& route, const PageRequest& request,
                          std::string_view field) {
  const std::string name = name_at_origin(field);
  const bool respelled = field.find('_') != std::string_view::npos;
  return name == "host" || name == kTakenForASetting || name.starts_with("x-facetheory-") ||
         contains_name(kSaidByProxies, name) || strips_field(route, lower_case(field), request) ||
         (respelled && contains_name(kFraming, name)) ||
         (names_tenant(config, field) && !contains_name(config.boundary_headers, field));
}

Headers varying_fields(const Config& config, const RouteConfig& route, const PageKey& key,
                       const PageRequest& request) {
  Headers fields;
  for (const Headers::Field& field : request.headers) {
    const bool of_one = contains_name(kOfOneRequest, name_at_origin(field.name));
    if (!of_one && !withheld_from_origin(config, route, request, field.name))
      fields.add(lower_case(std::string_view(field.name)), field.value);
  }
  for (const auto& [name, value] : key.headers)
    fields.set(name, value);
  fields.set("accept-encoding", "identity");
  return fields;
}

bool suits(const PreparedPage& page, const Headers& fields) {
  return page.variant() == variant_key(page.vary(), fields);
}

std::optional<Page> next_variant(const RouteConfig& route, const Page& page, const PreparedPage& found,
                                 const Headers& fields) {
  if (route.key == KeyStyle::facetheory) return std::nullopt;
  auto next = page_of(page.cache_key + " v:" + variant_key(found.vary(), fields), page.tenant);
  if (!next) return std::nullopt;
  return *std::move(next);
}

std::string url_tag(const RequestTarget& target, std::string_view origin_form) {
  return "url:" + sha256_hex(target.origin() + std::string(origin_form)).substr(0, 32);
}

bool key_has_more_than_the_url(const RouteConfig& route) {
  return !route.headers.empty() || !route.cookies.empty() || route.preset != Preset::none ||
         route.key == KeyStyle::facetheory;
}

}  // namespace facetheory
