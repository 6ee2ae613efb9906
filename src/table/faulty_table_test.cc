#include "facetheory/table/faulty_table.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/table/memory_table.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using test::run;
using ::testing::HasSubstr;

class FaultyTableTest : public ::testing::Test {
 protected:
  Result<WriteOutcome> put(std::string sk) {
    Write write = Put{Item{{"p", std::move(sk)}, {}}};
    return run(table_.write(std::move(write), Durability::machine));
  }

  // Looks behind the faults.
  bool stored(std::string sk) {
    Key key{"p", std::move(sk)};
    return run(inner_->get(std::move(key), Consistency::strong))->has_value();
  }

  std::shared_ptr<MemoryTable> inner_ = std::make_shared<MemoryTable>();
  std::shared_ptr<FaultScript> script_ = std::make_shared<FaultScript>();
  test::ManualClock clock_;
  FaultyTable table_{inner_, script_, clock_};
};

TEST_F(FaultyTableTest, PassesEverythingOnWhenNothingIsScripted) {
  ASSERT_TRUE(put("a"));
  Query query{.pk = "p"};
  EXPECT_EQ(run(table_.query(std::move(query)))->items.size(), 1U);
  Scan scan;
  EXPECT_EQ(run(table_.scan(scan))->items.size(), 1U);
  EXPECT_TRUE(run(table_.create()));
  EXPECT_EQ(run(table_.describe())->items, 1U);
}

TEST_F(FaultyTableTest, WhatIsRefusedWasNotDone) {
  for (const Fault fault : {Fault::throttle, Fault::fail, Fault::conflict}) {
    script_->queue("write", fault);
    const Result<WriteOutcome> outcome = put("refused");
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::unavailable);
    EXPECT_THAT(outcome.error().message, HasSubstr(std::string(name(fault))));
    EXPECT_FALSE(stored("refused"));
  }
}

TEST_F(FaultyTableTest, ALostRequestAndALostAnswerLookTheSameButAreNot) {
  script_->queue("write", Fault::lose_request);
  EXPECT_EQ(put("request").error().code, ErrorCode::ambiguous);
  EXPECT_FALSE(stored("request"));

  script_->queue("write", Fault::lose_answer);
  EXPECT_EQ(put("answer").error().code, ErrorCode::ambiguous);
  EXPECT_TRUE(stored("answer"));
}

TEST_F(FaultyTableTest, ATransactionWhoseAnswerIsLostIsCommittedWhole) {
  script_->queue("transact", Fault::lose_answer);
  std::vector<TransactItem> items = {Put{Item{{"p", "left"}, {}}}, Put{Item{{"p", "right"}, {}}}};
  EXPECT_EQ(run(table_.transact(std::move(items), "token")).error().code, ErrorCode::ambiguous);
  EXPECT_TRUE(stored("left"));
  EXPECT_TRUE(stored("right"));
}

TEST_F(FaultyTableTest, ADelayLastsAsLongAsTheScriptSays) {
  script_->set_delay(std::chrono::milliseconds(250));
  script_->queue("get", Fault::delay);
  clock_.advance_on_sleep();
  const Duration before = clock_.monotonic();
  Key key{"p", "a"};
  EXPECT_TRUE(run(table_.get(std::move(key), Consistency::strong)));
  EXPECT_EQ(clock_.monotonic() - before, std::chrono::milliseconds(250));
}

TEST_F(FaultyTableTest, OperationsMeetTheFaultsOfTheirOwnName) {
  script_->queue("query", Fault::throttle);
  script_->queue("scan", Fault::throttle);
  EXPECT_TRUE(put("a"));
  Query query{.pk = "p"};
  EXPECT_FALSE(run(table_.query(query)));
  EXPECT_TRUE(run(table_.query(query)));
  Scan scan;
  EXPECT_FALSE(run(table_.scan(scan)));
  EXPECT_TRUE(run(table_.scan(scan)));
}

}  // namespace
}  // namespace facetheory
