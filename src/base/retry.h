// Decides when a call is repeated, and how long to wait before.
//
// Waits grow exponentially with full jitter. The quota is a bucket shared by all calls of one client: every
// repeat takes from it, success gives back, and when it is empty failures are passed on at once, so that a
// service in trouble is not buried under repeats.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "facetheory/base/clock.h"
#include "facetheory/base/random.h"

namespace facetheory {

struct RetryPolicy {
  int max_attempts = 4;
  std::chrono::milliseconds base_delay{25};
  std::chrono::milliseconds max_delay{5000};
  // An attempt that would begin later than that after the first one is not made; empty: it is.
  std::optional<std::chrono::milliseconds> no_repeat_after = {};
};

// The wait before attempt number `attempt` (2 is the first repeat): uniform in [0, min(max, base * 2^(attempt
// - 2))].
Duration retry_delay(const RetryPolicy& policy, int attempt, Random& random);

// Thread-safe token bucket.
class RetryQuota {
 public:
  explicit RetryQuota(int capacity = 500) : capacity_(capacity), tokens_(capacity) {}

  // Takes the price of one repeat; false: the quota is used up, do not repeat.
  bool take(int price = 5);
  // A call that succeeded gives one token back.
  void give_back(int amount = 1);

 private:
  const int capacity_;
  std::mutex mutex_;
  int tokens_;  // guarded by mutex_
};

// What an answer, or the lack of one, means for repeating the call.
enum class Verdict {
  done,      // The answer is final, good or bad.
  not_done,  // The service says that nothing happened (throttled, conflict, starting up): always safe to
             // repeat.
  unknown,   // It may have happened (5xx, connection lost): safe to repeat only for a repeatable call.
};

enum class Repeatable { no, yes };

}  // namespace facetheory
