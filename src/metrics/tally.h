// Numbers that are counted on one thread, or on many, and read on another at any time. Nothing here locks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "facetheory/base/clock.h"

namespace facetheory {

// What different threads write stands at least so far apart, or each would slow the other down. (Two cache lines: x86
// fetches them in pairs.)
inline constexpr std::size_t kFarApart = 128;

class Tally {
 public:
  // Many threads may add.
  void add(std::uint64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  // Only one thread ever adds, which is as quick as a plain number.
  void add_alone(std::uint64_t amount = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

// Durations by size. A histogram's bounds are constant, ascending, and the same for all that are added up.
class DurationTally {
 public:
  static constexpr std::size_t kMostBounds = 19;

  explicit DurationTally(std::span<const Duration> bounds) : bounds_(bounds) {
    assert(bounds.size() <= kMostBounds);
  }

  void add(Duration took) {
    took = std::max(took, Duration(0));
    counts_[bucket(took)].add();
    nanoseconds_.add(static_cast<std::uint64_t>(took.count()));
  }
  void add_alone(Duration took) {
    took = std::max(took, Duration(0));
    counts_[bucket(took)].add_alone();
    nanoseconds_.add_alone(static_cast<std::uint64_t>(took.count()));
  }

  std::span<const Duration> bounds() const { return bounds_; }
  // Counts those of at most bounds()[i] and more than the bound before; the last one counts those beyond all bounds.
  std::uint64_t count(std::size_t i) const { return counts_[i].get(); }
  std::uint64_t nanoseconds() const { return nanoseconds_.get(); }

 private:
  std::size_t bucket(Duration took) const {
    return static_cast<std::size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), took) - bounds_.begin());
  }

  std::span<const Duration> bounds_;
  std::array<Tally, kMostBounds + 1> counts_;
  Tally nanoseconds_;
};

}  // namespace facetheory
