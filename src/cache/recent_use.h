// RecentUse: which bodies were used not long ago without having been in memory, roughly: now and then one that was not
// passes for one that was. Noting a use takes a look at one word, and a write only the first time in a while. May be
// used from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "facetheory/base/clock.h"

namespace facetheory {

class RecentUse {
 public:
  // What was noted is remembered for one to two such times, as long as somebody looks at the clock.
  explicit RecentUse(Duration span) : span_(span) {}

  void note(std::uint64_t hash) {
    std::atomic<std::uint64_t>& word = word_of(current_.load(std::memory_order_relaxed), hash);
    const std::uint64_t bit = bit_of(hash);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  }

  // To be called every now and then, by one thread: what was noted two spans ago is forgotten. `now`: monotonic.
  void look_at_clock(Duration now) {
    if (now - began_ < span_) return;
    if (now - began_ >= 2 * span_) clear(current_);
    const std::size_t next = 1 - current_;
    clear(next);
    current_ = next;
    began_ = now;
  }

  bool was_noted(std::uint64_t hash) const {
    const auto is_set = [&](std::size_t turn) { return (word_of(turn, hash) & bit_of(hash)) != 0; };
    return is_set(0) || is_set(1);
  }

 private:
  static constexpr std::size_t kWords = 1 << 14;  // A million bits, for some hundred thousand bodies.
  using Words = std::array<std::atomic<std::uint64_t>, kWords>;

  std::atomic<std::uint64_t>& word_of(std::size_t turn, std::uint64_t hash) {
    return words_[turn][hash / 64 % kWords];
  }
  const std::atomic<std::uint64_t>& word_of(std::size_t turn, std::uint64_t hash) const {
    return words_[turn][hash / 64 % kWords];
  }
  static std::uint64_t bit_of(std::uint64_t hash) { return std::uint64_t{1} << (hash % 64); }
  void clear(std::size_t turn) {
    for (std::atomic<std::uint64_t>& word : words_[turn])
      word.store(0, std::memory_order_relaxed);
  }

  const Duration span_;
  std::array<Words, 2> words_{};
  std::atomic<std::size_t> current_ = 0;
  Duration began_{0};  // When the current ones were begun.
};

}  // namespace facetheory
