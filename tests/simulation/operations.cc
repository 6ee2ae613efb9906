#include "tests/simulation/operations.h"

namespace facetheory::simulation {

std::string_view name(Intent intent) {
  constexpr std::string_view kNames[] = {"regenerate", "acquire", "refresh", "release",  "back_off",
                                         "publish",    "claim",   "extend",  "complete", "fail",
                                         "invalidate", "purge",   "mark",    "rollback", "pin",
                                         "unpin",      "read",    "sweep",   "evict"};
  return kNames[static_cast<std::size_t>(intent)];
}

std::string_view name(Report::Kind kind) {
  constexpr std::string_view kNames[] = {"done",        "nothing",     "published",  "acquired", "held",
                                         "lost",        "refused",     "claimed",    "replayed", "mismatch",
                                         "in progress", "failed",      "not stored", "fresh",    "stale",
                                         "missing",     "unavailable", "ambiguous",  "broken"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace facetheory::simulation
