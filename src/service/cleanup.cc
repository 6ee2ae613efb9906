#include "facetheory/service/cleanup.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "facetheory/base/event.h"
#include "facetheory/base/log.h"
#include "facetheory/base/loop_thread.h"
#include "facetheory/isr/evict.h"
#include "facetheory/isr/partners.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/isr/sweep.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kBodiesAtOnce = 500;
constexpr std::size_t kPagesAtOnce = 400;
constexpr int kInUse = 2;  // As CleanupParts::warmth has it.
// For a reader that has read the pointer of a page just before it was evicted. One that comes later finds no body, and
// the page is rendered again.
constexpr milliseconds kEvictedBodyStays{300};
// For a reader that has read, or still believes, the pointer of a page that lives on.
constexpr seconds kReleasedBodyStays{1};
constexpr milliseconds kLookAtRoom{100};
constexpr milliseconds kLookAgainSoon{10};
constexpr minutes kAskAgain{1};  // Whether anything may be removed, after a refusal; for the last sweep.
// Pages, where their number is limited: near the limit, and otherwise. Counting takes a twentieth of the time at most.
constexpr seconds kCountEmbeddedAgain{1};
constexpr minutes kCountAgainSoon{1};
constexpr minutes kCountAgain{10};
constexpr int kCountingShare = 20;
constexpr std::uint64_t kWayBeyond = 2;  // Nobody counts further than that many times the limit.
constexpr seconds kEvictionIsOver{2};    // When nothing is to go for so long.
constexpr seconds kLookWhoEvicts{1};
// After a round through the table in which nothing could go, twice that after each further one.
constexpr seconds kFirstRest{1};
constexpr minutes kLongestRest{5};
constexpr minutes kFirstSweep{5};  // After the start, where there was none ever.
constexpr std::chrono::hours kTellAgain{1};

}  // namespace

class Cleanup::State {
 public:
  explicit State(CleanupParts parts) : parts_(std::move(parts)) {}

  void start();
  bool stop(std::chrono::steady_clock::time_point deadline);
  CleanupSnapshot snapshot() const;

 private:
  struct EvictedBodies {
    std::vector<std::string> keys;
    Duration due{0};  // Monotonic.
  };

  Task<void> remove_released_bodies();
  Task<void> keep_within_budget();
  Task<void> sweep_now_and_then();

  Task<bool> may_delete();
  Task<void> measure();
  Task<bool> remove_released_for(Duration grace);  // True: there may be more.
  Task<void> make_room_of_released();
  bool count_is_due() const;
  Task<void> count_pages();
  Task<void> learn_count();
  Task<bool> hold_eviction();  // False: another node evicts.
  Task<void> let_eviction_go();
  Task<bool> evict_alone();
  Task<bool> evict();  // Whether there may be more to do at once.
  void end_round();
  Task<void> remove_evicted_bodies();
  std::uint64_t pages_wanted() const;
  Task<bool> sweep_is_due();
  Task<void> sweep_once();
  // True: it is over.
  Task<bool> pause(Duration length) { return stopped_.wait(parts_.isr.clock, length); }

  void tell_of_shortage();
  void failed(const char* what, const Error& error);
  Duration now() const { return parts_.isr.clock.monotonic(); }

  CleanupParts parts_;
  Event stopped_;
  std::stop_source stop_source_;

