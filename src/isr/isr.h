// Isr: what every operation of the protocol works with, and the settings they share.
//
// The protocol is a set of functions over one Isr: lease.h (who may render), publish.h (a page becomes
// current), history.h (versions, rollback), requests.h (idempotency records), invalidate.h, marks.h (what
// invalidations have said), regenerate.h (all of it in the safe order), pages.h (reading and listing),
// released_bodies.h, sweep.h and evict.h (cleanup), partners.h (whether table and bodies belong together). Each is a
// Task to be awaited on any executor; blocking.h has the same operations for programs without an event loop.
//
// Errors keep the codes of the table: `ambiguous` is returned only when repeating and reading could not
// settle what happened. `corrupt` also means a row that some writer gave an attribute of the wrong type.
#pragma once

#include <chrono>
#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/base/random.h"
#include "facetheory/base/store_names.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/table/table.h"

namespace facetheory {

class ReleasedBodies;

struct IsrSettings {
  // How far apart two machines' clocks may be. A tag or tenant invalidation reaches this far into the future.
  std::chrono::seconds clock_skew{2};
  // The ttl of LOCK and REQ# rows lies this long after the last moment at which they mean anything.
  std::chrono::seconds ttl_buffer{3600};
  // How long a completed or failed request can be replayed.
  std::chrono::seconds request_retention{24 * 3600};
  // No writer of the table holds a lease for longer without refreshing it. A foreign request record that
  // carries no time is given up after that.
  std::chrono::seconds longest_lease{3600};
};

// All members outlive every operation that was given the Isr; so does the Isr itself.
struct Isr {
  Table& table;
  BodyStore& bodies;
  Clock& clock = system_clock();
  Random& random = system_random();
  IsrSettings settings = {};
  StoreNames names = {};
  // Told of bodies that nothing refers to any more, so that they need not wait for a sweep (released_bodies.h). Null:
  // nobody is.
  ReleasedBodies* released = nullptr;

  std::int64_t now() const { return epoch_seconds(clock.now()); }
};

// A lease shorter than this might be over before it began: writers round to whole seconds, each its own way.
inline constexpr std::chrono::seconds kShortestLease{2};

}  // namespace facetheory
