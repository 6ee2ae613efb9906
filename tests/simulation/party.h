// A party of the simulation: one worker (one life of it) with its own clock, its own view of table and bodies,
// and its own randomness. All parties of a run live until its end, also the crashed ones.
#pragma once

#include <cstdint>
#include <memory>

#include "facetheory/base/clock.h"
#include "facetheory/base/random.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/table/table.h"

#include "tests/simulation/scheduler.h"

namespace facetheory::simulation {

// Two clocks differ by at most twice this much, which is what the protocol is told to allow.
inline constexpr Millis kMaxSkew = 1000;

class SimulatedClock final : public Clock {
 public:
  SimulatedClock(Scheduler& scheduler, PartyId party, Millis skew)
      : scheduler_(scheduler), party_(party), skew_(skew) {}

  WallTime now() const override { return WallTime(std::chrono::milliseconds(own_now())); }
  Duration monotonic() const override { return std::chrono::milliseconds(scheduler_.now()); }
  Task<bool> wait_for(Duration duration) override;

  Millis own_now() const { return scheduler_.now() + skew_; }
  void set_skew(Millis skew) { skew_ = skew; }

 private:
  Scheduler& scheduler_;
  PartyId party_;
  Millis skew_;
};

struct Party {
  Party(Scheduler& scheduler, PartyId number, Millis skew, std::uint64_t seed, bool is_foreign)
      : id(number), foreign(is_foreign), clock(scheduler, number, skew), tokens(seed), choices(~seed) {}

  PartyId id;
  bool foreign;  // A writer in another language: its bodies are its own.
  SimulatedClock clock;
  SeededRandom tokens;   // What the protocol draws from,
  SeededRandom choices;  // and what decides what this party does.
  std::unique_ptr<Table> table = {};
  std::unique_ptr<BodyStore> bodies = {};

  std::uint64_t operation = 0;  // What it is doing, by the checker's number; 0: nothing.
  bool alive = true;
  std::uint64_t failures = 0;  // Requests to table or bodies that it got no answer to.

  std::uint64_t pick(std::uint64_t bound) { return uniform(choices, bound); }
  bool happens(int per_cent) { return pick(100) < static_cast<std::uint64_t>(per_cent); }
};

}  // namespace facetheory::simulation