  // On the thread only.
  std::optional<Duration> asked_at_;  // Whether anything may be removed.
  PartnerReport partners_;
  std::optional<Key> hand_;  // Where the next sample of pages begins.
  std::uint64_t gone_in_this_round_ = 0;
  std::uint64_t from_before_in_this_round_ = 0;
  bool desperate_ = false;
  Duration evict_again_at_{0};
  Duration rest_{0};             // The last one, of rounds in vain.
  std::optional<Lease> evicts_;  // Held: it is this node that evicts.
  Duration evicts_since_{0}, refreshed_at_{0}, wanted_at_{0};
  std::deque<EvictedBodies> evicted_;
  std::size_t evicted_pages_waiting_ = 0;
  std::uint64_t items_ = 0;  // Of the table.
  std::optional<Duration> told_evicting_, told_refusing_, told_from_before_;
  std::uint64_t refused_before_ = 0;
  std::uint64_t refused_as_full_before_ = 0;
  std::optional<Duration> counted_at_;  // Pages; when that began.
  Duration counting_took_{0};
  std::int64_t counted_time_ = 0;                 // The same by the clock, which notes are compared with.
  std::optional<std::uint64_t> counted_version_;  // Of the table.
  std::optional<Duration> told_failure_;
  Duration began_{0};
  double jitter_ = 0;  // Of the interval between sweeps: up to a tenth.

  // From any thread.
  std::atomic<std::uint64_t> released_removed_ = 0, evicted_removed_ = 0, swept_removed_ = 0;
  std::atomic<std::uint64_t> bytes_swept_ = 0, rows_expired_ = 0, rows_evicted_ = 0, pages_evicted_ = 0;
  std::atomic<std::uint64_t> errors_ = 0;
  std::atomic<std::int64_t> last_sweep_ = 0;
  std::atomic<bool> sweeping_ = false;

  LoopThread thread_{"cleanup", Urgency::leisurely};
  std::vector<std::future<void>> tasks_;
};

void Cleanup::State::start() {
  began_ = now();
  jitter_ = static_cast<double>(uniform(parts_.isr.random, 1000)) / 10'000;
  const auto run = [this](Task<void> task) {
    tasks_.push_back(asio::co_spawn(thread_.executor(), std::move(task), asio::use_future));
  };
  run(remove_released_bodies());
  run(keep_within_budget());
  run(sweep_now_and_then());
}

bool Cleanup::State::stop(std::chrono::steady_clock::time_point deadline) {
  stop_source_.request_stop();
  stopped_.set();
  while (!tasks_.empty()) {
    if (tasks_.back().wait_until(deadline) != std::future_status::ready) return false;
    try {
      tasks_.back().get();
    } catch (const std::exception& error) {
      log(LogLevel::error, std::string("cleanup ended early: ") + error.what());
    }
    tasks_.pop_back();
  }
  return true;
}

CleanupSnapshot Cleanup::State::snapshot() const {
  CleanupSnapshot snapshot;
  snapshot.released_removed = released_removed_;
  snapshot.evicted_removed = evicted_removed_;
  snapshot.swept_removed = swept_removed_;
  snapshot.bytes_swept = bytes_swept_;
  snapshot.rows_expired = rows_expired_;
  snapshot.rows_evicted = rows_evicted_;
  snapshot.pages_evicted = pages_evicted_;
  snapshot.pages_refused = parts_.budget.refused();
  snapshot.errors = errors_;
  if (parts_.isr.released != nullptr) {
    snapshot.bodies_waiting = parts_.isr.released->size();
    snapshot.bodies_forgotten = parts_.isr.released->forgotten();
  }
  const DiskUse use = parts_.budget.use();
  snapshot.disk_used = use.used;
  snapshot.disk_occupied = use.occupied;
  snapshot.disk_limit = parts_.budget.disk().value_or(0);
  snapshot.pages = parts_.budget.limits_pages() ? parts_.budget.pages() : 0;
  snapshot.pages_limit = parts_.budget.most_pages().value_or(0);
  snapshot.sweeping = sweeping_;
  const std::int64_t last = last_sweep_;
  if (last > 0) snapshot.since_sweep = seconds(std::max<std::int64_t>(parts_.isr.now() - last, 0));
  return snapshot;
}

// Once a minute and for each thing at most: a store that is down fails again and again.
void Cleanup::State::failed(const char* what, const Error& error) {
  ++errors_;
  if (told_failure_ && now() - *told_failure_ < kAskAgain) return;
  told_failure_ = now();
  log(LogLevel::warning, std::string("cleanup: ") + what + " failed and is tried again: " + to_string(error));
}

