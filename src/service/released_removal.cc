#include "facetheory/service/released_removal.h"

#include <algorithm>
#include <chrono>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/released_bodies.h"

namespace facetheory {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kBodiesAtOnce = 500;
constexpr milliseconds kNextBatch{10};
// A reader may have read, or may still believe, the pointer of a page that lives on.
constexpr seconds kReleasedBodyStays{1};

}  // namespace

Task<void> ReleasedRemoval::remove_when_due() {
  const Duration grace = run_.parts.config.released_after;
  const Duration pause = std::clamp<Duration>(grace / 4, milliseconds(50), seconds(1));
  bool more = false;
  for (;;) {
    // Full batches follow one another, with a breath between them.
    const bool over = co_await run_.pause(more ? Duration(kNextBatch) : pause);
    if (over) co_return;
    more = false;
    if (run_.released_waiting() == 0) continue;
    more = co_await remove_some(grace);
  }
}

Task<bool> ReleasedRemoval::remove_some(Duration grace) {
  const bool allowed = co_await run_.settle_whether_to_delete();
  if (!allowed) co_return false;
  auto removed = co_await remove_released(run_.parts.isr, run_.partners(), grace, kBodiesAtOnce);
  if (!removed) {
    run_.failed("removing released bodies", removed.error());
    co_return false;
  }
  run_.count(&CleanupTotals::released_removed, removed->removed);
  co_return removed->removed + removed->referenced >= kBodiesAtOnce;
}

Task<bool> ReleasedRemoval::make_room() {
  if (run_.parts.budget.bytes_to_free() == 0 || run_.released_waiting() == 0) co_return false;
  const Duration grace =
      std::min<Duration>(run_.parts.config.released_after, run_.parts.pointer_ttl + kReleasedBodyStays);
  bool more = true;
  while (more && !run_.has_ended())
    more = co_await remove_some(grace);
  co_return true;
}

}  // namespace facetheory
