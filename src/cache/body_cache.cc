#include "facetheory/cache/body_cache.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace facetheory {
namespace {

constexpr std::uint8_t kMostUses = 3;
constexpr std::size_t kSmallShare = 10;   // The small queue has a tenth of the budget.
constexpr std::size_t kLargestShare = 4;  // A quarter of the budget is the most one body may take.
constexpr std::size_t kOverhead = 256;  // What an entry takes beside: nodes of list and map, object headers.

}  // namespace

BodyCache::BodyCache(std::size_t budget) : budget_(budget), largest_(budget / kLargestShare) {}

bool BodyCache::set_budget(std::size_t budget, std::size_t most) {
  budget_ = budget;
  for (std::size_t i = 0; i < most && bytes() > budget_; ++i)
    evict_one();
  return bytes() <= budget_;
}

std::shared_ptr<const KeptBody> BodyCache::find(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  Entry& entry = *found->second;
  entry.uses = std::min<std::uint8_t>(kMostUses, entry.uses + 1);
  return entry.body;
}

void BodyCache::insert(std::string key, std::shared_ptr<const KeptBody> body, std::size_t size,
                       std::atomic<bool>* touched) {
  if (entries_.contains(key)) return;
  const std::size_t cost = kOverhead + key.size() + size;
  if (cost > std::min(largest_, budget_ / 2)) return;
  const auto ghost = ghost_positions_.find(std::hash<std::string_view>()(key));
  Queue& queue = ghost != ghost_positions_.end() ? main_ : small_;
  if (ghost != ghost_positions_.end()) {
    ghosts_.erase(ghost->second);
    ghost_positions_.erase(ghost);
  }
  queue.bytes += cost;
  queue.entries.push_back({std::move(key), std::move(body), cost, touched, 0, &queue});
  const Position entry = std::prev(queue.entries.end());
  entries_.emplace(entry->key, entry);
  make_room();
}

void BodyCache::erase(std::string_view key) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) drop(found->second);
}

BodyCache::Warmth BodyCache::warmth(std::string_view key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return Warmth::absent;
  const Entry& entry = *found->second;
  const bool touched = entry.touched != nullptr && entry.touched->load(std::memory_order_relaxed);
  return entry.queue == &main_ || entry.uses > 0 || touched ? Warmth::used : Warmth::unused;
}

void BodyCache::make_room() {
  while (bytes() > budget_)
    evict_one();
}

// Or moves one on.
void BodyCache::evict_one() {
  if (small_.bytes > budget_ / kSmallShare || main_.entries.empty()) {
    evict_from_small();
  } else {
    evict_from_main();
  }
}

bool BodyCache::used(Entry& entry) {
  if (entry.touched != nullptr && entry.touched->exchange(false, std::memory_order_relaxed))
    entry.uses = std::min<std::uint8_t>(kMostUses, entry.uses + 1);
  return entry.uses > 0;
}

// Moves the oldest newcomer to the main queue if somebody asked for it again, and drops it otherwise.
void BodyCache::evict_from_small() {
  const Position oldest = small_.entries.begin();
  if (used(*oldest)) {
    move(oldest, main_);
    return;
  }
  remember(oldest->key);
  drop(oldest);
}

// The oldest gets another round for every use; without any it goes.
void BodyCache::evict_from_main() {
  const Position oldest = main_.entries.begin();
  if (!used(*oldest)) {
    drop(oldest);
    return;
  }
  --oldest->uses;
  main_.entries.splice(main_.entries.end(), main_.entries, oldest);
}

void BodyCache::move(Position entry, Queue& to) {
  Queue& from = *entry->queue;
  from.bytes -= entry->cost;
  to.bytes += entry->cost;
  entry->queue = &to;
  entry->uses = 0;
  to.entries.splice(to.entries.end(), from.entries, entry);
}

void BodyCache::drop(Position entry) {
  Queue& queue = *entry->queue;
  queue.bytes -= entry->cost;
  entries_.erase(entry->key);
  queue.entries.erase(entry);
}

// There are as many ghosts as entries: with more of them a scan would be remembered too.
void BodyCache::remember(std::string_view key) {
  const std::size_t hash = std::hash<std::string_view>()(key);
  if (ghost_positions_.contains(hash)) return;
  ghosts_.push_back(hash);
  ghost_positions_.emplace(hash, std::prev(ghosts_.end()));
  while (ghosts_.size() > std::max<std::size_t>(entries_.size(), 16)) {
    ghost_positions_.erase(ghosts_.front());
    ghosts_.pop_front();
  }
}

}  // namespace facetheory