// Asked again and again: somebody may have given the bodies to another table meanwhile.
Task<bool> Cleanup::State::may_delete() {
  if (asked_at_ && now() - *asked_at_ < kAskAgain) co_return partners_.may_delete();
  asked_at_ = now();
  partners_ = co_await settle_partners(parts_.isr);
  if (auto checked = check_may_delete(partners_); !checked)
    failed("nothing is removed: asking whose the bodies are", checked.error());
  if (!partners_.may_write() && parts_.on_stranger) parts_.on_stranger();
  co_return partners_.may_delete();
}

// --- released bodies --------------------------------------------------------------------------------------------

Task<void> Cleanup::State::remove_released_bodies() {
  const Duration grace = parts_.config.released_after;
  const Duration look = std::clamp<Duration>(grace / 4, milliseconds(50), seconds(1));
  bool more = false;
  for (;;) {
    // Full batches follow one another, with a breath between them.
    const bool over = co_await pause(more ? Duration(kLookAgainSoon) : look);
    if (over) co_return;
    more = false;
    if (parts_.isr.released == nullptr || parts_.isr.released->size() == 0) continue;
    more = co_await remove_released_for(grace);
  }
}

Task<bool> Cleanup::State::remove_released_for(Duration grace) {
  const bool allowed = co_await may_delete();
  if (!allowed) co_return false;
  auto removed = co_await remove_released(parts_.isr, partners_, grace, kBodiesAtOnce);
  if (!removed) {
    failed("removing released bodies", removed.error());
    co_return false;
  }
  released_removed_ += removed->removed;
  co_return removed->removed + removed->referenced >= kBodiesAtOnce;
}

// Before any page goes: their bodies are nobody's any more but for those who have just read a pointer to them.
Task<void> Cleanup::State::make_room_of_released() {
  if (parts_.budget.bytes_to_free() == 0) co_return;
  if (parts_.isr.released == nullptr || parts_.isr.released->size() == 0) co_return;
  const Duration grace =
      std::min<Duration>(parts_.config.released_after, parts_.pointer_ttl + kReleasedBodyStays);
  bool more = true;
  while (more && !stop_source_.stop_requested())
    more = co_await remove_released_for(grace);
  co_await measure();
}

// --- the budget -------------------------------------------------------------------------------------------------

Task<void> Cleanup::State::keep_within_budget() {
  bool busy = false;
  for (;;) {
    const bool over = co_await pause(busy ? kLookAgainSoon : kLookAtRoom);
    if (over) break;
    co_await remove_evicted_bodies();
    co_await measure();
    co_await make_room_of_released();
    if (count_is_due()) co_await count_pages();
    tell_of_shortage();
    busy = false;
    if (pages_wanted() > 0) {
      wanted_at_ = now();
      if (now() >= evict_again_at_) busy = co_await evict_alone();
    }
    if (evicts_ && now() - wanted_at_ >= kEvictionIsOver) co_await let_eviction_go();
    busy = busy || !evicted_.empty();
  }
  co_await let_eviction_go();
}

Task<void> Cleanup::State::measure() {
  if (!parts_.budget.limits_disk()) co_return;
  const std::optional<DiskUse> table = parts_.isr.table.disk_use();
  auto bodies = co_await parts_.isr.bodies.disk_use();
  if (!bodies) {
    failed("measuring the bodies", bodies.error());
    co_return;
  }
  parts_.budget.measured(table.value_or(DiskUse{}) + bodies->value_or(DiskUse{}));
}

// A process knows what it has added and evicted itself. What others have, and which pages were purged or never
// published, a count shows: at the start, now and then, and more often near the limit. An embedded table also tells
// whether anything has changed.
bool Cleanup::State::count_is_due() const {
  if (!parts_.budget.limits_pages()) return false;
  if (!counted_at_) return true;
  const Duration since = now() - *counted_at_;
  if (since < counting_took_ * kCountingShare) return false;
  if (const auto version = parts_.isr.table.version())
    return since >= kCountEmbeddedAgain && version != counted_version_;
  return since >= (parts_.budget.is_near_most_pages() ? kCountAgainSoon : kCountAgain);
}

