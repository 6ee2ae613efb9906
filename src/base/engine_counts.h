// What the engine (cache/engine.h) counts: what it has done and how it is now, for metrics and warnings. Each of its
// parts adds its own. It stands here so that the engine need not know the metrics, nor the metrics the engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "facetheory/base/clock.h"

namespace facetheory {

// Counted since the engine was made.
struct EngineCounters {
  // Answers. `failed` counts errors, too.
  std::uint64_t hit = 0, miss = 0, wait_hit = 0, stale = 0, stale_metadata_error = 0, uncached = 0, pass = 0,
                other = 0, absent = 0, failed = 0;
  std::uint64_t renders = 0, renders_failed = 0, published = 0, not_stored = 0;
  // Never begun. Dropped: nobody waited for them any more. Refused: their turn would have come too late.
  std::uint64_t renders_dropped = 0, renders_refused = 0;
  // Contended: somebody else had it when a regeneration wanted it; once for each. Taken over: from a holder who was
  // waited for and let it expire.
  std::uint64_t leases_acquired = 0, leases_contended = 0, leases_lost = 0, leases_taken_over = 0;
  std::uint64_t bodies_read = 0, table_errors = 0;
};

// How it is now.
struct EngineGauges {
  std::size_t waiters = 0;  // Requests that wait for a render.
  // Regenerations under way, with those that wait for their turn or for another node.
  std::size_t flights = 0;
  std::size_t queued_renders = 0;  // Those that wait for their turn.
  Duration oldest_queued{0};       // How long the oldest of them has waited.
  Duration oldest_flight{0};       // How long ago the oldest regeneration began that has not ended.
  // Those that should have ended long ago; they were given up, and still hang.
  std::size_t overdue_flights = 0;
  std::size_t bodies_in_memory = 0, bytes_in_memory = 0, pointers = 0;
  bool table_down = false;   // It has failed so often that it is hardly asked.
  bool bodies_down = false;  // Likewise.
  // It is read, but writes have failed so often that they are only tried now and then.
  bool table_writes_down = false;
  bool body_writes_down = false;  // Likewise.
  std::size_t storing = 0;        // Pages that were rendered and are being stored,
  std::size_t storing_bytes = 0;  // and what their bodies take.
};

}  // namespace facetheory
