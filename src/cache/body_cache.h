// BodyCache: bodies in memory under a budget of bytes, in front of a body store. A body is immutable, so an entry is
// never wrong, only cold. What goes first is told by RecentPages.
//
// Not thread-safe: there is one per engine, under the mutex of its PageMemory.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>

#include "facetheory/bodies/kept_body.h"
#include "facetheory/cache/recent_pages.h"

namespace facetheory {

class BodyCache {
 public:
  explicit BodyCache(std::size_t budget);

  // The body under that s3_key; null: not here.
  std::shared_ptr<const KeptBody> find(std::string_view key);

  // Keeps it, unless it alone would take more than a quarter of the first budget, or half of today's. One that is there
  // already stays. `size` is what the body takes, without what it costs to keep it. `touched` belongs to the body: who
  // sets it, on any thread, has used the body without find().
  void insert(std::string_view key, std::shared_ptr<const KeptBody> body, std::size_t size,
              std::atomic<bool>* touched = nullptr);
  // The body takes that much from now on, if it is here.
  void note_size(std::string_view key, std::size_t size);

  void erase(std::string_view key);

  Warmth warmth(std::string_view key) const;

  // From now on; `most` go at once of what is beyond it. False: more has to go, call it again.
  bool set_budget(std::size_t budget, std::size_t most) { return bodies_.set_capacity(budget, most); }

  std::size_t bytes() const { return bodies_.cost(); }  // Never more than the budget.
  std::size_t size() const { return bodies_.size(); }

 private:
  struct Entry {
    std::shared_ptr<const KeptBody> body;
    std::atomic<bool>* touched = nullptr;

    bool is_touched() const { return touched != nullptr && touched->load(std::memory_order_relaxed); }
    bool take_touch() { return is_touched() && touched->exchange(false, std::memory_order_relaxed); }
  };
  bool may_be_kept(std::size_t cost) const;

  const std::size_t largest_;  // One that takes more is not kept, whatever the budget has become.
  RecentPages<Entry> bodies_;  // Found by own_digest() of the key.
};

}  // namespace facetheory
