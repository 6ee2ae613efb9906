#include "facetheory/base/retry.h"

#include <algorithm>

namespace facetheory {

Duration retry_delay(const RetryPolicy& policy, int attempt, Random& random) {
  Duration ceiling = policy.base_delay;
  for (int i = 2; i < attempt && ceiling < policy.max_delay; ++i)
    ceiling *= 2;
  ceiling = std::clamp<Duration>(ceiling, Duration(0), policy.max_delay);
  return Duration(
      static_cast<Duration::rep>(uniform(random, static_cast<std::uint64_t>(ceiling.count()) + 1)));
}

bool RetryQuota::take(int price) {
  const std::lock_guard lock(mutex_);
  if (tokens_ < price) return false;
  tokens_ -= price;
  return true;
}

void RetryQuota::give_back(int amount) {
  const std::lock_guard lock(mutex_);
  tokens_ = std::min(capacity_, tokens_ + amount);
}

}  // namespace facetheory
