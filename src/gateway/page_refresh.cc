#include "facetheory/gateway/page_refresh.h"

#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/gateway/page_visit.h"
#include "facetheory/site/asked_page.h"

namespace facetheory {
namespace {

// Until the page is found fresh: the one that was rendered, or a variant of it. Empty: it is not.
Task<std::optional<Served>> rendered_page(GatewayParts& parts, const RouteConfig& route, PageVisit& visit) {
  // One more look after the render finds what everybody will.
  bool rendered = false;
  for (;;) {
    PageVisit::Terms terms;
    terms.only_stored = rendered;
    auto served = co_await visit.look(std::move(terms));
    if (!served) co_return std::nullopt;
    if (served->as == ServedAs::hit) co_return *std::move(served);
    if (served->as == ServedAs::other) {
      visit.count(*served);
      if (visit.lead_on(*served) != VariantWalk::Led::on) co_return std::nullopt;
      rendered = false;
      continue;
    }
    if (std::exchange(rendered, true)) co_return std::nullopt;
    co_await parts.engine.wait_for_render(visit.page(), route.policy.wait_limit);
  }
}

}  // namespace

Task<std::optional<FreshAnswer>> refresh_page(GatewayParts& parts, WarmPages& warm,
                                              std::shared_ptr<const Site> site,
                                              const ServerRequest& request) {
  const AskedPage asked = asked_page(*site, request);
  const auto* key = std::get_if<PageKey>(&asked.found);
  if (key == nullptr) co_return std::nullopt;
  PageVisit visit(parts, warm, *site, request, asked, *key);
  auto served = co_await rendered_page(parts, site->config.routes[*asked.route], visit);
  if (!served) co_return std::nullopt;
  visit.count(*served);
  PageVisit::Ready ready = co_await visit.make_ready(*served);
  if (!ready.may_be_kept) co_return std::nullopt;
  WarmPage page = visit.warm_page(*served, ready);
  if (!warm.seal(page)) co_return std::nullopt;
  co_return FreshAnswer{std::move(site), visit.varying(), std::move(page)};
}

}  // namespace facetheory
