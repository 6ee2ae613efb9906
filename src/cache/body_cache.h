// BodyCache: bodies in memory under a budget of bytes, in front of a body store.
//
// A body is immutable, so an entry is never wrong, only cold. Eviction is S3-FIFO: a newcomer passes through a small
// queue and reaches the main one only if it is asked for again, so that a scan over many pages (a crawler, a sweep)
// does not drive out what is in use. A hit moves nothing; it counts up to three. What left the small queue is
// remembered for a while by its hash and goes straight to the main queue when it comes back.
//
// Not thread-safe: there is one per engine, under the mutex of its PageMemory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "facetheory/cache/kept_body.h"

namespace facetheory {

class BodyCache {
 public:
  explicit BodyCache(std::size_t budget);

  // The body under that s3_key; null: not here.
  std::shared_ptr<const KeptBody> find(std::string_view key);

  // Keeps it, unless it alone would take more than a quarter of the first budget, or half of today's. One that is there
  // already stays. `size` is what the body takes, without what it costs to keep it. `touched` belongs to the body: who
  // sets it, on any thread, has used the body without find().
  void insert(std::string key, std::shared_ptr<const KeptBody> body, std::size_t size,
              std::atomic<bool>* touched = nullptr);

  void erase(std::string_view key);

  // How much a body is wanted here: it is in memory, and was asked for since it came.
  enum class Warmth { absent, unused, used };
  Warmth warmth(std::string_view key) const;

  // From now on; `most` go at once of what is beyond it. False: more has to go, call it again.
  bool set_budget(std::size_t budget, std::size_t most);

  std::size_t bytes() const { return small_.bytes + main_.bytes; }  // Never more than the budget.
  std::size_t size() const { return entries_.size(); }

 private:
  struct Queue;
  struct Entry {
    std::string key;
    std::shared_ptr<const KeptBody> body;
    std::size_t cost = 0;
    std::atomic<bool>* touched = nullptr;
    std::uint8_t uses = 0;  // Counted since it came into its queue, up to kMostUses.
    Queue* queue = nullptr;
  };
  // The front is the oldest.
  struct Queue {
    std::list<Entry> entries;
    std::size_t bytes = 0;
  };
  using Position = std::list<Entry>::iterator;

  void make_room();
  void evict_one();
  static bool used(Entry& entry);
  void evict_from_small();
  void evict_from_main();
  void move(Position entry, Queue& to);
  void drop(Position entry);
  void remember(std::string_view key);

  std::size_t budget_;
  const std::size_t largest_;  // One that takes more is not kept, whatever the budget has become.
  Queue small_;
  Queue main_;
  std::unordered_map<std::string_view, Position> entries_;  // Keys point into the entries.
  std::list<std::size_t> ghosts_;                           // Hashes, oldest first,
  std::unordered_map<std::size_t, std::list<std::size_t>::iterator> ghost_positions_;
};

}  // namespace facetheory
