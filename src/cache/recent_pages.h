// RecentPages: something that is known of pages, by pk or another text, of so many at most (at least one); or, where
// each is put with a cost, up to such a sum.
//
// What is rarely asked for goes first. Eviction is S3-FIFO: a newcomer passes through a small queue and reaches the
// main one only if it is found again, so that a scan over many pages (a crawler, a sweep) does not drive out what is in
// use. To find one touches nothing but that one, which counts where there are a million: it counts up to three. Who
// left the small queue is remembered for a while by its hash and goes straight to the main queue when it comes back.
//
// There may be a million of them, so what it takes to keep one is little: 32 bytes, its key, and eight to twenty to
// find it. A `Known` that others may use without find() says so: take_touch() tells whether somebody has since it was
// last called, is_touched() without forgetting it. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "facetheory/base/kept_text.h"
#include "facetheory/bodies/kept_body.h"
#include "facetheory/cache/hash_places.h"
#include "facetheory/cache/left_hashes.h"

namespace facetheory {

// How much something is wanted: it is there, and was asked for since it came.
enum class Warmth { absent, unused, used };

template <typename Known>
class RecentPages {
 public:
  explicit RecentPages(std::size_t capacity) : capacity_(capacity) {}

  // Null: it is not known. What is found is valid until the next call.
  Known* find(std::string_view pk) {
    const Number number = number_of(pk);
    if (number == kNone) return nullptr;
    Entry& entry = at(number);
    if (entry.uses < kMostUses) ++entry.uses;
    return &entry.known;
  }

  // What was put is valid until the next call. One that is there already is replaced, and stays in its place.
  Known& put(std::string_view pk, Known known, std::size_t cost = 1) {
    return put(pk, std::move(known), cost, [](std::string_view, const Known&) {});
  }
  // `leaves(pk, known)` is called for each that goes since there is no room.
  template <typename Leaves>
  Known& put(std::string_view pk, Known known, std::size_t cost, const Leaves& leaves) {
    const std::uint32_t hash = hash_of(pk);
    Number number = number_of(pk);
    if (number == kNone) {
      while (this->cost() + cost > capacity_ && size() > 0)
        evict_one(kNone, leaves);
      number = take_free();
      Entry& entry = at(number);
      entry.key = KeptText(pk);
      entry.hash = hash;
      entry.uses = 0;
      places_.add(hash, number);
      append(left_.take(hash) ? main_ : small_, number, cost);
      entry.known = std::move(known);
    } else {
      set_cost(number, cost);
      at(number).known = std::move(known);
      while (this->cost() > capacity_ && size() > 1)
        evict_one(number, leaves);
    }
    return at(number).known;
  }

  // One that was in use and comes back does not pass through the small queue again.
  void erase(std::string_view pk) {
    const Number number = number_of(pk);
    if (number == kNone) return;
    const Entry& entry = at(number);
    if (entry.in_main || entry.uses > 0) left_.add(entry.hash, size());
    drop(number);
  }

  void clear() {
    places_.clear();
    left_.clear();
    chunks_.clear();
    small_ = main_ = {};
    free_ = kNone;
    made_ = 0;
  }

  // Without counting that. Null: it is not known.
  const Known* look_at(std::string_view pk) const {
    const Number number = number_of(pk);
    return number != kNone ? &at(number).known : nullptr;
  }
  Warmth warmth(std::string_view pk) const {
    const Number number = number_of(pk);
    if (number == kNone) return Warmth::absent;
    const Entry& entry = at(number);
    return entry.in_main || entry.uses > 0 || is_touched(entry.known) ? Warmth::used : Warmth::unused;
  }

  std::size_t capacity() const { return capacity_; }
  // From now on; `most` go at once of what is beyond it. False: more has to go, call it again.
  bool set_capacity(std::size_t capacity, std::size_t most) {
    capacity_ = capacity;
    for (std::size_t i = 0; i < most && cost() > capacity_ && size() > 0; ++i)
      evict_one(kNone, [](std::string_view, const Known&) {});
    return cost() <= capacity_ || size() == 0;
  }

  std::size_t size() const { return small_.count + main_.count; }
  std::size_t cost() const { return small_.cost + main_.cost; }

  // What it takes of memory to keep one, besides what its `Known` has elsewhere. About.
  static constexpr std::size_t memory_of_one(std::size_t key) {
    constexpr std::size_t kPlace = 16;  // Where it is found, and what is remembered of one that has left.
    return sizeof(Entry) + allocated(sizeof(std::uint32_t) + key) + kPlace;
  }

 private:
  using Number = HashPlaces::Number;
  static constexpr Number kNone = HashPlaces::kNone;
  static constexpr std::uint8_t kMostUses = 3;
  static constexpr std::size_t kSmallShare = 10;  // The small queue has a tenth of the capacity.
  // So many are spared at once for having been found: nobody waits until a million have been looked at.
  static constexpr int kMostSpared = 64;

