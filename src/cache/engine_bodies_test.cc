// A body store that fails or hangs: after a few failures nobody waits for it.
#include <string>
#include <vector>

#include "facetheory/bodies/forwarding_bodies.h"
#include "facetheory/cache/engine.h"

#include "tests/support/engine_fixture.h"

namespace facetheory {
namespace {

using namespace test;

class EngineBodiesTest : public EngineFixture {
 protected:
  EngineBodiesTest() {
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(serving(*engine_, page(i), renderer()), "miss: page " + std::to_string(i + 1));
    renders_ = 100;
  }
  ~EngineBodiesTest() override { run(node_->drain()); }

  static ServeRequest page(int i) { return {.page = *page_of("/page/" + std::to_string(i))}; }
  static ServeRequest missing() { return {.page = *page_of("/missing")}; }
  // The store is asked for pages that this node has not in memory, and does not answer.
  void fails_often() {
    faults_->chance(Fault::fail, 1.0);
    for (int i = 0; i < 5; ++i) {
      EXPECT_FALSE(node_->gauges().bodies_down);
      EXPECT_EQ(serving(*node_, page(i), renderer()), "uncached: page " + std::to_string(101 + i));
    }
    EXPECT_TRUE(node_->gauges().bodies_down);
    asked_ = 0;
  }

  // Counts who gets as far as the store.
  class CountingBodies final : public ForwardingBodies {
   public:
    CountingBodies(BodyStore& inner, std::atomic<int>& asked) : ForwardingBodies(inner), asked_(asked) {}

   private:
    Task<Result<void>> do_write(std::string key, Body body) override {
      ++asked_;
      return inner().write(std::move(key), std::move(body));
    }
    Task<Result<std::optional<Body>>> do_read(std::string key) override {
      ++asked_;
      return inner().read(std::move(key));
    }

    std::atomic<int>& asked_;
  };

