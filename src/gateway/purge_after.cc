#include "facetheory/gateway/purge_after.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/shown_text.h"
#include "facetheory/gateway/variant.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/isr/pages.h"
#include "facetheory/rules/invalidation.h"
#include "facetheory/rules/storing.h"
#include "facetheory/site/page_key.h"

namespace facetheory {
namespace {

Task<Result<void>> purge_tag(GatewayParts& parts, std::string tenant, std::string tag) {
  auto marked = co_await mark_tag(parts.isr, std::move(tenant), std::move(tag), MarkKind::purge);
  if (!marked) co_return std::move(marked).error();
  co_return Result<void>{};
}

// All pages of an URL: the one under its plain key, and those that share a tag with it. They are purged, since RFC 9111
// (4.4) lets none of them be sent again without the origin's word; but what an operator has pinned, no visitor unpins.
Task<Result<void>> purge_pages_of_url(GatewayParts& parts, PageKey key, std::string tag, bool tagged) {
  Result<void> all;
  auto meta = co_await get_meta(parts.isr, key.page, Consistency::strong);
  const bool known = meta && *meta;
  if (known) tagged = tagged || contains_name((*meta)->tags, tag);
  if (!known || !(*meta)->pinned) {
    auto purged = co_await purge(parts.isr, key.page);
    if (!purged) all = std::move(purged).error();
    parts.engine.forget(key.page);
  }
  if (tagged) {
    auto marked = co_await purge_tag(parts, key.page.tenant, std::move(tag));
    if (!marked) all = std::move(marked);
  }
  co_return all;
}

// The request's fields without whatever else makes a different page of a URL.
Headers naming_tenants(const Site& site, const AskedPage& asked) {
  Headers kept;
  for (const std::string& name : site.config.boundary_headers) {
    if (const auto value = asked.headers.get(name)) kept.add(name, std::string(*value));
  }
  return kept;
}

bool may_invalidate(const RouteConfig& route, const ServerRequest& request, const AskedPage& asked) {
  switch (route.unsafe_invalidates) {
    case UnsafeInvalidates::same_site:
      return is_same_site(request.headers, asked.target.host);
    case UnsafeInvalidates::always:
      return true;
    case UnsafeInvalidates::never:
      break;
  }
  return false;
}

// What is purged may outlive the request.
Task<void> purge_url(GatewayParts& parts, const AskedPage& asked, PageKey key, bool tagged,
                     Duration patience) {
  std::string page = key.page.pk;
  std::string url = asked.target.origin() + key.target;
  std::string tag = url_tag(asked.target, key.target);
  PurgeRate::Purge purge = [&parts, key = std::move(key), tag = std::move(tag), tagged] {
    return purge_pages_of_url(parts, key, tag, tagged);
  };
  co_await parts.purges.purge(parts.loop, std::move(page), std::move(url), std::move(purge), patience);
}

Task<void> purge_group(GatewayParts& parts, const AskedPage& asked, std::string tenant, std::string group,
                       Duration patience) {
  std::string tag = group_tag(asked.target.origin(), group);
  std::string row = tag_pk(tenant, tag);
  std::string name = "the cache group " + quoted_for_message(group);
  PurgeRate::Purge purge = [&parts, tenant = std::move(tenant), tag = std::move(tag)] {
    return purge_tag(parts, tenant, tag);
  };
  co_await parts.purges.purge(parts.loop, std::move(row), std::move(name), std::move(purge), patience);
}

}  // namespace

Task<void> purge_after(GatewayParts& parts, const Site& site, const ServerRequest& request,
                       const AskedPage& asked, int status, const Headers& headers) {
  const Invalidation found =
      invalidated_by(request.method, asked.target.origin(), asked.target.sent_form(), status, headers);
  if (found.empty()) co_return;
  Clock& clock = parts.isr.clock;
  const Duration until = clock.monotonic() + PurgeRate::kPatience;
  for (const std::string& text : found.targets) {
    const std::size_t question = std::min(text.find('?'), text.size());
    const std::string_view sent_path = std::string_view(text).substr(0, question);
    auto path = normalise_path(sent_path);
    if (!path) continue;
    const auto match = site.routes.match(asked.target.host, "GET", *path);
    if (!match) continue;
    const RouteConfig& route = site.config.routes[match->route];
    const Headers tenants = naming_tenants(site, asked);
    const std::string_view query = std::string_view(text).substr(std::min(question + 1, text.size()));
    // FaceTheory's key has two spellings of one path as two pages.
    const bool two_spellings = route.key == KeyStyle::facetheory && sent_path != *path;
    for (const bool as_sent : {true, false}) {
      if (!as_sent && !two_spellings) continue;
      const PageRequest bare{tenants, "GET", asked.target.scheme, asked.target.host,
                             *path,   query, asked.trusted,       as_sent ? sent_path : std::string_view()};
      auto key = page_key(site.config, route, match->variables, bare);
      if (key && std::holds_alternative<PageKey>(*key) && may_invalidate(route, request, asked))
        co_await purge_url(parts, asked, std::get<PageKey>(*std::move(key)), key_has_more_than_the_url(route),
                           until - clock.monotonic());
    }
  }
  for (const std::string& group : found.groups) {
    auto tenant = tenant_of(site.config, site.config.routes[*asked.route], asked.request(request.method));
    if (tenant) co_await purge_group(parts, asked, *std::move(tenant), group, until - clock.monotonic());
  }
}

}  // namespace facetheory
