// Faults on command, for the table and the body store that wrap another and misbehave (table/faulty_table.h,
// bodies/faulty_bodies.h), so that every layer above can be tested against what networks and services really
// do.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "facetheory/base/random.h"

namespace facetheory {

enum class Fault {
  none,          // The operation is passed on.
  delay,         // It is passed on after a while.
  throttle,      // `unavailable`: the service is busy; nothing was done.
  fail,          // `unavailable`: the service is broken; nothing was done.
  conflict,      // `unavailable`: somebody else's write was in the way; nothing was done.
  lose_request,  // `ambiguous`, and nothing was done. A read gets `unavailable`.
  lose_answer,   // `ambiguous`, though it was done. A read gets `unavailable`.
};

std::string_view name(Fault fault);

// Says which fault the next operation meets: those queued for it first, then by chance. May be used from any
// thread; the same seed gives the same faults to the same sequence of operations.
class FaultScript {
 public:
  explicit FaultScript(std::uint64_t seed = 0);

  // The next `count` operations of that name ("get", "write", ...; "" for any) meet this fault.
  void queue(std::string operation, Fault fault, int count = 1);

  // Operations with nothing queued meet this fault with this probability; the sum over all faults is at
  // most 1.
  void chance(Fault fault, double probability);

  // How long `delay` lasts (default: 2 ms).
  void set_delay(std::chrono::milliseconds delay);
  std::chrono::milliseconds delay() const;

  Fault next(std::string_view operation);

  // How often that fault was handed out.
  int applied(Fault fault) const;

  // Nothing is queued and nothing left to chance from now on.
  void clear();

 private:
  mutable std::mutex mutex_;  // guards everything below
  SeededRandom random_;
  std::map<std::string, std::deque<Fault>, std::less<>> queued_;
  std::map<Fault, double> chances_;
  std::map<Fault, int> applied_;
  std::chrono::milliseconds delay_{2};
};

}  // namespace facetheory
