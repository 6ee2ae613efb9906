#include "facetheory/cache/circuit_breaker.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

using namespace std::chrono_literals;

TEST(CircuitBreaker, LetsEverybodyThroughUntilTheLimit) {
  CircuitBreaker breaker(3, 1s);
  breaker.failed(0s);
  breaker.failed(0s);
  EXPECT_TRUE(breaker.let_through(0s));
  EXPECT_TRUE(breaker.let_through(0s));
  breaker.failed(0s);
  EXPECT_TRUE(breaker.is_open());
  EXPECT_FALSE(breaker.let_through(0s));
}

TEST(CircuitBreaker, LetsOneProbeThroughPerPause) {
  CircuitBreaker breaker(1, 1s);
  breaker.failed(10s);
  EXPECT_TRUE(breaker.rests(10s + 999ms));
  EXPECT_FALSE(breaker.rests(11s));  // Asking so makes no probe.
  EXPECT_FALSE(breaker.let_through(10s + 999ms));
  EXPECT_TRUE(breaker.let_through(11s));
  EXPECT_FALSE(breaker.let_through(11s));
  EXPECT_FALSE(breaker.let_through(11s + 999ms));
  EXPECT_TRUE(breaker.let_through(12s));
}

TEST(CircuitBreaker, ClosesWithTheFirstSuccess) {
  CircuitBreaker breaker(2, 1s);
  breaker.failed(0s);
  breaker.failed(0s);
  breaker.succeeded();
  EXPECT_TRUE(breaker.let_through(0s));
  breaker.failed(0s);
  EXPECT_TRUE(breaker.let_through(0s));  // Failures count in a row.
}

}  // namespace
}  // namespace facetheory
