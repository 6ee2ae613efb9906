#include "facetheory/service/partner_watch.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/fault.h"
#include "facetheory/base/loop_thread.h"
#include "facetheory/bodies/faulty_bodies.h"
#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/table/memory_table.h"

#include "tests/support/run.h"

namespace facetheory {
namespace {

using std::chrono::milliseconds;

Body some_page() {
  Body body;
  body.bytes = "<h1>page</h1>";
  return body;
}

class PartnerWatchTest : public testing::Test {
 protected:
  std::unique_ptr<PartnerWatch> watch(Table& table, BodyStore& bodies) {
    return std::make_unique<PartnerWatch>(loop_.executor(), table, bodies,
                                          StoreNames{"our table", "our bodies"}, milliseconds(10));
  }
  // A store that belongs to another table.
  std::shared_ptr<MemoryBodies> somebody_elses() {
    auto bodies = std::make_shared<MemoryBodies>();
    const Isr isr{other_table_, *bodies};
    EXPECT_TRUE(test::run(settle_partners(isr)).may_delete());
    return bodies;
  }
  // Looks until that is what they are.
  static bool becomes(PartnerWatch& watch, Partnership partnership) {
    for (int i = 0; i < 1500; ++i) {
      watch.check_again();
      if (watch.last().partnership == partnership) return true;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return false;
  }

  LoopThread loop_{"watching"};
  MemoryTable table_;
  MemoryTable other_table_;
};

TEST_F(PartnerWatchTest, FreshStoresArePartnersAtOnceAndMayBeChanged) {
  MemoryBodies bodies;
  const auto watching = watch(table_, bodies);
  EXPECT_TRUE(watching->check_first(milliseconds(5000)));
  EXPECT_TRUE(watching->last().may_delete());
  const auto guarded = watching->guard(std::make_unique<MemoryBodies>());
  EXPECT_TRUE(test::run(guarded->write("a/b", some_page())));
  EXPECT_TRUE(test::run(guarded->remove("a/b")));
}

TEST_F(PartnerWatchTest, StrangersAreRefusedAtTheStart) {
  const auto theirs = somebody_elses();
  const auto watching = watch(table_, *theirs);
  const auto checked = watching->check_first(milliseconds(5000));
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::invalid);
  EXPECT_THAT(checked.error().message,
              testing::AllOf(testing::HasSubstr("our table"), testing::HasSubstr("our bodies")));
}

TEST_F(PartnerWatchTest, OutageIsNoReasonNotToStartAndWhatTurnsOutToBeAStrangersIsNotChanged) {
  const auto theirs = somebody_elses();
  auto script = std::make_shared<FaultScript>();
  script->chance(Fault::fail, 1);
  FaultyBodies away(theirs, script, system_clock());
  const auto watching = watch(table_, away);
  const auto guarded = watching->guard(std::make_unique<MemoryBodies>());
  EXPECT_TRUE(watching->check_first(milliseconds(5000)));
  EXPECT_EQ(watching->last().partnership, Partnership::unknown);
  EXPECT_FALSE(watching->last().may_delete());
  EXPECT_TRUE(test::run(guarded->write("a/b", some_page())));
  script->clear();
  ASSERT_TRUE(becomes(*watching, Partnership::stranger));
  EXPECT_EQ(test::run(guarded->write("a/c", some_page())).error().code, ErrorCode::invalid);
  EXPECT_EQ(test::run(guarded->remove("a/b")).error().code, ErrorCode::invalid);
  EXPECT_TRUE(test::run(guarded->read("a/b"))->has_value());
  EXPECT_EQ(test::run(guarded->list(std::nullopt, 10))->entries.size(), 1U);
}

TEST_F(PartnerWatchTest, BodiesThatAnotherTableAdoptsAreLeftAloneFromThenOn) {
  MemoryBodies bodies;
  const auto watching = watch(table_, bodies);
  ASSERT_TRUE(watching->check_first(milliseconds(5000)));
  const auto guarded = watching->guard(std::make_unique<MemoryBodies>());
  const Isr other{other_table_, bodies};
  ASSERT_TRUE(test::run(adopt_bodies(other)));
  EXPECT_TRUE(becomes(*watching, Partnership::stranger));
  EXPECT_EQ(test::run(guarded->write("a/b", some_page())).error().code, ErrorCode::invalid);
}

TEST_F(PartnerWatchTest, OutageDoesNotMakePartnersUnknownToEachOther) {
  auto bodies = std::make_shared<MemoryBodies>();
  auto script = std::make_shared<FaultScript>();
  FaultyBodies away(bodies, script, system_clock());
  const auto watching = watch(table_, away);
  ASSERT_TRUE(watching->check_first(milliseconds(5000)));
  script->chance(Fault::fail, 1);
  for (int i = 0; i < 1500 && script->applied(Fault::fail) < 8; ++i) {
    watching->check_again();
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_GE(script->applied(Fault::fail), 8);
  EXPECT_TRUE(watching->last().may_delete());
}

}  // namespace
}  // namespace facetheory