Task<void> Cleanup::State::count_pages() {
  const bool embedded = parts_.isr.table.disk_use().has_value();
  const std::uint64_t enough = *parts_.budget.most_pages() * kWayBeyond + kPagesAtOnce;
  // Until there is a count of our own.
  if (!counted_at_) co_await learn_count();
  const Duration began = now();
  counted_version_ = parts_.isr.table.version();
  counted_time_ = parts_.isr.now();
  parts_.budget.counting();
  std::uint64_t pages = 0;
  std::optional<Key> after;
  do {
    auto some = co_await count_some(parts_.isr, std::move(after));
    if (!some) {
      failed("counting pages", some.error());
      counted_at_ = began;  // Not again at once, though nothing may change.
      counted_version_.reset();
      co_return;
    }
    pages += some->pages;
    after = std::move(some->next);
    const Duration breath = std::chrono::microseconds(some->rows * 1'000'000 / parts_.config.pace);
    const bool over = after && co_await pause(embedded ? Duration(milliseconds(1)) : breath);
    if (over) co_return;
    // It takes longer than a lease lasts, where it is paced.
    if (evicts_) co_await hold_eviction();
  } while (after && pages < enough);
  parts_.budget.counted(pages);
  counted_at_ = began;
  counting_took_ = now() - began;
}

// What the node that evicts has noted, if it is news.
Task<void> Cleanup::State::learn_count() {
  if (!parts_.budget.limits_pages()) co_return;
  auto noted = co_await noted_pages(parts_.isr);
  if (!noted) {
    failed("reading the count of pages", noted.error());
    co_return;
  }
  if (!*noted || (*noted)->noted_at <= counted_time_) co_return;
  counted_time_ = (*noted)->noted_at;
  parts_.budget.counting();
  parts_.budget.counted((*noted)->pages);
}

// How many pages must go, besides those whose bodies are about to.
std::uint64_t Cleanup::State::pages_wanted() const {
  std::uint64_t wanted = parts_.budget.pages_to_free();
  if (const std::uint64_t bytes = parts_.budget.bytes_to_free(); bytes > 0) {
    const std::uint64_t released = parts_.isr.released != nullptr ? parts_.isr.released->size() : 0;
    const std::uint64_t stored = std::max<std::uint64_t>(items_ + released, 1);
    const std::uint64_t each = std::max<std::uint64_t>(parts_.budget.use().used / stored, 512);
    const std::uint64_t pages = bytes / each + 1;
    // What comes faster than it goes is no room.
    const std::uint64_t about_to_go = evicted_pages_waiting_ + (parts_.budget.is_disk_full() ? 0 : released);
    wanted = std::max(wanted, pages - std::min<std::uint64_t>(pages, about_to_go));
  }
  return wanted;
}

Task<bool> Cleanup::State::hold_eviction() {
  if (evicts_ && now() - refreshed_at_ < kEvictionLease / 3) co_return true;
  refreshed_at_ = now();
  if (evicts_) {
    Lease lease = *evicts_;
    auto refreshed = co_await refresh(parts_.isr, std::move(lease));
    if (refreshed && std::holds_alternative<Lease>(*refreshed)) co_return true;
    evicts_.reset();
    if (!refreshed) {
      failed("keeping the lease of evicting", refreshed.error());
      co_return false;
    }
  }
  std::string owner = parts_.owner;
  auto acquired = co_await acquire_eviction(parts_.isr, std::move(owner));
  if (!acquired) {
    failed("taking the lease of evicting", acquired.error());
    co_return false;
  }
  auto* lease = std::get_if<Lease>(&*acquired);
  if (lease == nullptr) co_return false;
  evicts_ = std::move(*lease);
  evicts_since_ = now();
  co_return true;
}

