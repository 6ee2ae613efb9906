// Input: a byte that says whether the peer is trusted; then two requests, an empty line between them, each a line
// "METHOD target" and header fields.
//
// Two requests share a page only if the origin is asked the same for both; and asked for what the key was made of, the
// gateway comes to the same key.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "facetheory/base/shown_text.h"
#include "facetheory/gateway/variant.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/request_writer.h"
#include "facetheory/rules/replay.h"
#include "facetheory/rules/request_target.h"
#include "facetheory/site/config.h"
#include "facetheory/site/facetheory_request.h"
#include "facetheory/site/page_key.h"
#include "facetheory/site/read_config.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

constexpr std::string_view kConfig = R"(
origin = "http://127.0.0.1:3000"
trusted_peers = ["10.0.0.0/8"]

[[routes]]
pattern = "/news/{slug}"
tags = ["news", "article-{slug}"]
query = { include = ["page", "q*"] }

[[routes]]
pattern = "/all/{rest...}"
cookies = ["*"]
headers = ["accept-language", "x-variant", "authorization"]
query = { tracking = "keep" }
bypass = { cookies = ["session*"] }

[[routes]]
pattern = "/shop/{rest*}"
tenant = "host"
cookies = ["lang", "country"]
other_cookies = "strip"

[[routes]]
pattern = "/team/{rest*}"
tenant = "header:x-tenant-id"
cookies = ["lang"]
ignore_cookies = ["theme"]

[[routes]]
pattern = "/theory/{a}/{proxy*}"
key = "facetheory"
tenant = "host"
cookies = ["lang", "flag*"]
other_cookies = "strip"
bypass = { headers = [] }

[[routes]]
pattern = "/next/{rest*}"
preset = "nextjs"
other_cookies = "strip"

[[routes]]
pattern = "/pass/{rest*}"
cache = false
)";

const Config& fixed_config() {
  static const Config config = [] {
    auto read = read_config(kConfig, "facetheory.toml");
    require(read.has_value(), read ? "" : read.error().message);
    return *std::move(read);
  }();
  return config;
}

const RouteTable& fixed_routes() {
  static const RouteTable routes = route_table(fixed_config());
  return routes;
}

struct Asked {
  Headers headers;
  RequestTarget target;
  const RouteConfig* route = nullptr;
  PageKey key;
  Headers varying;
};

// The page as asked_page() has it. Empty: the request is refused, or it asks for no page.
std::optional<Asked> page_asked_for(std::string_view method, std::string_view target, const Headers& headers,
                                    bool trusted) {
  Asked asked;
  asked.headers = end_to_end(headers);
  auto read = read_target(target, headers, trusted);
  if (!read) return std::nullopt;
  asked.target = *std::move(read);
  const auto match = fixed_routes().match(asked.target.host, method, asked.target.path);
  if (!match) return std::nullopt;
  asked.route = &fixed_config().routes[match->route];
  const PageRequest request{
      asked.headers,      method,  asked.target.scheme,   asked.target.host, asked.target.path,
      asked.target.query, trusted, asked.target.sent_path};
  auto key = page_key(fixed_config(), *asked.route, match->variables, request);
  if (!key) {
    require(!key.error().message.empty(), "a refusal says why");
    return std::nullopt;
  }
  if (const auto* bypass = std::get_if<Bypass>(&*key)) {
    require(!bypass->reason.empty(), "a request is passed on for a reason");
    return std::nullopt;
  }
  asked.key = std::get<PageKey>(*std::move(key));
  asked.varying = varying_fields(fixed_config(), *asked.route, asked.key, request);
  return asked;
}

std::optional<Asked> page_asked_for(std::string_view text, bool trusted) {
  Input input(text);
  const std::string_view line = input.line();
  const std::size_t space = std::min(line.find(' '), line.size());
  return page_asked_for(line.substr(0, space), line.substr(std::min(space + 1, line.size())),
                        headers_of(input.rest()), trusted);
}

