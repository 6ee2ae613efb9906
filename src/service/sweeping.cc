#include "facetheory/service/sweeping.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/random.h"
#include "facetheory/isr/sweep.h"

namespace facetheory {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr minutes kFirstSweep{5};    // The first ever comes so long after the start.
constexpr minutes kLongestPause{1};  // Until it is asked again when the last sweep was.

}  // namespace

Sweeping::Sweeping(CleanupRun& run)
    : run_(run),
      began_(run.now()),
      jitter_(static_cast<double>(uniform(run.parts.isr.random, 1000)) / 10'000) {}

Task<void> Sweeping::sweep_now_and_then() {
  const Duration interval = run_.parts.config.interval;
  const Duration pause = std::clamp<Duration>(interval / 10, milliseconds(100), kLongestPause);
  for (;;) {
    const bool due = co_await ask_whether_due();
    const bool allowed = due && co_await run_.settle_whether_to_delete();
    if (allowed) co_await sweep();
    const bool over = co_await run_.pause(pause);
    if (over) co_return;
  }
}

Task<bool> Sweeping::ask_whether_due() {
  auto last = co_await last_sweep(run_.parts.isr);
  if (!last) {
    run_.failed("reading when the last sweep was", last.error());
    co_return false;
  }
  const Duration interval = run_.parts.config.interval;
  if (!*last) co_return run_.now() - began_ >= std::min<Duration>(interval, kFirstSweep);
  run_.last_sweep = (*last)->finished_at;
  const auto with_jitter = std::chrono::duration_cast<Duration>(interval * (1 + jitter_));
  co_return seconds(run_.parts.isr.now() - (*last)->finished_at) >= with_jitter;
}

Task<void> Sweeping::sweep() {
  SweepOptions options;
  options.grace = run_.parts.config.grace;
  options.pace = run_.parts.config.pace;
  options.stop = run_.ending();
  SweepReport told;
  const auto count = [this, &told](const SweepReport& report) {
    run_.count(&CleanupTotals::swept_removed, report.bodies_deleted - told.bodies_deleted);
    run_.count(&CleanupTotals::bytes_swept, report.bytes_deleted - told.bytes_deleted);
    run_.count(&CleanupTotals::rows_expired, report.rows_deleted - told.rows_deleted);
    told = report;
    run_.sweeping = true;
  };
  auto outcome = co_await sweep_alone(run_.parts.isr, std::move(options), run_.parts.owner, count);
  run_.sweeping = false;
  if (!outcome && !run_.has_ended()) run_.failed("sweeping", outcome.error());
}

}  // namespace facetheory
