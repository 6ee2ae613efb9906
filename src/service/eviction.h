// Eviction: makes pages go that are least wanted when the budget of disk or pages is used up (isr/evict.h). On the
// cleanup's thread. For .cc files only, since it needs Asio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/task.h"
#include "facetheory/service/cleanup_run.h"
#include "facetheory/service/eviction_right.h"
#include "facetheory/service/page_count.h"
#include "facetheory/service/released_removal.h"
#include "facetheory/service/shortage_warnings.h"
#include "facetheory/table/item.h"

namespace facetheory {

// Bodies of evicted pages, until those are over who have read a pointer to them.
class EvictedBodies {
 public:
  explicit EvictedBodies(CleanupRun& run) : run_(run) {}

  void add(std::vector<std::string> keys);
  Task<void> remove_due();
  std::size_t waiting() const { return waiting_; }
  bool empty() const { return batches_.empty(); }

 private:
  struct Batch {
    std::vector<std::string> keys;
    Duration due{0};  // Monotonic.
  };

  CleanupRun& run_;
  std::deque<Batch> batches_;
  std::size_t waiting_ = 0;
};

// Evicts the pages that are least wanted when the budget of disk or pages is used up.
class Eviction {
 public:
  Eviction(CleanupRun& run, ReleasedRemoval& released) : run_(run), released_(released) {}

  Task<void> keep_within_budget();

 private:
  Task<void> measure();
  std::uint64_t pages_wanted() const;
  Task<bool> evict_alone();
  Task<bool> evict();  // Whether there may be more to do at once.
  void end_round();

  CleanupRun& run_;
  ReleasedRemoval& released_;
  EvictionRight right_{run_};
  PageCount count_{run_, right_};
  EvictedBodies bodies_{run_};
  ShortageWarnings warnings_{run_};

  std::optional<Key> hand_;  // Where the next sample of pages begins.
  std::uint64_t gone_in_this_round_ = 0;
  std::uint64_t from_before_in_this_round_ = 0;
  bool desperate_ = false;
  Duration evict_again_at_{0};
  Duration rest_{0};  // The last one, of rounds in vain.
  Duration wanted_at_{0};
  std::uint64_t items_ = 0;  // The table's, as it last told.
};

}  // namespace facetheory
