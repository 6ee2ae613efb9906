// Stores whose writes hang or fail while reads answer: what is there is served as ever, and whoever asks for a new page
// gets it in time.
#include <memory>
#include <string>

#include "facetheory/bodies/limited_bodies.h"
#include "facetheory/cache/engine.h"
#include "facetheory/table/limited_table.h"

#include "tests/support/engine_fixture.h"

namespace facetheory {
namespace {

using namespace test;

class EngineWritesTest : public EngineFixture {
 protected:
  EngineWritesTest() {
    EXPECT_EQ(serving(*engine_, {.page = *page_of("/known")}, renderer()), "miss: page 1");
    faults_->set_delay(1h);
  }
  ~EngineWritesTest() override {
    gate_.set();
    faults_->clear();
    of_bodies_->clear();
    // What was given up ends, too, before the clock is gone.
    EXPECT_TRUE(pass_until([&] { return pending() == 0; }));
    run(node_->drain());
  }

  void table_writes_hang() {
    faults_->queue("write", Fault::delay, 1'000);
    faults_->queue("transact", Fault::delay, 1'000);
  }
  std::size_t pending() {
    clock_.advance(1h);
    return table_limits_.pending->count() + body_limits_.pending->count();
  }

  static ServeRequest page(const std::string& path, PagePolicy policy = {}) {
    return {.page = *page_of(path), .policy = policy};
  }
  // One who asks for a page that nobody knows, and waits for that long.
  std::string waiting_for(const std::string& path, Duration patience, PagePolicy policy = {}) {
    Asked asked = ask(*node_, page(path, policy), renderer());
    EXPECT_TRUE(eventually([&] { return clock_.sleepers() > 0; }));
    for (Duration passed{0}; passed < patience; passed += 50ms) {
      EXPECT_FALSE(asked.is_answered()) << "before " << patience.count() << " ns, after " << passed.count();
      if (asked.is_answered()) break;
      clock_.advance(50ms);
      run(system_clock().sleep_for(2ms));
    }
    // A little more: what waits may have begun to after the first step.
    for (int i = 0; i < 10 && !asked.is_answered(); ++i) {
      clock_.advance(50ms);
      run(system_clock().sleep_for(10ms));
    }
    EXPECT_TRUE(asked.is_answered());
    pass_until([&] { return asked.is_answered(); });
    return asked.get();
  }
  void table_is_left_alone() {
    table_writes_hang();
    EXPECT_EQ(waiting_for("/first", 2s), "uncached: page 2");
    EXPECT_FALSE(node_->table_writes_rest());
    EXPECT_EQ(waiting_for("/second", 2s), "uncached: page 3");
    EXPECT_TRUE(node_->table_writes_rest());
  }
  void time_passes(Duration duration) {
    for (Duration passed{0}; passed < duration; passed += 50ms) {
      clock_.advance(50ms);
      run(system_clock().sleep_for(2ms));
    }
  }

  std::shared_ptr<FaultScript> faults_ = std::make_shared<FaultScript>();
  TableLimits table_limits_{.read = {}, .write = 2s};
  BodyLimits body_limits_{.read = {}, .write = 3s};
  std::unique_ptr<Table> limited_table_ = with_limits(
      std::make_unique<FaultyTable>(plain_table_, faults_, clock_), table_limits_, executor(), clock_);
  std::shared_ptr<FaultScript> of_bodies_ = std::make_shared<FaultScript>();
  std::unique_ptr<BodyStore> limited_bodies_ = with_limits(
      std::make_unique<FaultyBodies>(plain_bodies_, of_bodies_, clock_), body_limits_, executor(), clock_);
  Isr node_isr_{*limited_table_, *limited_bodies_, clock_, random_, {}};
  std::unique_ptr<Engine> node_ = std::make_unique<Engine>(executor(), node_isr_);
};

TEST_F(EngineWritesTest, WhoAsksForANewPageWaitsNoLongerThanAWriteMayTakeAndAfterTwoOfThemNotAtAll) {
  table_is_left_alone();
  EXPECT_EQ(serving(*node_, page("/third"), renderer()), "uncached: page 4");
  EXPECT_TRUE(node_->gauges().table_writes_down);
  EXPECT_FALSE(node_->gauges().table_down);
  EXPECT_EQ(node_->gauges().flights, 0U);
}

TEST_F(EngineWritesTest, WhatTheTableHasIsServedAsEver) {
  table_is_left_alone();
  EXPECT_EQ(serving(*node_, page("/known"), renderer()), "hit: page 1");
  clock_.advance(60s);
  EXPECT_EQ(serving(*node_, page("/known"), renderer()), "stale: page 1");
  EXPECT_EQ(serving(*node_, page("/known", {.mode = ServeMode::blocking}), renderer()), "stale: page 1");
  EXPECT_EQ(node_->gauges().flights, 0U);
  EXPECT_EQ(renders_, 3);
}

TEST_F(EngineWritesTest, WhoHasLessPatienceThanAWriteMayTakeIsRenderedForAllTheSame) {
  table_writes_hang();
  EXPECT_EQ(waiting_for("/first", 1s, {.wait_limit = 1s}), "uncached: page 2");
  time_passes(2s);
  EXPECT_EQ(renders_, 2);  // And not once more by the flight.
}

TEST_F(EngineWritesTest, ATableThatIsWrittenAgainIsUsedAgainWithoutAVisitorWhoWaits) {
  table_is_left_alone();
  faults_->clear();
  node_->try_writing_again();
  EXPECT_TRUE(node_->table_writes_rest());  // Not yet: it is left alone for a second.
  clock_.advance(1s);
  node_->try_writing_again();
  EXPECT_TRUE(eventually([&] { return !node_->table_writes_rest(); }));
  EXPECT_EQ(serving(*node_, page("/third"), renderer()), "miss: page 4");
}

TEST_F(EngineWritesTest, ATryThatHangsLeavesTheTableAlone) {
  table_is_left_alone();
  clock_.advance(1s);
  node_->try_writing_again();
  time_passes(2s);
  EXPECT_TRUE(node_->table_writes_rest());
  EXPECT_THAT(node_->table_writes_rest()->message,
              testing::HasSubstr("did not acknowledge a write within 2000 ms"));
}

TEST_F(EngineWritesTest, ARequestHasItTriedAgainToo) {
  table_is_left_alone();
  faults_->clear();
  clock_.advance(1s);
  EXPECT_EQ(serving(*node_, page("/third"), renderer()), "uncached: page 4");
  EXPECT_TRUE(eventually([&] { return !node_->table_writes_rest(); }));
}

TEST_F(EngineWritesTest, WhoeverAPageWasRenderedForGetsItThoughItsBodyIsNotStored) {
  of_bodies_->set_delay(1h);
  of_bodies_->queue("write", Fault::delay, 1'000);
  EXPECT_EQ(waiting_for("/first", 1s), "uncached: page 2");
  EXPECT_EQ(node_->gauges().storing, 1U);
  EXPECT_GT(node_->gauges().storing_bytes, 0U);
  time_passes(2s);
  EXPECT_TRUE(eventually([&] { return node_->gauges().storing == 0; }));
  EXPECT_EQ(waiting_for("/second", 1s), "uncached: page 3");
  time_passes(2s);
  EXPECT_TRUE(eventually([&] { return node_->body_writes_rest().has_value(); }));
  EXPECT_EQ(serving(*node_, page("/third"), renderer()), "uncached: page 4");
  EXPECT_FALSE(node_->gauges().bodies_down);
  of_bodies_->clear();
  clock_.advance(1s);
  node_->try_writing_again();
  EXPECT_TRUE(eventually([&] { return !node_->body_writes_rest(); }));
  EXPECT_EQ(serving(*node_, page("/fourth"), renderer()), "miss: page 5");
}

TEST_F(EngineWritesTest, ATurnIsGivenBackWhenThePageIsRenderedAsLongAsThereIsRoomForWhatIsBeingStored) {
  EngineOptions options;
  options.renders = 1;
  options.storing = 1;
  const auto busy = std::make_unique<Engine>(executor(), node_isr_, options);
  of_bodies_->set_delay(1h);
  of_bodies_->queue("write", Fault::delay, 2);
  Asked first = ask(*busy, page("/first"), renderer());
  EXPECT_TRUE(eventually([&] { return busy->gauges().storing == 1; }));
  Asked second = ask(*busy, page("/second"), renderer());
  EXPECT_TRUE(eventually([&] { return renders_ == 3; }));
  // That one finds no place, and keeps its turn.
  Asked third = ask(*busy, page("/third"), renderer());
  EXPECT_TRUE(eventually([&] { return busy->gauges().queued_renders == 1; }));
  time_passes(1s);
  EXPECT_EQ(first.get(), "uncached: page 2");
  EXPECT_EQ(second.get(), "uncached: page 3");
  EXPECT_EQ(busy->gauges().queued_renders, 1U);
  of_bodies_->clear();
  time_passes(3s);
  EXPECT_THAT(third.get(), testing::EndsWith(": page 4"));
  run(busy->drain());
}

TEST_F(EngineWritesTest, ALeaseIsRefreshedInTimeThoughTheFirstRefreshHangs) {
  faults_->queue("write", Fault::none);
  faults_->queue("write", Fault::delay);
  Asked asked = ask(*node_, page("/first"), behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  time_passes(12s);
  gate_.set();
  EXPECT_EQ(asked.get(), "miss: page 2");
  EXPECT_EQ(node_->counters().leases_lost, 0U);
}

}  // namespace
}  // namespace facetheory
