// Time comes in through this door, so that the whole system can run under a simulated clock.
// A Clock may be used from any thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "facetheory/base/task.h"

namespace facetheory {

class Waker;  // waker.h

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;
using Duration = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;

  // The time of day. It may jump in either direction; rows carry it, durations never do.
  virtual WallTime now() const = 0;

  // Time since some fixed moment; never goes back. For time-outs and latencies.
  virtual Duration monotonic() const = 0;

  // Resumes the caller, on its own executor, once that much monotonic time has passed: true. False: the wait was
  // cancelled, in Asio's way.
  virtual Task<bool> wait_for(Duration duration) = 0;

  // The same until somebody wakes `waker`. False: so it was, or it was cancelled. This one waits by wait_for(), and
  // costs many times as much as a wait does; a clock may know better.
  virtual Task<bool> wait_until_woken(Duration limit, Waker& waker);

  // The same as wait_for() for whoever would not go on then: throws boost::system::system_error(operation_aborted).
  Task<void> sleep_for(Duration duration);
};

// The machine's clocks.
Clock& system_clock();

// Whole seconds since 1970, as rows carry them.
inline std::int64_t epoch_seconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

}  // namespace facetheory
