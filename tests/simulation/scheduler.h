// The scheduler of a simulated fleet: one thread, simulated time, and a seed that decides everything.
//
// Whoever awaits something parks here. A parked coroutine and a request on the wire are both steps; a decision
// picks one of those that may run now, at random, runs it until everything is parked again, and sometimes lets
// time pass instead. So the order of all things is the seed's alone, and the same seed gives the same run.
//
// Parties are numbered. A crashed party's parked coroutines are destroyed and never resumed; what it has sent is
// on the wire already and may still arrive. A paused one is skipped while time goes on. The class has more than 25
// members because time, parties and steps are drawn from one seed, in one order.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "facetheory/base/random.h"
#include "facetheory/base/task.h"

#include "tests/simulation/trace.h"

namespace facetheory::simulation {

using Millis = std::int64_t;  // True time since 1970.
using PartyId = int;
using StepId = std::uint64_t;

inline constexpr Millis kNever = std::numeric_limits<Millis>::max();

// How time passes. Chances are per thousand decisions.
struct Pace {
  int dawdle = 60;          // Time passes although somebody could run,
  Millis dawdle_max = 400;  // by up to this much.
  int jump = 4;             // Likewise, for longer: everybody has stood still.
  Millis jump_max = 15'000;
};

class Scheduler {
 public:
  Scheduler(std::uint64_t seed, Trace& trace);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Millis now() const { return now_; }
  // How long, in all, time has passed although somebody could have run: nothing is late by more than that, unless it
  // was paused.
  Millis stood_still() const { return stood_still_; }
  // What runs there takes part in the run, as long as it waits for nothing but steps.
  boost::asio::any_io_executor executor();
  Trace& trace() { return trace_; }

  // The seed's randomness: [0, bound), and whether something of that chance per thousand happens.
  std::uint64_t pick(std::uint64_t bound) { return uniform(random_, bound); }
  bool happens(int per_mille) { return per_mille > 0 && pick(1000) < static_cast<std::uint64_t>(per_mille); }
  Millis span(Millis longest) { return static_cast<Millis>(pick(static_cast<std::uint64_t>(longest) + 1)); }

  void set_pace(Pace pace) { pace_ = pace; }

  // The party's coroutine starts at the next decision; `escaped` hears what it throws.
  void spawn(PartyId party, Task<void> task, std::function<void(std::exception_ptr)> escaped);

  // Something on the wire: it arrives at or soon after `when`, whatever becomes of its sender. Time never runs
  // away from it, so that nothing is on the wire for longer than whoever sent it there said.
  void arrive(PartyId sender, Millis when, std::function<void()> action);

  // Parks the calling coroutine until a step at or after `when`. A step that is cancelled, as Asio cancels,
  // throws operation_aborted.
  StepId new_step() { return ++last_step_; }
  Task<void> park(StepId step, PartyId party, Millis when);
  // A parked step may run from then on; one that is gone is none.
  void wake(StepId step, Millis when);

  void crash(PartyId party, bool with_requests);
  void pause(PartyId party, Millis until);

  // One decision. False: nothing is left that could ever run.
  bool step();

  struct Parked;  // A coroutine's continuation.

 private:
  struct Step {
    StepId id = 0;
    PartyId party = 0;
    Millis when = 0;
    bool wire = false;
    std::unique_ptr<Parked> parked;
    std::function<void()> action;
  };
  struct Loop;

  Millis ready_at(const Step& step) const;
  bool let_time_pass(bool idle);
  void cancel(StepId step);
  void settle();

  Trace& trace_;
  SeededRandom random_;
  std::unique_ptr<Loop> loop_;
  Millis now_ = 1'700'000'000'000;
  Millis stood_still_ = 0;
  Pace pace_;
  StepId last_step_ = 0;
  std::vector<Step> steps_;  // In the order they were added.
  std::vector<std::size_t> runnable_;
  std::map<PartyId, Millis> paused_;
};

}  // namespace facetheory::simulation
