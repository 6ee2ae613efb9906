#include "facetheory/table/measured_table.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/table/faulty_table.h"
#include "facetheory/table/memory_table.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using test::run;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

class MeasuredTableTest : public testing::Test {
 protected:
  // "get ok 250ms"
  void observe(std::string_view operation, const Error* failed, Duration took) {
    seen_.push_back(std::string(operation) + (failed == nullptr ? " ok " : " failed ") +
                    std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()) +
                    "ms");
  }
  std::shared_ptr<MemoryTable> memory_ = std::make_shared<MemoryTable>();
  std::shared_ptr<FaultScript> script_ = std::make_shared<FaultScript>();
  test::ManualClock clock_;
  std::vector<std::string> seen_;
  MeasuredTable table_{std::make_shared<FaultyTable>(memory_, script_, clock_),
                       [this](std::string_view operation, const Error* failed, Duration took) {
                         observe(operation, failed, took);
                       },
                       clock_};
};

TEST_F(MeasuredTableTest, TellsOfEachOperationByItsNameAndPassesItOn) {
  EXPECT_TRUE(run(table_.create()));
  Write write = Put{Item{{"p", "a"}, {}}};
  EXPECT_TRUE(run(table_.write(std::move(write), Durability::machine)));
  std::vector<TransactItem> items = {Put{Item{{"p", "b"}, {}}}};
  EXPECT_TRUE(run(table_.transact(std::move(items), "token")));
  EXPECT_TRUE(run(table_.get({"p", "a"}, Consistency::strong))->has_value());
  Query query{.pk = "p"};
  EXPECT_EQ(run(table_.query(std::move(query)))->items.size(), 2U);
  EXPECT_EQ(run(table_.scan({}))->items.size(), 2U);
  EXPECT_EQ(run(table_.describe())->items, 2U);
  EXPECT_THAT(seen_, ElementsAre("create ok 0ms", "write ok 0ms", "transact ok 0ms", "get ok 0ms",
                                 "query ok 0ms", "scan ok 0ms", "describe ok 0ms"));
}

TEST_F(MeasuredTableTest, MeasuresHowLongItTook) {
  script_->set_delay(250ms);
  script_->queue("get", Fault::delay);
  clock_.advance_on_sleep();
  EXPECT_TRUE(run(table_.get({"p", "a"}, Consistency::strong)));
  EXPECT_THAT(seen_, ElementsAre("get ok 250ms"));
}

TEST_F(MeasuredTableTest, AnErrorIsAFailureAndAFailedConditionIsNot) {
  script_->queue("get", Fault::fail);
  EXPECT_EQ(run(table_.get({"p", "a"}, Consistency::strong)).error().code, ErrorCode::unavailable);
  Write write = Delete{.key = {"p", "a"}, .condition = attr("x").exists()};
  EXPECT_TRUE(
      std::holds_alternative<ConditionFailed>(*run(table_.write(std::move(write), Durability::machine))));
  EXPECT_THAT(seen_, ElementsAre("get failed 0ms", "write ok 0ms"));
}

TEST_F(MeasuredTableTest, WhatIsRefusedBeforehandIsNotMeasured) {
  EXPECT_EQ(run(table_.get({"", ""}, Consistency::strong)).error().code, ErrorCode::invalid);
  EXPECT_THAT(seen_, IsEmpty());
}

// It throws as an operation that is cancelled does.
class ThrowingTable final : public Table {
 public:
  Task<Result<void>> create() override {
    throw std::runtime_error("cancelled");
    co_return Result<void>();
  }
  Task<Result<TableDescription>> describe() override { co_return TableDescription{}; }

 private:
  Task<Result<std::optional<Item>>> do_get(Key, Consistency) override { co_return std::optional<Item>(); }
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys, Consistency) override {
    co_return std::vector<std::optional<Item>>(keys.size());
  }
  Task<Result<WriteOutcome>> do_write(Write, Durability) override { co_return WriteOutcome(Written{}); }
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem>, std::string) override {
    co_return TransactOutcome(Committed{});
  }
  Task<Result<QueryPage>> do_query(Query) override { co_return QueryPage{}; }
  Task<Result<ScanPage>> do_scan(Scan) override { co_return ScanPage{}; }
};

TEST_F(MeasuredTableTest, AnOperationThatIsCancelledHasFailed) {
  MeasuredTable table(
      std::make_shared<ThrowingTable>(),
      [this](std::string_view operation, const Error* failed, Duration took) {
        observe(operation, failed, took);
      },
      clock_);
  EXPECT_THROW((void)run(table.create()), std::runtime_error);
  EXPECT_THAT(seen_, ElementsAre("create failed 0ms"));
}

}  // namespace
}  // namespace facetheory