Task<void> Cleanup::State::let_eviction_go() {
  if (!evicts_) co_return;
  Lease lease = *std::exchange(evicts_, {});
  [[maybe_unused]] auto released =
      co_await release(parts_.isr, std::move(lease));  // Else it ends by its time.
}

Task<bool> Cleanup::State::evict_alone() {
  const bool allowed = co_await may_delete();
  if (!allowed) co_return false;
  const bool alone = co_await hold_eviction();
  if (!alone) {
    evict_again_at_ = now() + kLookWhoEvicts;
    co_await learn_count();
    co_return false;
  }
  // Whoever evicted before has left another number behind.
  if (parts_.budget.pages_to_free() > 0 && (!counted_at_ || *counted_at_ < evicts_since_)) {
    co_await count_pages();
    if (!evicts_ || pages_wanted() == 0) co_return false;
  }
  co_return co_await evict();
}

Task<bool> Cleanup::State::evict() {
  auto description = co_await parts_.isr.table.describe();
  if (description) items_ = description->items;
  EvictOptions options;
  options.most = std::min<std::size_t>(pages_wanted(), kPagesAtOnce);
  options.warmth = parts_.warmth;
  options.partners = partners_;
  // Pages that are in use go only if all of a round through the table was in vain.
  if (!desperate_) options.spared = kInUse;
  std::optional<Key> hand = std::exchange(hand_, {});
  auto evicted = co_await evict_some(parts_.isr, std::move(hand), std::move(options));
  if (!evicted) {
    failed("evicting pages", evicted.error());
    co_return false;
  }
  hand_ = std::move(evicted->next);
  gone_in_this_round_ += evicted->pages;
  from_before_in_this_round_ += evicted->from_before;
  if (!hand_) end_round();
  pages_evicted_ += evicted->pages;
  rows_evicted_ += evicted->rows;
  parts_.budget.evicted(evicted->pages);
  if (!evicted->bodies.empty()) {
    evicted_pages_waiting_ += evicted->bodies.size();
    evicted_.push_back({std::move(evicted->bodies), now() + kEvictedBodyStays});
  }
  if (evicted->pages > 0 && parts_.budget.limits_pages()) {
    auto noted = co_await note_pages(parts_.isr, parts_.budget.pages());
    if (!noted) failed("noting the count of pages", noted.error());
  }
  co_return evicted->pages > 0 || now() >= evict_again_at_;
}

// After one in vain pages that are in use go, too. Where that was in vain as well, all are pinned, being rendered, or
// others': looking at them again at once would change nothing.
void Cleanup::State::end_round() {
  const bool vain = std::exchange(gone_in_this_round_, 0) == 0;
  const bool from_before = std::exchange(from_before_in_this_round_, 0) > 0;
  const bool nothing_can_go = vain && desperate_;
  desperate_ = vain;
  rest_ = nothing_can_go ? std::clamp<Duration>(rest_ * 2, kFirstRest, kLongestRest) : Duration(0);
  evict_again_at_ = now() + rest_;
  if (!nothing_can_go || !from_before) return;
  if (told_from_before_ && now() - *told_from_before_ < kTellAgain) return;
  told_from_before_ = now();
  log(LogLevel::warning,
      "there is no room for new pages, and none can be made: pages from before table and bodies knew each "
      "other stay, since "
      "another table may use their bodies. If none does, run `facetheory gc --adopt` once");
}

Task<void> Cleanup::State::remove_evicted_bodies() {
  while (!evicted_.empty() && evicted_.front().due <= now()) {
    std::vector<std::string> keys = std::move(evicted_.front().keys);
    evicted_.pop_front();
    evicted_pages_waiting_ -= std::min(evicted_pages_waiting_, keys.size());
    const std::size_t count = keys.size();
    auto removed = co_await parts_.isr.bodies.remove_all(std::move(keys));
    if (!removed) {
      failed("removing the bodies of evicted pages", removed.error());  // The sweep finds them.
      co_return;
    }
    evicted_removed_ += count;
  }
}

