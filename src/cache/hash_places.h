// HashPlaces: finds things by their hash, each known by a number. It takes eight bytes for each place, and between a
// third and three quarters of the places are taken. When it grows it looks at no thing, and has done with a million in
// some milliseconds. Not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace facetheory {

class HashPlaces {
 public:
  using Number = std::uint32_t;
  static constexpr Number kNone = ~Number{0};

  // The number under that hash of which `is_it(number)` is true; kNone: there is none.
  template <typename IsIt>
  Number find(std::uint32_t hash, const IsIt& is_it) const {
    if (places_.empty()) return kNone;
    for (std::size_t i = home(hash); places_[i].number != kNone; i = next(i)) {
      if (places_[i].hash == hash && is_it(places_[i].number)) return places_[i].number;
    }
    return kNone;
  }

  // That number is not there.
  void add(std::uint32_t hash, Number number) {
    if (4 * (count_ + 1) > 3 * places_.size()) grow();
    put({hash, number});
    ++count_;
  }

  // That number is there, under that hash. Those behind it move up, so that none is looked for in vain.
  void erase(std::uint32_t hash, Number number) {
    std::size_t hole = home(hash);
    while (places_[hole].number != number)
      hole = next(hole);
    for (std::size_t i = next(hole); places_[i].number != kNone; i = next(i)) {
      if (distance(home(places_[i].hash), i) < distance(hole, i)) continue;
      places_[hole] = places_[i];
      hole = i;
    }
    places_[hole] = {};
    --count_;
  }

  void clear() {
    places_ = {};
    count_ = 0;
  }

 private:
  struct Place {
    std::uint32_t hash = 0;
    Number number = kNone;
  };
  static constexpr std::size_t kLeast = 16;

  // In the order of the hashes: those that move when it grows move forward.
  std::size_t home(std::uint32_t hash) const { return (std::uint64_t{hash} * places_.size()) >> 32; }
  std::size_t next(std::size_t i) const { return (i + 1) & (places_.size() - 1); }
  std::size_t distance(std::size_t from, std::size_t to) const { return (to - from) & (places_.size() - 1); }

  void put(Place place) {
    std::size_t i = home(place.hash);
    while (places_[i].number != kNone)
      i = next(i);
    places_[i] = place;
  }
  void grow() {
    std::vector<Place> before(places_.empty() ? kLeast : 2 * places_.size());
    std::swap(before, places_);
    for (const Place& place : before) {
      if (place.number != kNone) put(place);
    }
  }

  std::vector<Place> places_;  // A power of two; or none.
  std::size_t count_ = 0;
};

}  // namespace facetheory
