// LeftHashes: the hashes of what has left a cache not long ago, roughly: now and then one is forgotten too early. Eight
// bytes for each, and none as long as nothing leaves. Not thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace facetheory {

class LeftHashes {
 public:
  // Remembers that one and those that left last, so many of them. With more, a scan would be remembered too.
  void add(std::uint32_t hash, std::size_t most) {
    most_ = std::max(most, kLeast);
    if (places_.size() < most_) grow();
    put({hash, ++added_});
  }

  // Forgets it. Whether it was there.
  bool take(std::uint32_t hash) {
    if (places_.empty()) return false;
    for (Place* place = bucket(hash); place != bucket(hash) + kOfABucket; ++place) {
      if (place->hash == hash && is_remembered(*place)) {
        *place = {};
        return true;
      }
    }
    return false;
  }

  void clear() { places_ = {}; }

 private:
  static constexpr std::size_t kOfABucket = 4;
  static constexpr std::size_t kLeast = 16;
  struct Place {
    std::uint32_t hash = 0;
    std::uint32_t number = 0;  // 0: it is free.
  };

  bool is_remembered(const Place& place) const { return place.number != 0 && added_ - place.number < most_; }
  Place* bucket(std::uint32_t hash) {
    const std::size_t buckets = places_.size() / kOfABucket;
    return &places_[((std::uint64_t{hash} * buckets) >> 32) * kOfABucket];
  }
  // In place of the one that left first, in its bucket.
  void put(Place place) {
    Place* const first = bucket(place.hash);
    const auto age = [this](const Place& one) {
      return one.number == 0 ? ~std::uint32_t{0} : added_ - one.number;
    };
    *std::max_element(first, first + kOfABucket,
                      [&](const Place& a, const Place& b) { return age(a) < age(b); }) = place;
  }
  void grow() {
    std::vector<Place> before(std::bit_ceil(most_));
    std::swap(before, places_);
    for (const Place& place : before) {
      if (is_remembered(place)) put(place);
    }
  }

  std::vector<Place> places_;
  std::uint32_t added_ = 0;
  std::size_t most_ = kLeast;
};

}  // namespace facetheory
