#include "facetheory/cache/circuit_breaker.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

using namespace std::chrono_literals;

TEST(CircuitBreaker, LetsEverybodyThroughUntilTheLimit) {
  CircuitBreaker breaker(3, 1s);
  breaker.failed(0s);
  breaker.failed(0s);
  EXPECT_TRUE(breaker.allows(0s));
  EXPECT_TRUE(breaker.allows(0s));
  breaker.failed(0s);
  EXPECT_TRUE(breaker.is_open());
  EXPECT_FALSE(breaker.allows(0s));
}

TEST(CircuitBreaker, LetsOneProbeThroughPerPause) {
  CircuitBreaker breaker(1, 1s);
  breaker.failed(10s);
  EXPECT_TRUE(breaker.rests(10s + 999ms));
  EXPECT_FALSE(breaker.rests(11s));  // Asking so makes no probe.
  EXPECT_FALSE(breaker.allows(10s + 999ms));
  EXPECT_TRUE(breaker.allows(11s));
  EXPECT_FALSE(breaker.allows(11s));
  EXPECT_FALSE(breaker.allows(11s + 999ms));
  EXPECT_TRUE(breaker.allows(12s));
}

TEST(CircuitBreaker, ClosesWithTheFirstSuccess) {
  CircuitBreaker breaker(2, 1s);
  breaker.failed(0s);
  breaker.failed(0s);
  breaker.succeeded();
  EXPECT_TRUE(breaker.allows(0s));
  breaker.failed(0s);
  EXPECT_TRUE(breaker.allows(0s));  // Failures count in a row.
}

}  // namespace
}  // namespace facetheory
