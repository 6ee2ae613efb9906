#include "facetheory/base/clock.h"

#include <exception>
#include <thread>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;

TEST(Clock, TellsTheTimeOfDay) {
  const auto before = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const WallTime now = system_clock().now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, std::chrono::system_clock::now());
}

TEST(Clock, MonotonicTimeNeverGoesBack) {
  Duration last = system_clock().monotonic();
  for (int i = 0; i < 1000; ++i) {
    const Duration now = system_clock().monotonic();
    ASSERT_LE(last, now);
    last = now;
  }
}

TEST(Clock, SleepsAtLeastAsLongAsAsked) {
  const Duration before = system_clock().monotonic();
  test::run(system_clock().sleep_for(20ms));
  EXPECT_GE(system_clock().monotonic() - before, 20ms);
}

TEST(Clock, ASleepOfNoTimeEnds) {
  test::run(system_clock().sleep_for(0ns));
  test::run(system_clock().sleep_for(-1s));
}

Task<void> sleep_and_note_the_thread(std::thread::id& thread) {
  co_await system_clock().sleep_for(1ms);
  thread = std::this_thread::get_id();
}

TEST(Clock, WakesTheSleeperOnItsOwnExecutor) {
  boost::asio::io_context context;
  std::thread::id woken;
  boost::asio::co_spawn(context, sleep_and_note_the_thread(woken), [](const std::exception_ptr&) {});
  context.run();
  EXPECT_EQ(woken, std::this_thread::get_id());
}

TEST(Clock, ACancelledSleepThrowsOperationAborted) {
  boost::asio::io_context context;
  boost::asio::cancellation_signal cancel;
  std::exception_ptr thrown;
  boost::asio::co_spawn(
      context, system_clock().sleep_for(1h),
      boost::asio::bind_cancellation_slot(cancel.slot(), [&](const std::exception_ptr& e) { thrown = e; }));
  boost::asio::post(context, [&] { cancel.emit(boost::asio::cancellation_type::terminal); });
  context.run_for(10s);
  ASSERT_NE(thrown, nullptr);
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& error) {
    EXPECT_EQ(error.code(), boost::asio::error::operation_aborted);
  }
}

TEST(EpochSeconds, RoundsDownOnBothSidesOf1970) {
  EXPECT_EQ(epoch_seconds(WallTime(1999ms)), 1);
  EXPECT_EQ(epoch_seconds(WallTime(2000ms)), 2);
  EXPECT_EQ(epoch_seconds(WallTime(-1ms)), -1);
}

}  // namespace
}  // namespace facetheory
