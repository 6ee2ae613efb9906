// Renders and stores that do not answer: whoever waits is answered all the same, and somebody notices.
#include <string>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include "facetheory/cache/engine.h"

#include "tests/support/engine_fixture.h"

namespace facetheory {
namespace {

using namespace test;

class EngineHangingTest : public EngineFixture {
 protected:
  ~EngineHangingTest() override {
    gate_.set();
    // What was given up ends, too, before the stores are gone.
    eventually([&] { return engine_->gauges().overdue_flights == 0; });
  }

  // Neither ends at its limit nor when it is cancelled, until the gate is opened.
  Renderer deaf() {
    return [this](RenderContext) -> Task<Result<Rendered>> {
      const int number = ++renders_;
      co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
      rendering_.set();
      co_await gate_.wait(system_clock(), 60s);
      co_return rendered(number);
    };
  }
  // Its render has a limit of ten seconds, so that it must have ended two minutes and ten seconds after its turn came.
  ServeRequest hasty() const { return request({.wait_limit = 5s, .render_limit = 10s}); }

  void begin() {
    Asked first = ask(hasty(), deaf());
    ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
    ASSERT_TRUE(clock_.wait_for_sleepers(1));
    clock_.advance(5s);
    EXPECT_EQ(first.get(), "error: the page could not be rendered in time");
  }
};

TEST_F(EngineHangingTest, ARenderThatDoesNotEndIsNoticedWhenItIsOlderThanItCanBe) {
  begin();
  clock_.advance(125s);
  engine_->give_up_overdue();
  EXPECT_FALSE(engine_->overdue());
  EXPECT_EQ(engine_->gauges().oldest_flight, 130s);
  clock_.advance(1s);
  EXPECT_FALSE(engine_->overdue()) << "asking gives nothing up";
  engine_->give_up_overdue();
  const auto overdue = engine_->overdue();
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->page, "/news/42");
  EXPECT_EQ(overdue->age, 131s);
  EXPECT_EQ(engine_->gauges().overdue_flights, 1U);
  EXPECT_EQ(engine_->gauges().flights, 1U);  // It still hangs.
  gate_.set();
  EXPECT_TRUE(eventually([&] { return !engine_->overdue(); }));
  EXPECT_EQ(engine_->gauges().flights, 0U);
}

TEST_F(EngineHangingTest, WhoeverComesThenBeginsAnotherRender) {
  begin();
  clock_.advance(126s);
  EXPECT_EQ(serving(*engine_, request(), renderer()), "miss: page 2");
  EXPECT_EQ(engine_->gauges().overdue_flights, 1U);
}

TEST_F(EngineHangingTest, WhoWaitsWhenItIsGivenUpIsAnsweredWithoutTheStores) {
  begin();
  Asked waiting = ask(request({.wait_limit = 3600s, .render_limit = 10s}), renderer());
  ASSERT_TRUE(eventually([&] { return engine_->gauges().waiters == 1; }));
  clock_.advance(126s);
  engine_->give_up_overdue();
  ASSERT_TRUE(engine_->overdue());
  EXPECT_EQ(waiting.get(), "uncached: page 2");
}

TEST_F(EngineHangingTest, ARenderThatWaitsForItsTurnIsNotOverdue) {
  EngineOptions options;
  options.renders = 1;
  const auto busy = node(options);
  engines_.push_back(busy.get());
  Asked first = ask(*busy, request({.wait_limit = 3600s, .render_limit = 3600s}), behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  page_ = *page_of("/another");
  Asked queued = ask(*busy, request({.wait_limit = 3600s, .render_limit = 10s}), renderer());
  ASSERT_TRUE(eventually([&] { return busy->gauges().queued_renders == 1; }));
  for (int i = 0; i < 60; ++i) {  // In steps, so that the lease of the first is kept.
    clock_.advance(5s);
    run(system_clock().sleep_for(2ms));
  }
  EXPECT_EQ(busy->gauges().queued_renders, 1U);
  busy->give_up_overdue();
  EXPECT_FALSE(busy->overdue());
  gate_.set();
  EXPECT_EQ(first.get(), "miss: page 1");
  EXPECT_EQ(queued.get(), "miss: page 2");
  engines_.pop_back();
}

TEST_F(EngineHangingTest, DrainingDoesNotWaitForWhatHangs) {
  begin();
  auto drained = start(engine_->drain());
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  EXPECT_TRUE(pass_until([&] { return drained.wait_for(0s) == std::future_status::ready; }));
}

}  // namespace
}  // namespace facetheory
