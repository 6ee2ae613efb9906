// ShortageWarnings: tells the operator that there is no room: once, not for every page; again if it is still so after a
// while. On the cleanup's thread. For .cc files only, since it needs Asio.
#pragma once

#include <cstdint>
#include <optional>

#include "facetheory/base/clock.h"
#include "facetheory/service/cleanup_run.h"

namespace facetheory {

class ShortageWarnings {
 public:
  explicit ShortageWarnings(CleanupRun& run) : run_(run) {}

  // What the budget says now, and how many pages should go.
  void tell(std::uint64_t pages_wanted);
  // Nothing can be evicted, since pages are from before table and bodies knew each other.
  void tell_of_pages_from_before();

 private:
  bool begin_telling(std::optional<Duration>& told_at);  // False: it was told not long ago.

  CleanupRun& run_;
  std::optional<Duration> told_evicting_, told_refusing_, told_from_before_;
  std::uint64_t refused_before_ = 0;
  std::uint64_t refused_as_full_before_ = 0;
};

}  // namespace facetheory
