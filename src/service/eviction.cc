#include "facetheory/service/eviction.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/evict.h"

namespace facetheory {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kPagesAtOnce = 400;
constexpr int kInUse = 2;  // As CleanupParts::warmth has it.
// A reader may have read the pointer of a page just before it was evicted. One that comes later finds no body, and the
// page is rendered again.
constexpr milliseconds kEvictedBodyStays{300};
constexpr milliseconds kLookAtRoom{100};
constexpr milliseconds kLookAgainSoon{10};
constexpr seconds kEvictionIsOver{2};  // When nothing is to go for so long.
constexpr seconds kLookWhoEvicts{1};
// The rest after a round through the table in which nothing could go; twice that after each further one.
constexpr seconds kFirstRest{1};
constexpr minutes kLongestRest{5};

}  // namespace

void EvictedBodies::add(std::vector<std::string> keys) {
  if (keys.empty()) return;
  waiting_ += keys.size();
  batches_.push_back({std::move(keys), run_.now() + kEvictedBodyStays});
}

Task<void> EvictedBodies::remove_due() {
  while (!batches_.empty() && batches_.front().due <= run_.now()) {
    std::vector<std::string> keys = std::move(batches_.front().keys);
    batches_.pop_front();
    waiting_ -= std::min(waiting_, keys.size());
    const std::size_t count = keys.size();
    auto removed = co_await run_.parts.isr.bodies.remove_all(std::move(keys));
    if (!removed) {
      run_.failed("removing the bodies of evicted pages", removed.error());  // The sweep finds them.
      co_return;
    }
    run_.count(&CleanupTotals::evicted_removed, count);
  }
}

Task<void> Eviction::keep_within_budget() {
  bool busy = false;
  for (;;) {
    const bool over = co_await run_.pause(busy ? kLookAgainSoon : kLookAtRoom);
    if (over) break;
    co_await bodies_.remove_due();
    co_await measure();
    const bool made_room = co_await released_.make_room();
    if (made_room) co_await measure();
    if (count_.is_due()) co_await count_.count();
    warnings_.tell(pages_wanted());
    busy = false;
    if (pages_wanted() > 0) {
      wanted_at_ = run_.now();
      if (run_.now() >= evict_again_at_) busy = co_await evict_alone();
    }
    if (right_.is_held() && run_.now() - wanted_at_ >= kEvictionIsOver) co_await right_.let_go();
    busy = busy || !bodies_.empty();
  }
  co_await right_.let_go();
}

Task<void> Eviction::measure() {
  if (!run_.parts.budget.limits_disk()) co_return;
  const std::optional<DiskUse> table = run_.parts.isr.table.disk_use();
  auto bodies = co_await run_.parts.isr.bodies.disk_use();
  if (!bodies) {
    run_.failed("measuring the bodies", bodies.error());
    co_return;
  }
  run_.parts.budget.measured(table.value_or(DiskUse{}) + bodies->value_or(DiskUse{}));
}

// How many pages must go, besides those whose bodies are about to.
std::uint64_t Eviction::pages_wanted() const {
  std::uint64_t wanted = run_.parts.budget.pages_to_free();
  if (const std::uint64_t bytes = run_.parts.budget.bytes_to_free(); bytes > 0) {
    const std::uint64_t released = run_.released_waiting();
    const std::uint64_t stored = std::max<std::uint64_t>(items_ + released, 1);
    const std::uint64_t each = std::max<std::uint64_t>(run_.parts.budget.use().used / stored, 512);
    const std::uint64_t pages = bytes / each + 1;
    // What comes faster than it goes is no room.
    const std::uint64_t about_to_go = bodies_.waiting() + (run_.parts.budget.is_disk_full() ? 0 : released);
    wanted = std::max(wanted, pages - std::min<std::uint64_t>(pages, about_to_go));
  }
  return wanted;
}

Task<bool> Eviction::evict_alone() {
  const bool allowed = co_await run_.settle_whether_to_delete();
  if (!allowed) co_return false;
  const bool alone = co_await right_.hold();
  if (!alone) {
    evict_again_at_ = run_.now() + kLookWhoEvicts;
    co_await count_.learn();
    co_return false;
  }
  // Whoever evicted before has left another number behind.
  if (run_.parts.budget.pages_to_free() > 0 &&
      (!count_.counted_at() || *count_.counted_at() < right_.held_since())) {
    co_await count_.count();
    if (!right_.is_held() || pages_wanted() == 0) co_return false;
  }
  co_return co_await evict();
}

Task<bool> Eviction::evict() {
  auto description = co_await run_.parts.isr.table.describe();
  if (description) items_ = description->items;
  EvictOptions options;
  options.most = std::min<std::size_t>(pages_wanted(), kPagesAtOnce);
  options.warmth = run_.parts.warmth;
  options.partners = run_.partners();
  // Pages that are in use go only if all of a round through the table was in vain.
  if (!desperate_) options.spared = kInUse;
  std::optional<Key> hand = std::exchange(hand_, {});
  auto evicted = co_await evict_some(run_.parts.isr, std::move(hand), std::move(options));
  if (!evicted) {
    run_.failed("evicting pages", evicted.error());
    co_return false;
  }
  hand_ = std::move(evicted->next);
  gone_in_this_round_ += evicted->pages;
  from_before_in_this_round_ += evicted->from_before;
  if (!hand_) end_round();
  run_.count(&CleanupTotals::pages_evicted, evicted->pages);
  run_.count(&CleanupTotals::rows_evicted, evicted->rows);
  run_.parts.budget.evicted(evicted->pages);
  bodies_.add(std::move(evicted->bodies));
  if (evicted->pages > 0 && run_.parts.budget.limits_pages()) {
    auto noted = co_await note_pages(run_.parts.isr, run_.parts.budget.pages());
    if (!noted) run_.failed("noting the count of pages", noted.error());
  }
  co_return evicted->pages > 0 || run_.now() >= evict_again_at_;
}

// After a round in vain pages that are in use go, too. Where that was in vain as well, all are pinned, being rendered,
// or others': looking at them again at once would change nothing.
void Eviction::end_round() {
  const bool vain = std::exchange(gone_in_this_round_, 0) == 0;
  const bool from_before = std::exchange(from_before_in_this_round_, 0) > 0;
  const bool nothing_can_go = vain && desperate_;
  desperate_ = vain;
  rest_ = nothing_can_go ? std::clamp<Duration>(rest_ * 2, kFirstRest, kLongestRest) : Duration(0);
  evict_again_at_ = run_.now() + rest_;
  if (nothing_can_go && from_before) warnings_.tell_of_pages_from_before();
}

}  // namespace facetheory