// Cookies of other names may change places.
std::vector<std::pair<std::string, std::string>> settled(
    std::vector<std::pair<std::string, std::string>> headers) {
  for (auto& [name, value] : headers) {
    if (name != "cookie") continue;
    std::vector<std::pair<std::string_view, std::size_t>> order;  // By name, then by place.
    const auto cookies = split(value, "; ");
    for (std::size_t i = 0; i < cookies.size(); ++i) {
      const std::size_t equals = cookies[i].find('=');
      order.emplace_back(equals == std::string_view::npos ? std::string_view() : cookies[i].substr(0, equals),
                         i);
    }
    std::sort(order.begin(), order.end());
    std::string text;
    for (const auto& [cookie, place] : order)
      text.append(text.empty() ? "" : "; ").append(cookies[place]);
    value = text;
  }
  return headers;
}

void require_key_text(const Asked& asked) {
  const Page& page = asked.key.page;
  const auto of_pk = page_of_pk(page.pk);
  require(of_pk && of_pk->pk == page.pk, "a page's key is one of a page");
  require(of_pk->tenant == page.tenant, "and of no other tenant");
  require(check_tenant(page.tenant).has_value(), "a tenant has a good name");
  for (const std::string& tag : asked.key.tags)
    require(check_tag(tag).has_value(), "tags can be kept");
  if (asked.route->key != KeyStyle::url) return;
  const auto parts = split(page.cache_key, " ");
  require(parts.front() == asked.target.scheme + "://" + asked.target.host + asked.key.target,
          "the URL is the first part of a key");
  for (std::size_t i = 1; i < parts.size(); ++i) {
    require(parts[i].starts_with("h:") || parts[i].starts_with("c:"),
            "fields and cookies are its other parts");
  }
  require(std::none_of(page.cache_key.begin(), page.cache_key.end(), is_control_character),
          "a key is plain text");
}

void require_asked_again(const Asked& asked, bool trusted) {
  HttpRequest render;
  render.target = asked.key.target;
  render.host = asked.target.host;
  for (const auto& [name, value] : asked.key.headers)
    render.headers.add(name, value);
  require(render_request_head(render, fixed_config().origins.begin()->second.origin, {}, false).has_value(),
          "what the key was made of can be sent");
  Headers again = render.headers;
  again.add("Host", asked.target.host);
  if (trusted) again.add("X-Forwarded-Proto", asked.target.scheme);
  const auto same = page_asked_for("GET", asked.key.target, again, trusted);
  require(same.has_value(), "what the key was made of is a page");
  for (const std::string& name : facetheory_auth_headers()) {
    // FaceTheory's key tells two lines from one list; the origin gets a list.
    if (asked.route->key == KeyStyle::facetheory && count_of(asked.headers, name) > 1) return;
  }
  require(same->key.page == asked.key.page && same->key.target == asked.key.target, "and the same page");
  require(same->key.headers == asked.key.headers && same->key.tags == asked.key.tags, "made of the same");
}

}  // namespace

void fuzz_page_key(std::string_view bytes) {
  Input input(bytes);
  const bool trusted = (input.byte() & 1) != 0;
  const std::size_t end = std::min(input.rest().find("\n\n"), input.rest().size());
  const auto one = page_asked_for(input.rest().substr(0, end), trusted);
  const auto other = page_asked_for(input.rest().substr(std::min(end + 2, input.rest().size())), trusted);
  for (const auto& asked : {one, other}) {
    if (!asked) continue;
    require_key_text(*asked);
    require_asked_again(*asked, trusted);
  }
  if (!one || !other || one->key.page.pk != other->key.page.pk) return;
  require(one->route == other->route && one->key.page.tenant == other->key.page.tenant,
          "one page has one route and tenant");
  if (one->route->key != KeyStyle::url) return;  // FaceTheory's key leaves the URL's spelling out.
  require(one->target.host == other->target.host && one->target.scheme == other->target.scheme,
          "one page has one host and scheme");
  require(one->key.target == other->key.target, "one page has one target");
  require(settled(one->key.headers) == settled(other->key.headers), "one page is asked for in one way");
}

}  // namespace facetheory::fuzz
