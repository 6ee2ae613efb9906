// EvictionRight: the lease by which one node of the fleet evicts, and no other. On the cleanup's thread. For .cc files
// only, since it needs Asio.
#pragma once

#include <optional>

#include "facetheory/base/clock.h"
#include "facetheory/base/task.h"
#include "facetheory/isr/lease.h"
#include "facetheory/service/cleanup_run.h"

namespace facetheory {

class EvictionRight {
 public:
  explicit EvictionRight(CleanupRun& run) : run_(run) {}

  // Takes it, or makes it last longer. False: another node evicts.
  Task<bool> hold();
  Task<void> let_go();
  bool is_held() const { return lease_.has_value(); }
  Duration held_since() const { return since_; }

 private:
  CleanupRun& run_;
  std::optional<Lease> lease_;
  Duration since_{0}, refreshed_at_{0};
};

}  // namespace facetheory
