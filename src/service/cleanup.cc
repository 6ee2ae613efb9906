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
#include "facetheory/isr/pages.h"
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
// For a reader that has read the pointer of a page just before it was evicted. One that comes later finds no body, and the
// page is rendered again.
constexpr milliseconds kEvictedBodyStays{300};
constexpr milliseconds kLookAtRoom{100};
constexpr milliseconds kLookAgainSoon{10};
constexpr minutes kAskAgain{1};     // Whether anything may be removed, after a refusal; for the last sweep.
constexpr minutes kCountAgain{10};  // Pages, where their number is limited.
constexpr minutes kFirstSweep{5};   // After the start, where there was none ever.
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
  Task<void> count_pages();
  Task<bool> evict();  // Whether any page went.
  Task<void> remove_evicted_bodies();
  std::uint64_t pages_wanted();
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
  bool desperate_ = false;
  std::deque<EvictedBodies> evicted_;
  std::size_t evicted_pages_waiting_ = 0;
  std::uint64_t items_ = 0;  // Of the table.
  std::optional<Duration> told_evicting_, told_refusing_;
  std::uint64_t refused_before_ = 0;
  std::optional<Duration> recounted_at_;
  std::int64_t counted_sweep_ = -1;  // finished_at of the sweep whose count of pages is used.
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
    const bool allowed = co_await may_delete();
    if (!allowed) continue;
    auto removed = co_await remove_released(parts_.isr, partners_, grace, kBodiesAtOnce);
    if (!removed) {
      failed("removing released bodies", removed.error());
      continue;
    }
    released_removed_ += removed->removed;
    more = removed->removed + removed->referenced >= kBodiesAtOnce;
  }
}

// --- the budget -------------------------------------------------------------------------------------------------

Task<void> Cleanup::State::keep_within_budget() {
  bool busy = false;
  for (;;) {
    const bool over = co_await pause(busy ? kLookAgainSoon : kLookAtRoom);
    if (over) co_return;
    co_await remove_evicted_bodies();
    co_await measure();
    co_await count_pages();
    tell_of_shortage();
    busy = false;
    if (pages_wanted() > 0) busy = co_await evict();
    busy = busy || !evicted_.empty();
  }
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

// A sweep of anybody's counts them all; what this process has added and evicted since is known. Pages that were purged or never
// published are not, so before any page goes for their number, they are counted.
Task<void> Cleanup::State::count_pages() {
  if (!parts_.budget.limits_pages()) co_return;
  const bool doubtful = !recounted_at_ || now() - *recounted_at_ >= kCountAgain;
  if (parts_.budget.pages_to_free() > 0 && doubtful) {
    recounted_at_ = now();
    auto counted = co_await pages_in_table(parts_.isr);
    if (!counted) {
      failed("counting pages", counted.error());
      co_return;
    }
    parts_.budget.counted(*counted);
  }
  if (last_sweep_ == counted_sweep_) co_return;
  auto last = co_await last_sweep(parts_.isr);
  if (!last) {
    failed("reading the count of pages", last.error());
    co_return;
  }
  if (*last) parts_.budget.counted((*last)->pages);
  counted_sweep_ = *last ? (*last)->finished_at : last_sweep_.load();
  last_sweep_ = counted_sweep_;
}

// How many pages must go, besides those whose bodies are about to.
std::uint64_t Cleanup::State::pages_wanted() {
  std::uint64_t wanted = parts_.budget.pages_to_free();
  if (const std::uint64_t bytes = parts_.budget.bytes_to_free(); bytes > 0) {
    const std::uint64_t each =
        std::max<std::uint64_t>(parts_.budget.use().used / std::max<std::uint64_t>(items_, 1), 512);
    const std::uint64_t pages = bytes / each + 1;
    wanted = std::max(wanted, pages - std::min<std::uint64_t>(pages, evicted_pages_waiting_));
  }
  return wanted;
}

Task<bool> Cleanup::State::evict() {
  const bool allowed = co_await may_delete();
  if (!allowed) co_return false;
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
  if (!hand_) desperate_ = std::exchange(gone_in_this_round_, 0) == 0;
  pages_evicted_ += evicted->pages;
  rows_evicted_ += evicted->rows;
  parts_.budget.evicted(evicted->pages);
  if (!evicted->bodies.empty()) {
    evicted_pages_waiting_ += evicted->bodies.size();
    evicted_.push_back({std::move(evicted->bodies), now() + kEvictedBodyStays});
  }
  co_return evicted->pages > 0 || hand_;
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
  const DiskUse use = parts_.budget.use();
  const bool by_number = !parts_.budget.disk() || parts_.budget.pages_to_free() > 0;
  const std::string standing =
      !by_number ? std::to_string(use.used >> 20) +
                       " MiB of disk = " + std::to_string(*parts_.budget.disk() >> 20) + " MiB are used"
                 : "there are about " + std::to_string(parts_.budget.pages()) + " pages";
  if (pages_wanted() > 0 && due(told_evicting_))
    log(LogLevel::warning, standing +
                               ": pages that are least wanted are evicted to make room; raise disk or "
                               "pages if they are rendered again too often");
  const std::uint64_t refused = parts_.budget.refused();
  if (refused != refused_before_ && due(told_refusing_))
    log(LogLevel::warning, standing +
                               ": new pages come faster than old ones can be evicted, and are passed on "
                               "without being stored until there is room");
  refused_before_ = refused;
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
