// A clock that a test moves by hand. Sleepers wake when it has been advanced past their time, each on its own
// executor. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "facetheory/base/clock.h"

namespace facetheory::test {

class ManualClock final : public Clock {
 public:
  // Starts at that time of day; monotonic time starts at zero.
  explicit ManualClock(WallTime start = WallTime(std::chrono::seconds(1'700'000'000)));
  ~ManualClock() override;

  WallTime now() const override;
  Duration monotonic() const override;
  Task<bool> wait_for(Duration duration) override;

  // Both times go on by that much; whoever has slept long enough wakes.
  void advance(Duration duration);
  // The time of day alone jumps.
  void set_now(WallTime now);

  // From now on a sleep advances the clock by itself and returns as soon as others have had their turn.
  void advance_on_sleep();

  // Coroutines asleep at this moment, and every sleep ever asked for, in order.
  std::size_t sleepers() const;
  std::vector<Duration> sleeps() const;

  // Waits (up to ten seconds of real time) until at least that many are asleep; false: they never were.
  bool wait_for_sleepers(std::size_t count) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace facetheory::test