// Once, not for every page; again if it is still so after a while.
void Cleanup::State::tell_of_shortage() {
  const auto due = [&](std::optional<Duration>& told) {
    if (told && now() - *told < kTellAgain) return false;
    told = now();
    return true;
  };
  const auto disk = [&] {
    return std::to_string(parts_.budget.use().used >> 20) +
           " MiB of disk = " + std::to_string(parts_.budget.disk().value_or(0) >> 20) + " MiB are used";
  };
  const auto number = [&] {
    return "there are about " + std::to_string(parts_.budget.pages()) +
           " pages, and pages = " + std::to_string(parts_.budget.most_pages().value_or(0));
  };
  if (pages_wanted() > 0 && due(told_evicting_))
    log(LogLevel::warning, (parts_.budget.pages_to_free() > 0 ? number() : disk()) +
                               ": pages that are least wanted are evicted to make room; raise disk or "
                               "pages if they are rendered again too often");
  const std::uint64_t refused = parts_.budget.refused();
  const std::uint64_t refused_as_full = parts_.budget.refused_as_full();
  if (refused != refused_before_ && due(told_refusing_))
    log(LogLevel::warning, (refused_as_full != refused_as_full_before_ ? disk() : number()) +
                               ": new pages come faster than old ones can be evicted, and are passed on "
                               "without being stored until there is room");
  refused_before_ = refused;
  refused_as_full_before_ = refused_as_full;
}

// --- the sweep --------------------------------------------------------------------------------------------------

Task<void> Cleanup::State::sweep_now_and_then() {
  const Duration interval = parts_.config.interval;
  const Duration look = std::clamp<Duration>(interval / 10, milliseconds(100), kAskAgain);
  for (;;) {
    const bool due = co_await sweep_is_due();
    const bool allowed = due && co_await may_delete();
    if (allowed) co_await sweep_once();
    const bool over = co_await pause(look);
    if (over) co_return;
  }
}

Task<bool> Cleanup::State::sweep_is_due() {
  auto last = co_await last_sweep(parts_.isr);
  if (!last) {
    failed("reading when the last sweep was", last.error());
    co_return false;
  }
  const Duration interval = parts_.config.interval;
  if (!*last) co_return now() - began_ >= std::min<Duration>(interval, kFirstSweep);
  last_sweep_ = (*last)->finished_at;
  const auto with_jitter = std::chrono::duration_cast<Duration>(interval * (1 + jitter_));
  co_return seconds(parts_.isr.now() - (*last)->finished_at) >= with_jitter;
}

Task<void> Cleanup::State::sweep_once() {
  SweepOptions options;
  options.grace = parts_.config.grace;
  options.pace = parts_.config.pace;
  options.stop = stop_source_.get_token();
  SweepReport told;
  const auto count = [this, &told](const SweepReport& report) {
    swept_removed_ += report.bodies_deleted - told.bodies_deleted;
    bytes_swept_ += report.bytes_deleted - told.bytes_deleted;
    rows_expired_ += report.rows_deleted - told.rows_deleted;
    told = report;
    sweeping_ = true;
  };
  auto outcome = co_await sweep_alone(parts_.isr, std::move(options), parts_.owner, count);
  sweeping_ = false;
  if (!outcome && !stop_source_.stop_requested()) failed("sweeping", outcome.error());
}

Cleanup::Cleanup(CleanupParts parts) : state_(std::make_unique<State>(std::move(parts))) {
  state_->start();
}

Cleanup::~Cleanup() {
  // Not time_point::max(), which a wait may turn into a time that has passed.
  while (!state_->stop(std::chrono::steady_clock::now() + std::chrono::hours(1)))
    continue;
}

bool Cleanup::stop(std::chrono::steady_clock::time_point deadline) {
  return state_->stop(deadline);
}

CleanupSnapshot Cleanup::snapshot() const {
  return state_->snapshot();
}

}  // namespace facetheory
