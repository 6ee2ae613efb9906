// Sweeping: sweeps the whole table every few hours, if no other node of the fleet has done so (isr/sweep.h). On the
// cleanup's thread. For .cc files only, since it needs Asio.
#pragma once

#include "facetheory/base/clock.h"
#include "facetheory/base/task.h"
#include "facetheory/service/cleanup_run.h"

namespace facetheory {

class Sweeping {
 public:
  explicit Sweeping(CleanupRun& run);

  Task<void> sweep_now_and_then();

 private:
  Task<bool> ask_whether_due();
  Task<void> sweep();

  CleanupRun& run_;
  const Duration began_;
  const double jitter_;  // The interval between sweeps is longer by that part of it, up to a tenth.
};

}  // namespace facetheory
