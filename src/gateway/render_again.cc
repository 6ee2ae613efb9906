#include "facetheory/gateway/render_again.h"

#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/gateway/page_visit.h"
#include "facetheory/site/asked_page.h"

namespace facetheory {
namespace {

// The page that was rendered, or the variant of it that suits. Empty: it is not fresh.
Task<std::optional<Served>> rendered_page(GatewayParts& parts, const RouteConfig& route, PageVisit& visit) {
  const VariantWalk::Ask ask = [&]() -> Task<Result<Served>> {
    PageVisit::Terms first;
    auto served = co_await visit.ask_engine(std::move(first));
    if (!served || served->as == ServedAs::hit || served->as == ServedAs::other) co_return served;
    co_await parts.engine.wait_for_render(visit.page(), route.policy.wait_limit);
    // Asked once more, the engine has what everybody will get.
    PageVisit::Terms then;
    then.only_stored = true;
    co_return co_await visit.ask_engine(std::move(then));
  };
  auto found = co_await visit.find(ask);
  if (!found || found->led != VariantWalk::Led::on || found->served.as != ServedAs::hit)
    co_return std::nullopt;
  co_return std::move(found->served);
}

}  // namespace

Task<std::optional<FreshAnswer>> render_page_again(GatewayParts& parts, WarmPages& warm,
                                                   std::shared_ptr<const Site> site,
                                                   const ServerRequest& request) {
  const AskedPage asked = asked_page(*site, request);
  const auto* key = std::get_if<PageKey>(&asked.found);
  if (key == nullptr) co_return std::nullopt;
  PageVisit visit(parts, warm, *site, request, asked, *key);
  auto served = co_await rendered_page(parts, site->config.routes[*asked.route], visit);
  if (!served) co_return std::nullopt;
  PageVisit::Ready ready = co_await visit.make_ready(*served);
  if (!ready.may_be_remembered) co_return std::nullopt;
  WarmPage page = visit.warm_page(*served, ready);
  if (!warm.seal(page)) co_return std::nullopt;
  co_return FreshAnswer{std::move(site), visit.varying(), std::move(page)};
}

}  // namespace facetheory
