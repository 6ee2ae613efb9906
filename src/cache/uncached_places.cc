#include "facetheory/cache/uncached_places.h"

#include <algorithm>

namespace facetheory {

std::shared_ptr<UncachedPlaces::Place> UncachedPlaces::take(std::stop_token left) {
  auto place = std::make_shared<Place>(std::move(left));
  std::shared_ptr<Place> abandoned;
  {
    const std::lock_guard lock(mutex_);
    if (taken_.size() < most_) {
      taken_.push_back(place);
      return place;
    }
    const auto found = std::find_if(taken_.begin(), taken_.end(),
                                    [](const auto& taken) { return taken->left_.stop_requested(); });
    if (found == taken_.end()) return nullptr;
    abandoned = std::exchange(*found, place);
  }
  abandoned->taken_away_.set();
  return place;
}

void UncachedPlaces::give_back(const std::shared_ptr<Place>& place) {
  const std::lock_guard lock(mutex_);
  std::erase(taken_, place);
}

}  // namespace facetheory
