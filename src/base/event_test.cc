#include "facetheory/base/event.h"

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/system/system_error.hpp>
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

// The machine's clock waits in a way of its own.
TEST(Event, WakesWhoWaitsByTheMachinesClock) {
  for (int i = 0; i < 200; ++i) {
    Event event;
    std::optional<bool> outcome;
    auto ended = test::start(test::store(event.wait(system_clock(), 10s), outcome));
    // Before the wait has begun, while it begins, and afterwards.
    if (i % 4 != 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 40));
    event.set();
    ended.get();
    EXPECT_EQ(outcome, true);
  }
}

TEST(Event, IsGivenUpAfterTheLimitByTheMachinesClock) {
  Event event;
  const auto began = system_clock().monotonic();
  EXPECT_FALSE(test::run(event.wait(system_clock(), 20ms)));
  EXPECT_GE(system_clock().monotonic() - began, 20ms);
}

// Says what became of the wait; the other branch wins at once.
Task<void> interrupt(Event& event, Clock& clock, std::string& outcome) {
  using namespace boost::asio::experimental::awaitable_operators;
  const auto waiting = [&]() -> Task<void> {
    try {
      outcome = co_await event.wait(clock, 10s) ? "happened" : "too late";
    } catch (const boost::system::system_error& error) {
      outcome = error.code() == boost::asio::error::operation_aborted ? "cancelled" : error.what();
    }
  };
  Task<void> first = waiting();
  Task<void> second = system_clock().sleep_for(1ms);
  co_await (std::move(first) || std::move(second));
}

TEST(Event, WaitThatIsCancelledIsNotTakenForOneThatWasTooLate) {
  test::ManualClock clock;
  Event event;
  for (Clock* one : {static_cast<Clock*>(&clock), &system_clock()}) {
    std::string outcome;
    test::run(interrupt(event, *one, outcome));
    EXPECT_EQ(outcome, "cancelled");
  }
}

}  // namespace
}  // namespace facetheory
