// PageCount: how many pages there are, where their number is limited.
//
// A process knows what it has added and evicted itself. What others have, and which pages were purged or never
// published, a count shows: at the start, now and then, and more often near the limit. An embedded table also tells
// whether anything has changed. Where machines share the table, one of them counts for all.
//
// On the cleanup's thread. For .cc files only, since it needs Asio.
#pragma once

#include <cstdint>
#include <optional>

#include "facetheory/base/clock.h"
#include "facetheory/base/task.h"
#include "facetheory/service/cleanup_run.h"
#include "facetheory/service/eviction_right.h"

namespace facetheory {

class PageCount {
 public:
  PageCount(CleanupRun& run, EvictionRight& right) : run_(run), right_(right) {}

  bool is_due() const;
  Task<void> count();
  // Takes over the count that the node which evicts has noted, if it is news.
  Task<void> learn();
  std::optional<Duration> counted_at() const { return counted_at_; }

 private:
  Task<bool> is_ours_to_count();
  Duration lasts() const;  // For how long a count is good enough.

  CleanupRun& run_;
  EvictionRight& right_;
  std::optional<Duration> counted_at_;  // When the last count began.
  Duration took_{0};
  Duration look_again_at_{0};             // Another node counts, or has counted.
  std::int64_t counted_time_ = 0;         // When it began by the clock, which notes are compared with.
  std::optional<std::uint64_t> version_;  // The table's, then.
};

}  // namespace facetheory