  std::atomic<int> asked_ = 0;
  std::shared_ptr<FaultScript> faults_ = std::make_shared<FaultScript>();
  FaultyBodies failing_bodies_{plain_bodies_, faults_, clock_};
  CountingBodies asked_bodies_{failing_bodies_, asked_};
  Isr node_isr_{*plain_table_, asked_bodies_, clock_, random_, {}};
  std::unique_ptr<Engine> node_ = std::make_unique<Engine>(executor(), node_isr_);
};

TEST_F(EngineBodiesTest, AreLeftAloneAfterSeveralFailuresButForOneProbeASecond) {
  fails_often();
  for (int i = 5; i < 10; ++i)
    EXPECT_EQ(serving(*node_, page(i), renderer()), "uncached: page " + std::to_string(101 + i));
  EXPECT_EQ(asked_, 0);
  clock_.advance(1s);
  serving(*node_, page(5), renderer());
  serving(*node_, page(6), renderer());
  EXPECT_EQ(asked_, 1);
}

TEST_F(EngineBodiesTest, AreUsedAgainWhenAProbeHasSucceeded) {
  fails_often();
  faults_->clear();
  EXPECT_EQ(serving(*node_, page(5), renderer()), "uncached: page 106");
  clock_.advance(1s);
  EXPECT_EQ(serving(*node_, page(5), renderer()), "hit: page 6");
  EXPECT_FALSE(node_->gauges().bodies_down);
  EXPECT_EQ(serving(*node_, page(6), renderer()), "hit: page 7");
}

TEST_F(EngineBodiesTest, AMissingPageIsRenderedOnceWhileTheyAreLeftAloneAndNotForNothing) {
  fails_often();
  const int before = renders_;
  EXPECT_EQ(serving(*node_, missing(), renderer()), "uncached: page " + std::to_string(before + 1));
  EXPECT_EQ(renders_, before + 1);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(node_->gauges().flights, 0U);
}

TEST_F(EngineBodiesTest, OnePageIsRenderedOnceForAllWhoAskForItMeanwhile) {
  fails_often();
  const int before = renders_;
  std::vector<Asked> asked;
  asked.push_back(ask(*node_, page(9), behind_a_gate()));
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  for (int i = 0; i < 40; ++i)
    asked.push_back(ask(*node_, page(9), renderer()));
  run(system_clock().sleep_for(50ms));
  EXPECT_EQ(renders_, before + 1);
  gate_.set();
  for (Asked& one : asked)
    EXPECT_EQ(one.get(), "uncached: page " + std::to_string(before + 1));
  EXPECT_EQ(serving(*node_, page(9), renderer()), "uncached: page " + std::to_string(before + 2));
}

TEST_F(EngineBodiesTest, WhatIsRenderedForOthersMeanwhileIsNotFromBeforeAnInvalidation) {
  fails_often();
  const int before = renders_;
  Asked first = ask(*node_, page(9), behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  ASSERT_TRUE(run(invalidate(others_, page(9).page)));
  EXPECT_EQ(serving(*node_, page(9), renderer()), "uncached: page " + std::to_string(before + 2));
  gate_.set();
  EXPECT_EQ(first.get(), "uncached: page " + std::to_string(before + 1));
}

TEST_F(EngineBodiesTest, WhatTurnsOutToBeForOneAloneIsNotForThoseWhoWaitedForIt) {
  fails_often();
  const int before = renders_;
  const Renderer alone = [&](RenderContext) -> Task<Result<Rendered>> {
    const int mine = ++renders_;
    rendering_.set();
    co_await gate_.wait(system_clock(), 10s);
    Rendered page = rendered(mine);
    page.as = RenderedAs::transient;
    co_return page;
  };
  Asked first = ask(*node_, page(9), alone);
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  Asked second = ask(*node_, page(9), renderer());
  run(system_clock().sleep_for(50ms));
  gate_.set();
  EXPECT_EQ(first.get(), "uncached: page " + std::to_string(before + 1));
  EXPECT_EQ(second.get(), "uncached: page " + std::to_string(before + 2));
}

TEST_F(EngineBodiesTest, WhatIsInMemoryIsServedStaleAndRenderedAgainWhenTheyMayBeAsked) {
  EXPECT_EQ(serving(*node_, page(9), renderer()), "hit: page 10");
  fails_often();
  clock_.advance(59s);  // A probe is due: it is the render's.
  faults_->clear();
  const int before = renders_;
  clock_.advance(1s);
  EXPECT_EQ(serving(*node_, page(9), renderer()), "stale: page 10");
  EXPECT_TRUE(eventually([&] { return node_->counters().published == 1; }));
  EXPECT_EQ(renders_, before + 1);
  EXPECT_FALSE(node_->gauges().bodies_down);
}

TEST_F(EngineBodiesTest, AStalePageInMemoryIsNotRenderedInVainWhileTheyAreLeftAlone) {
  EXPECT_EQ(serving(*node_, page(9), renderer()), "hit: page 10");
  clock_.advance(60s);
  fails_often();
  const int before = renders_;
  EXPECT_EQ(serving(*node_, page(9), renderer()), "stale: page 10");
  ServeRequest blocking = page(9);
  blocking.policy.mode = ServeMode::blocking;
  EXPECT_EQ(serving(*node_, std::move(blocking), renderer()), "stale: page 10");
  EXPECT_EQ(node_->gauges().flights, 0U);
  EXPECT_EQ(renders_, before);
}

TEST_F(EngineBodiesTest, AStoreThatCannotBeWrittenIsStillRead) {
  faults_->chance(Fault::fail, 1.0);
  for (int i = 0; i < 6; ++i) {
    Asked asked = ask(*node_, {.page = *page_of("/missing/" + std::to_string(i))}, renderer());
    ASSERT_TRUE(pass_until([&] { return asked.is_answered(); }));  // Writing is worth several attempts.
    EXPECT_EQ(asked.get().substr(0, 8), "uncached");
  }
  EXPECT_GE(asked_, 6);
  EXPECT_FALSE(node_->gauges().bodies_down);
  faults_->clear();
  EXPECT_THAT(serving(*node_, page(0), renderer()), testing::EndsWith(": page 1"));
}

// For eviction from the disk, which knows nothing of who answers with bytes where they are stored.
TEST_F(EngineBodiesTest, ABodyThatIsReadWhereItIsStoredIsInUseForAWhile) {
  const std::string key = "a/body";
  EXPECT_EQ(node_->warmth(key), 0);
  node_->note_use(Engine::use_of(key));
  EXPECT_EQ(node_->warmth(key), 2);
  EXPECT_EQ(node_->warmth("another"), 0);
  for (int i = 0; i < 30; ++i) {
    clock_.advance(1min);
    node_->forget_old_uses();
  }
  EXPECT_EQ(node_->warmth(key), 0);
}

}  // namespace
}  // namespace facetheory
