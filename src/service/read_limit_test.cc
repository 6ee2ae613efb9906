#include "facetheory/service/read_limit.h"

#include <future>
#include <memory>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/table/memory_table.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Item row() {
  return Item{{"page", "META"}, {{"n", 1}}};
}

// Bodies whose reads wait on a clock of their own.
class SlowBodies final : public BodyStore {
 public:
  explicit SlowBodies(Clock& clock, std::shared_ptr<int> life = {}) : clock_(clock), life_(std::move(life)) {}

 private:
  Task<Result<void>> do_write(std::string, Body) override { co_return Result<void>{}; }
  Task<Result<std::optional<Body>>> do_read(std::string) override {
    co_await clock_.sleep_for(1h);
    co_return std::optional<Body>(Body{"late", {}});
  }
  Task<Result<void>> do_remove(std::string) override { co_return Result<void>{}; }
  Task<Result<BodyPage>> do_list(std::optional<std::string>, std::size_t) override { co_return BodyPage{}; }

  Clock& clock_;
  const std::shared_ptr<int> life_;  // Ends with this store.
};

TEST(ReadLimit, PassesOnWhatComesInTime) {
  test::ManualClock clock;
  auto inner = std::make_unique<MemoryTable>();
  auto table = with_read_limit(std::move(inner), 2s, test::executor(), clock);
  Write write{Put{row()}};
  ASSERT_TRUE(test::run(table->write(std::move(write), Durability::machine)));
  const auto found = test::run(table->get({"page", "META"}, Consistency::strong));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, row());
  const auto none = test::run(table->get({"page", "LOCK"}, Consistency::strong));
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, std::nullopt);
}

TEST(ReadLimit, ReadThatTakesLongerIsUnavailable) {
  test::ManualClock clock;
  auto bodies = with_read_limit(std::make_unique<SlowBodies>(clock), 2s, test::executor(), clock);
  auto read = std::async(std::launch::async, [&] { return test::run(bodies->read("key")); });
  ASSERT_TRUE(clock.wait_for_sleepers(2));  // The read, and the limit.
  clock.advance(1999ms);
  EXPECT_EQ(read.wait_for(20ms), std::future_status::timeout);
  clock.advance(1ms);
  const auto found = read.get();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::unavailable);
  EXPECT_THAT(found.error().message, HasSubstr("within 2000 ms"));
}

TEST(ReadLimit, StoreLivesUntilAReadThatNobodyWaitsForAnyMoreHasEnded) {
  test::ManualClock clock;
  auto life = std::make_shared<int>();
  const std::weak_ptr<int> lives = life;
  auto slow = std::make_unique<SlowBodies>(clock, std::move(life));
  auto bodies = with_read_limit(std::move(slow), 2s, test::executor(), clock);
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
