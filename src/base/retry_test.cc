#include "facetheory/base/retry.h"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

using namespace std::chrono_literals;

constexpr RetryPolicy kPolicy{4, 25ms, 5000ms};

TEST(RetryDelay, IsSpreadOverTheWholeRangeThatDoublesWithEveryAttempt) {
  SeededRandom random(7);
  for (const auto& [attempt, ceiling] : std::vector<std::pair<int, std::chrono::milliseconds>>{
           {2, 25ms}, {3, 50ms}, {4, 100ms}, {9, 3200ms}, {10, 5000ms}, {11, 5000ms}, {1000000, 5000ms}}) {
    std::vector<Duration> delays;
    for (int i = 0; i < 1000; ++i)
      delays.push_back(retry_delay(kPolicy, attempt, random));
    const auto [low, high] = std::minmax_element(delays.begin(), delays.end());
    EXPECT_GE(*low, 0ns) << attempt;
    EXPECT_LE(*high, ceiling) << attempt;
    EXPECT_LT(*low, Duration(ceiling) / 50) << attempt;
    EXPECT_GT(*high, Duration(ceiling) * 49 / 50) << attempt;
    EXPECT_GT(std::set<Duration>(delays.begin(), delays.end()).size(), 900U) << attempt;
  }
}

TEST(RetryDelay, IsTheSameForTheSameSeed) {
  SeededRandom a(1), b(1), c(2);
  const Duration first = retry_delay(kPolicy, 5, a);
  EXPECT_EQ(first, retry_delay(kPolicy, 5, b));
  EXPECT_NE(first, retry_delay(kPolicy, 5, c));
}

TEST(RetryDelay, MayBeTurnedOff) {
  SeededRandom random(1);
  EXPECT_EQ(retry_delay({4, 0ms, 5000ms}, 4, random), 0ns);
  EXPECT_EQ(retry_delay({4, 25ms, 0ms}, 4, random), 0ns);
}

TEST(RetryQuota, RunsOutAndIsRefilledBySuccess) {
  RetryQuota quota(12);
  EXPECT_TRUE(quota.take());
  EXPECT_TRUE(quota.take());
  EXPECT_FALSE(quota.take());
  quota.give_back();
  quota.give_back();
  EXPECT_FALSE(quota.take());
  quota.give_back();
  EXPECT_TRUE(quota.take());
  EXPECT_FALSE(quota.take());
}

TEST(RetryQuota, NeverHoldsMoreThanItsCapacity) {
  RetryQuota quota(5);
  for (int i = 0; i < 100; ++i)
    quota.give_back();
  EXPECT_TRUE(quota.take());
  EXPECT_FALSE(quota.take());
}

TEST(RetryQuota, CountsExactlyFromManyThreads) {
  RetryQuota quota(1000);
  std::vector<int> taken(4, 0);
  std::vector<std::thread> threads;
  for (int& count : taken) {
    threads.emplace_back([&quota, &count] {
      for (int i = 0; i < 400; ++i)
        count += quota.take(1) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(taken[0] + taken[1] + taken[2] + taken[3], 1000);
}

}  // namespace
}  // namespace facetheory
