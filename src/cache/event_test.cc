#include "facetheory/cache/event.h"

#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;

TEST(Event, ThatHasHappenedLetsEverybodyThroughAtOnce) {
  test::ManualClock clock;
  Event event;
  event.set();
  EXPECT_TRUE(test::run(event.wait(clock, 0s)));
  EXPECT_TRUE(test::run(event.wait(clock, 10s)));
}

TEST(Event, WakesAllWhoWait) {
  test::ManualClock clock;
  Event event;
  std::optional<bool> first, second;
  auto one = test::start(test::store(event.wait(clock, 10s), first));
  auto two = test::start(test::store(event.wait(clock, 10s), second));
  ASSERT_TRUE(clock.wait_for_sleepers(2));
  event.set();
  one.get();
  two.get();
  EXPECT_EQ(first, true);
  EXPECT_EQ(second, true);
}

TEST(Event, ThatDoesNotHappenIsGivenUpAfterTheLimit) {
  test::ManualClock clock;
  Event event;
  EXPECT_FALSE(test::run(event.wait(clock, 0s)));
  std::optional<bool> outcome;
  auto ended = test::start(test::store(event.wait(clock, 10s), outcome));
  ASSERT_TRUE(clock.wait_for_sleepers(1));
  clock.advance(10s);
  ended.get();
  EXPECT_EQ(outcome, false);
  event.set();  // Nobody is left to wake.
}

}  // namespace
}  // namespace facetheory