  struct Entry {
    KeptText key;
    Known known{};
    std::uint32_t hash = 0;
    std::uint32_t cost = 0;
    Number older = kNone;  // In its queue.
    Number newer = kNone;
    std::uint8_t uses = 0;  // Counted since it came into its queue, up to kMostUses.
    bool in_main = false;
  };
  struct Queue {
    Number oldest = kNone;
    Number newest = kNone;
    std::size_t count = 0;
    std::size_t cost = 0;
  };
  // A piece of memory of 16 KiB, or of one entry.
  static constexpr std::size_t kOfAChunk = std::max<std::size_t>(1, ((16 << 10) - 16) / sizeof(Entry));

  // Nobody outside can choose names that are found in one place.
  static std::uint32_t hash_of(std::string_view pk) {
    return static_cast<std::uint32_t>(own_checksum(pk) >> 32);
  }
  Entry& at(Number number) { return chunks_[number / kOfAChunk][number % kOfAChunk]; }
  const Entry& at(Number number) const { return chunks_[number / kOfAChunk][number % kOfAChunk]; }
  Number number_of(std::string_view pk) const {
    return places_.find(hash_of(pk), [&](Number number) { return at(number).key.text() == pk; });
  }

  Number take_free() {
    if (free_ != kNone) return std::exchange(free_, at(free_).newer);
    if (made_ == chunks_.size() * kOfAChunk) chunks_.push_back(std::make_unique<Entry[]>(kOfAChunk));
    return made_++;
  }

  void append(Queue& queue, Number number, std::size_t cost) {
    Entry& entry = at(number);
    entry.in_main = &queue == &main_;
    entry.older = queue.newest;
    entry.newer = kNone;
    (queue.newest != kNone ? at(queue.newest).newer : queue.oldest) = number;
    queue.newest = number;
    ++queue.count;
    set_cost(number, cost);
  }
  // Out of its queue. What it costs does not count any more.
  std::size_t take_out(Number number) {
    Entry& entry = at(number);
    const std::size_t cost = entry.cost;
    set_cost(number, 0);
    Queue& queue = queue_of(entry);
    (entry.older != kNone ? at(entry.older).newer : queue.oldest) = entry.newer;
    (entry.newer != kNone ? at(entry.newer).older : queue.newest) = entry.older;
    --queue.count;
    return cost;
  }
  void set_cost(Number number, std::size_t cost) {
    Entry& entry = at(number);
    Queue& queue = queue_of(entry);
    queue.cost -= entry.cost;
    entry.cost = static_cast<std::uint32_t>(std::min<std::size_t>(cost, ~std::uint32_t{0}));
    queue.cost += entry.cost;
  }
  Queue& queue_of(const Entry& entry) { return entry.in_main ? main_ : small_; }

  void drop(Number number) {
    take_out(number);
    Entry& entry = at(number);
    places_.erase(entry.hash, number);
    entry.key = {};
    entry.known = {};
    entry.newer = free_;
    free_ = number;
  }

  // Not `spared`. The oldest newcomer moves to the main queue if somebody asked for it again, and goes otherwise; the
  // oldest of the main queue gets another round for every use.
  template <typename Leaves>
  void evict_one(Number spared, const Leaves& leaves) {
    for (int i = 0;; ++i) {
      const bool only_spared = main_.count == 0 || (main_.count == 1 && main_.oldest == spared);
      const bool from_small = small_.count > 0 && (only_spared || small_.cost > capacity_ / kSmallShare);
      const Number oldest = from_small ? small_.oldest : main_.oldest;
      Entry& entry = at(oldest);
      const bool wanted = was_used(entry) && i < kMostSpared;
      if (wanted || oldest == spared) {
        if (entry.uses > 0) entry.uses = from_small ? 0 : static_cast<std::uint8_t>(entry.uses - 1);
        append(main_, oldest, take_out(oldest));
        continue;
      }
      if (from_small) left_.add(entry.hash, size());
      leaves(entry.key.text(), std::as_const(entry.known));
      drop(oldest);
      return;
    }
  }

  static bool was_used(Entry& entry) {
    if constexpr (requires { entry.known.take_touch(); }) {
      if (entry.known.take_touch() && entry.uses < kMostUses) ++entry.uses;
    }
    return entry.uses > 0;
  }
  static bool is_touched(const Known& known) {
    if constexpr (requires { known.is_touched(); }) return known.is_touched();
    return false;
  }

  std::size_t capacity_;
  Queue small_;
  Queue main_;
  HashPlaces places_;
  LeftHashes left_;
  std::vector<std::unique_ptr<Entry[]>> chunks_;
  Number made_ = 0;      // So many entries were ever made. Those that are free are linked by `newer`.
  Number free_ = kNone;  // The first of them.
};

}  // namespace facetheory
