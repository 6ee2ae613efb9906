#include "facetheory/bodies/limited_bodies.h"

#include <future>
#include <memory>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Bodies whose reads and writes wait on a clock of their own.
class SlowBodies final : public BodyStore {
 public:
  explicit SlowBodies(Clock& clock, std::shared_ptr<int> life = {}) : clock_(clock), life_(std::move(life)) {}

 private:
  Task<Result<void>> do_write(std::string, Body) override {
    co_await clock_.sleep_for(1h);
    co_return Result<void>{};
  }
  Task<Result<std::optional<Body>>> do_read(std::string) override {
    co_await clock_.sleep_for(1h);
    co_return std::optional<Body>(Body{"late", {}});
  }
  Task<Result<void>> do_remove(std::string) override { co_return Result<void>{}; }
  Task<Result<BodyPage>> do_list(std::optional<std::string>, std::size_t) override { co_return BodyPage{}; }

  Clock& clock_;
  const std::shared_ptr<int> life_;  // Ends with this store.
};

BodyLimits limits() {
  return {.read = 2s, .write = 3s};
}

TEST(LimitedBodies, ReadThatTakesLongerIsUnavailable) {
  test::ManualClock clock;
  auto bodies = with_limits(std::make_unique<SlowBodies>(clock), limits(), test::executor(), clock);
  auto read = std::async(std::launch::async, [&] { return test::run(bodies->read("key")); });
  ASSERT_TRUE(clock.wait_for_sleepers(2));  // The read, and the limit.
  clock.advance(1999ms);
  EXPECT_EQ(read.wait_for(20ms), std::future_status::timeout);
  clock.advance(1ms);
  const auto found = read.get();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::unavailable);
  EXPECT_THAT(found.error().message, HasSubstr("within 2000 ms"));
  clock.advance(1h);
}

TEST(LimitedBodies, WriteThatTakesLongerMayHaveHappened) {
  test::ManualClock clock;
  auto bodies = with_limits(std::make_unique<SlowBodies>(clock), limits(), test::executor(), clock);
  auto writing = std::async(std::launch::async, [&] {
    Body body{"small", {}};
    return test::run(bodies->write("key", std::move(body)));
  });
  ASSERT_TRUE(clock.wait_for_sleepers(2));
  clock.advance(2999ms);
  EXPECT_EQ(writing.wait_for(20ms), std::future_status::timeout);
  clock.advance(1ms);
  const auto written = writing.get();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::ambiguous);
  clock.advance(1h);
}

TEST(LimitedBodies, LargeOneIsGivenMoreTime) {
  test::ManualClock clock;
  auto bodies = with_limits(std::make_unique<SlowBodies>(clock), limits(), test::executor(), clock);
  auto writing = std::async(std::launch::async, [&] {
    Body body{std::string(2 * BodyLimits::kBytesASecond, 'x'), {}};
    return test::run(bodies->write("key", std::move(body)));
  });
  ASSERT_TRUE(clock.wait_for_sleepers(2));
  clock.advance(4999ms);
  EXPECT_EQ(writing.wait_for(20ms), std::future_status::timeout);
  clock.advance(1ms);
  EXPECT_FALSE(writing.get());
  clock.advance(1h);
}

TEST(LimitedBodies, SoManyBytesWaitToBeWrittenAndNoMore) {
  test::ManualClock clock;
  BodyLimits few = limits();
  few.pending = std::make_shared<PendingWrites>(10, 100);
  auto bodies = with_limits(std::make_unique<SlowBodies>(clock), few, test::executor(), clock);
  const auto write = [&](std::string key, std::size_t bytes) {
    Body body{std::string(bytes, 'x'), {}};
    return test::run(bodies->write(std::move(key), std::move(body)));
  };
  auto first = std::async(std::launch::async, [&] { return write("first", 60); });
  ASSERT_TRUE(clock.wait_for_sleepers(2));
  const auto second = write("second", 41);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::unavailable);
  EXPECT_EQ(few.pending->bytes(), 60U);
  clock.advance(3s);
  EXPECT_FALSE(first.get());
  EXPECT_EQ(few.pending->count(), 1U);  // It still hangs.
  clock.advance(1h);
}

TEST(LimitedBodies, StoreLivesUntilAReadThatNobodyWaitsForAnyMoreHasEnded) {
  test::ManualClock clock;
  auto life = std::make_shared<int>();
  const std::weak_ptr<int> lives = life;
  auto slow = std::make_unique<SlowBodies>(clock, std::move(life));
  auto bodies = with_limits(std::move(slow), limits(), test::executor(), clock);
  auto read = std::async(std::launch::async, [&] { return test::run(bodies->read("key")); });
  ASSERT_TRUE(clock.wait_for_sleepers(2));
  clock.advance(2s);
  EXPECT_FALSE(read.get());
  bodies.reset();
  EXPECT_FALSE(lives.expired());
  clock.advance(1h);
  for (int turns = 0; turns < 1000 && !lives.expired(); ++turns)
    test::run([]() -> Task<void> { co_return; }());
  EXPECT_TRUE(lives.expired());
}

}  // namespace
}  // namespace facetheory
