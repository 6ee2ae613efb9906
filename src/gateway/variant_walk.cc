#include "facetheory/gateway/variant_walk.h"

#include <utility>

namespace facetheory {

VariantWalk::VariantWalk(const Config& config, const RouteConfig& route, const PageKey& key,
                         const PageRequest& request)
    : route_(route), fields_(varying_fields(config, route, key, request)), page_(key.page) {}

VariantWalk::Led VariantWalk::lead_on(const PreparedPage& found) {
  varying_.insert(varying_.end(), found.vary.begin(), found.vary.end());
  auto next = next_variant(route_, page_, found, fields_);
  if (!next) return Led::no_key;
  page_ = *std::move(next);
  return ++steps_ < kMostVariantSteps ? Led::on : Led::too_far;
}

}  // namespace facetheory
