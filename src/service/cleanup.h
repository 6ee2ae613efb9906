// Cleanup: what a gateway removes by itself, on a thread of its own, behind everything that serves.
//
// Three things go on at once. Bodies that a publish has released go after a short while (released_bodies.h), and sooner
// where the disk is short of room. When the budget of disk or pages is used up all the same, one node of the fleet
// evicts the pages that are least wanted there (evict.h). And every few hours one node sweeps the whole table
// (sweep.h), which finds what the other two have forgotten. Nothing is removed unless table and bodies belong together
// (partners.h). For .cc files only, since it needs Asio.
#pragma once

#include <chrono>
#include <memory>

#include "facetheory/metrics/metrics.h"
#include "facetheory/service/cleanup_parts.h"

namespace facetheory {

// Begins when it is made. What the parts refer to outlives it. snapshot() may be called from any thread.
class Cleanup {
 public:
  explicit Cleanup(CleanupParts parts);
  ~Cleanup();  // Stops, and waits for what is under way.

  // Ends what is under way at its next step. True: nothing is removed any more. False: a store takes longer than that
  // to answer.
  bool stop(std::chrono::steady_clock::time_point deadline);

  CleanupSnapshot snapshot() const;

 private:
  class State;
  const std::unique_ptr<State> state_;
};

}  // namespace facetheory
