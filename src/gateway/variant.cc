#include "facetheory/gateway/variant.h"

#include <algorithm>
#include <array>
#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/sha256.h"
#include "facetheory/gateway/vary.h"

namespace facetheory {
namespace {

constexpr std::array<std::string_view, 8> kSaidByProxies = {
    "forwarded",        "x-forwarded-for",    "x-forwarded-host",   "x-forwarded-proto",
    "x-forwarded-port", "x-forwarded-prefix", "x-forwarded-server", "x-real-ip"};

// Of one request and not of a page: never sent along with a render.
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

bool is_said_by_proxies(std::string_view name) {
  return std::find(kSaidByProxies.begin(), kSaidByProxies.end(), name) != kSaidByProxies.end();
}

Headers varying_fields(const RouteConfig& route, const PageKey& key, const PageRequest& request) {
  Headers fields;
  for (const Headers::Field& field : request.headers) {
    const std::string name = lower_case(std::string_view(field.name));
    const bool of_one = std::find(kOfOneRequest.begin(), kOfOneRequest.end(), name) != kOfOneRequest.end();
    const std::string read_as = name_at_origin(field.name);
    const bool withheld = of_one || is_said_by_proxies(read_as) || read_as.starts_with("x-facetheory-") ||
                          strips_field(route, name, request);
    if (!withheld) fields.add(name, field.value);
  }
  for (const auto& [name, value] : key.headers)
    fields.set(name, value);
  fields.set("accept-encoding", "identity");
  return fields;
}

bool suits(const PreparedPage& page, const Headers& fields) {
  return page.variant == variant_key(page.vary, fields);
}

std::optional<Page> next_variant(const RouteConfig& route, const Page& page, const PreparedPage& found,
                                 const Headers& fields) {
  if (route.key == KeyStyle::facetheory) return std::nullopt;
  auto next = page_of(page.cache_key + " v:" + variant_key(found.vary, fields), page.tenant);
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
