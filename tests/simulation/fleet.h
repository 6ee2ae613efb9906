// What the parties of one run share, and what they do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"

#include "tests/simulation/checker.h"
#include "tests/simulation/party.h"
#include "tests/simulation/scheduler.h"

namespace facetheory::simulation {

// Nothing is on the wire for longer than this, so that a body stays unswept until whoever may still publish it
// has done so: the grace period of the sweeper is chosen for that.
inline constexpr Millis kLongestDelay = 40'000;
inline constexpr std::chrono::seconds kGrace{120};
// What a publish has released stays for that long: a reader with the old pointer finds it, and whoever is about to
// complete a request with it has done so.
inline constexpr std::chrono::seconds kReleasedGrace{90};
inline constexpr std::chrono::seconds kLongestLease{10};

// How often, relative to each other, a worker does each thing.
struct Habits {
  int regenerate = 0;
  int regenerate_request = 0;  // The same under a request id.
  int lease_steps = 0;         // Acquire, refresh, publish, release, back off, one by one.
  int request_steps = 0;       // Claim, extend, complete, fail, one by one.
  int invalidate = 0;
  int purge = 0;
  int mark = 0;
  int rollback = 0;
  int pin = 0;
  int unpin = 0;
  int read = 0;
  int sweep = 0;
  int evict = 0;
};

struct Fleet {
  Scheduler& scheduler;
  Checker& checker;
  std::vector<Page> pages;
  std::vector<int> histories;  // So many versions are usually kept of each page.
  // Engines are told these tags when they are asked for a page.
  std::vector<std::vector<std::string>> route_tags = {};
  Habits habits;
  IsrSettings settings = {.clock_skew = std::chrono::seconds(2),
                          .ttl_buffer = std::chrono::seconds(60),
                          .request_retention = std::chrono::seconds(150),
                          .longest_lease = kLongestLease};
  bool stopping = false;  // Nobody begins anything any more.
  bool sweeps_in_the_end = false;
  bool recovered = false;
  std::uint64_t renders = 0;

  std::uint64_t begin(Party& party, Operation operation);
  void end(Party& party, const Report& report);
};

inline constexpr int kRequestIds = 3;     // Few, so that they are retried: "id-0", ...
inline constexpr int kInputVariants = 2;  // The first is the usual one; others are mismatches.

// Everybody of ours does this before anything else: table and bodies get to know each other.
Task<void> introduce(Fleet& fleet, Party& me);

// A worker of ours: one thing after the other, at random.
Task<void> work(Fleet& fleet, Party& me);

// When everything is over, one healthy worker regenerates every page, completes every request and sweeps.
Task<void> recover(Fleet& fleet, Party& me);

// A writer in another language that behaves like TableTheory's.
Task<void> work_as_foreigner(Fleet& fleet, Party& me);

}  // namespace facetheory::simulation
