#include "facetheory/table/limited_table.h"

#include <future>
#include <memory>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/fault.h"
#include "facetheory/table/faulty_table.h"
#include "facetheory/table/memory_table.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// The calls of its table take an hour where the script says so.
class LimitedTableTest : public testing::Test {
 protected:
  LimitedTableTest() { script_->set_delay(1h); }

  static Item row() { return Item{{"page", "META"}, {{"n", 1}}}; }
  static Write putting() { return Put{row()}; }
  Result<WriteOutcome> write() { return test::run(table_->write(putting(), Durability::machine)); }
  auto write_meanwhile() {
    return std::async(std::launch::async, [this] { return write(); });
  }

  test::ManualClock clock_;
  std::shared_ptr<FaultScript> script_ = std::make_shared<FaultScript>();
  std::shared_ptr<MemoryTable> plain_ = std::make_shared<MemoryTable>();
  TableLimits limits_{.read = 2s, .write = 2s, .pending = std::make_shared<PendingWrites>(2, 1'000)};
  std::unique_ptr<Table> table_ =
      with_limits(std::make_unique<FaultyTable>(plain_, script_, clock_), limits_, test::executor(), clock_);
};

TEST_F(LimitedTableTest, PassesOnWhatComesInTime) {
  ASSERT_TRUE(write());
  const auto found = test::run(table_->get({"page", "META"}, Consistency::strong));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, row());
  const auto none = test::run(table_->get({"page", "LOCK"}, Consistency::strong));
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, std::nullopt);
  EXPECT_EQ(limits_.pending->count(), 0U);
}

TEST_F(LimitedTableTest, ReadThatTakesLongerIsUnavailable) {
  script_->queue("get", Fault::delay);
  auto read = std::async(std::launch::async,
                         [&] { return test::run(table_->get({"page", "META"}, Consistency::strong)); });
  ASSERT_TRUE(clock_.wait_for_sleepers(2));  // The read, and the limit.
  clock_.advance(1999ms);
  EXPECT_EQ(read.wait_for(20ms), std::future_status::timeout);
  clock_.advance(1ms);
  const auto found = read.get();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::unavailable);
  EXPECT_THAT(found.error().message, HasSubstr("within 2000 ms"));
}

TEST_F(LimitedTableTest, WriteThatTakesLongerMayHaveHappenedAndHappensYet) {
  script_->queue("write", Fault::delay);
  auto writing = write_meanwhile();
  ASSERT_TRUE(clock_.wait_for_sleepers(2));
  clock_.advance(2s);
  const auto written = writing.get();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::ambiguous);
  EXPECT_EQ(limits_.pending->count(), 1U);
  clock_.advance(1h);
  for (int turns = 0; turns < 1000 && limits_.pending->count() > 0; ++turns)
    test::run([]() -> Task<void> { co_return; }());
  EXPECT_EQ(limits_.pending->count(), 0U);
  const auto found = test::run(table_->get({"page", "META"}, Consistency::strong));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, row());
}

TEST_F(LimitedTableTest, TransactionThatTakesLongerMayHaveHappened) {
  script_->queue("transact", Fault::delay);
  auto writing = std::async(std::launch::async, [&] {
    std::vector<TransactItem> items;
    items.emplace_back(Put{row()});
    return test::run(table_->transact(std::move(items), "token"));
  });
  ASSERT_TRUE(clock_.wait_for_sleepers(2));
  clock_.advance(2s);
  const auto transacted = writing.get();
  ASSERT_FALSE(transacted);
  EXPECT_EQ(transacted.error().code, ErrorCode::ambiguous);
  clock_.advance(1h);
}

TEST_F(LimitedTableTest, WritesBeyondThoseThatHangAreRefusedAtOnce) {
  script_->queue("write", Fault::delay, 2);
  auto first = write_meanwhile();
  auto second = write_meanwhile();
  ASSERT_TRUE(clock_.wait_for_sleepers(4));
  const auto third = write();
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::unavailable);
  clock_.advance(2s);
  EXPECT_FALSE(first.get());
  EXPECT_FALSE(second.get());
  EXPECT_FALSE(write());  // They still hang.
  clock_.advance(1h);
  for (int turns = 0; turns < 1000 && limits_.pending->count() > 0; ++turns)
    test::run([]() -> Task<void> { co_return; }());
  EXPECT_TRUE(write());
}

}  // namespace
}  // namespace facetheory
