#include "facetheory/gateway/variant_walk.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/gateway/page_answer.h"

namespace facetheory {

VariantWalk::VariantWalk(const Config& config, const RouteConfig& route, const PageKey& key,
                         const PageRequest& request)
    : route_(route), fields_(varying_fields(config, route, key, request)), page_(key.page) {}

Review VariantWalk::review(const KeptBody& body, const MetaRow& meta, PageState state,
                           const RequestRules& rules, std::int64_t now) const {
  const PreparedPage& page = prepared(body);
  Review review = review_page(page, meta, state, rules, now);
  review.suits = suits(page, fields_);
  return review;
}

Task<Result<VariantWalk::End>> VariantWalk::to_its_end(const Ask& ask) {
  for (;;) {
    auto served = co_await ask();
    if (!served) co_return std::move(served).error();
    Led led = Led::on;
    if (leads_on(*served)) {
      led = lead_on(prepared(*served->body));
      if (led == Led::on) continue;
    }
    co_return End{led, *std::move(served)};
  }
}

// The first render of a page does not know what the origin varies it by, and may have made another variant.
bool VariantWalk::leads_on(const Served& served) const {
  return served.as == ServedAs::other ||
         (served.as == ServedAs::miss && !suits(prepared(*served.body), fields_));
}

VariantWalk::Led VariantWalk::lead_on(const PreparedPage& found) {
  const std::vector<std::string> vary = found.vary();
  varying_.insert(varying_.end(), vary.begin(), vary.end());
  auto next = next_variant(route_, page_, found, fields_);
  if (!next) return Led::no_key;
  page_ = *std::move(next);
  return ++steps_ < kMostVariantSteps ? Led::on : Led::too_far;
}

}  // namespace facetheory
