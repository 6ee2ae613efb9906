// The queue of renders: who goes first, who is dropped, who is refused.
#include <stop_token>
#include <string>

#include "facetheory/cache/engine.h"

#include "tests/support/engine_fixture.h"

namespace facetheory {
namespace {

using namespace test;

// An engine that renders one page at a time, and is busy with one.
class EngineQueueTest : public EngineFixture {
 protected:
  EngineQueueTest() { options_.renders = 1; }
  ~EngineQueueTest() override {
    gate_.set();
    if (busy_) run(busy_->drain());
  }

  void begin() {
    busy_ = node(options_);
    first_ = ask(*busy_, of("/first", 3600s), behind_a_gate());
    ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  }
  static ServeRequest of(const std::string& path, Duration wait_limit) {
    return {.page = *page_of(path), .policy = {.wait_limit = wait_limit, .render_limit = 3600s}};
  }
  bool queue_is(std::size_t length) {
    return eventually([&] { return busy_->gauges().queued_renders == length; });
  }
  // Says which page it renders.
  Renderer naming(std::string page) {
    return [this, page = std::move(page)](RenderContext) -> Task<Result<Rendered>> {
      Rendered made = rendered(++renders_);
      made.body.bytes = page;
      order_ += page;
      co_return made;
    };
  }

  EngineOptions options_;
  std::unique_ptr<Engine> busy_;
  Asked first_;
  std::string order_;
};

TEST_F(EngineQueueTest, AQueuedRenderIsDroppedWhenItsRequestsHaveLostPatience) {
  begin();
  Asked hasty = ask(*busy_, of("/page", 5s), renderer());
  ASSERT_TRUE(queue_is(1));
  Asked less_hasty = ask(*busy_, of("/page", 9s), renderer());
  ASSERT_TRUE(eventually([&] { return busy_->gauges().waiters == 3; }));
  ASSERT_TRUE(clock_.wait_for_sleepers(4));
  clock_.advance(5s);
  EXPECT_EQ(hasty.get(), "error: too many pages are waiting to be rendered");
  EXPECT_TRUE(queue_is(1));  // Somebody still waits.
  EXPECT_EQ(busy_->gauges().oldest_queued, 5s);
  clock_.advance(4s);
  EXPECT_EQ(less_hasty.get(), "error: too many pages are waiting to be rendered");
  EXPECT_TRUE(queue_is(0));
  EXPECT_TRUE(eventually([&] { return busy_->gauges().flights == 1; }));
  EXPECT_EQ(busy_->counters().renders_dropped, 1U);
  gate_.set();
  EXPECT_EQ(first_.get(), "miss: page 1");
  EXPECT_EQ(renders_, 1);
}

TEST_F(EngineQueueTest, ARenderThatIsUnderWayGoesOnWithoutThoseWhoWaited) {
  begin();
  Asked other = ask(*busy_, of("/first", 5s), renderer());
  ASSERT_TRUE(eventually([&] { return busy_->gauges().waiters == 2; }));
  ASSERT_TRUE(clock_.wait_for_sleepers(2));
  clock_.advance(5s);
  EXPECT_EQ(other.get(), "error: the page could not be rendered in time");
  EXPECT_EQ(busy_->gauges().flights, 1U);
  EXPECT_EQ(busy_->counters().renders_dropped, 0U);
}

TEST_F(EngineQueueTest, LateRefusalsSayWhenToComeAgain) {
  begin();
  Asked late = ask(*busy_, of("/page", 5s), renderer());
  ASSERT_TRUE(queue_is(1));
  ASSERT_TRUE(clock_.wait_for_sleepers(3));
  clock_.advance(5s);
  late.ended.get();
  ASSERT_FALSE(**late.answer);
  EXPECT_EQ((*late.answer)->error().code, ErrorCode::exhausted);
  EXPECT_GT((*late.answer)->error().retry_at, isr_.now());
}

TEST_F(EngineQueueTest, ARequestThatIsCancelledLeavesTheQueue) {
  begin();
  Event leaves;
  auto ended = start(unless(leaves, busy_->serve(of("/page", 3600s), renderer())));
  ASSERT_TRUE(queue_is(1));
  leaves.set();
  ended.get();
  EXPECT_TRUE(queue_is(0));
  EXPECT_EQ(busy_->counters().renders_dropped, 1U);
  gate_.set();
  EXPECT_EQ(first_.get(), "miss: page 1");
  EXPECT_EQ(serving(*busy_, of("/page", 3600s), renderer()), "miss: page 2");  // Its turn was not lost.
}

TEST_F(EngineQueueTest, AClientThatHasProbablyLeftIsNotQueuedFor) {
  begin();
  std::stop_source client;
  ServeRequest leaving = of("/page", 3600s);
  leaving.left = client.get_token();
  Asked left = ask(*busy_, std::move(leaving), renderer());
  ASSERT_TRUE(queue_is(1));
  client.request_stop();
  EXPECT_EQ(left.get(), "error: too many pages are waiting to be rendered");
  EXPECT_TRUE(queue_is(0));
  EXPECT_EQ(renders_, 1);
}

TEST_F(EngineQueueTest, AClientThatHasProbablyLeftGetsARenderThatIsUnderWay) {
  begin();
  std::stop_source client;
  ServeRequest leaving = of("/first", 3600s);
  leaving.left = client.get_token();
  Asked left = ask(*busy_, std::move(leaving), renderer());
  ASSERT_TRUE(eventually([&] { return busy_->gauges().waiters == 2; }));
  client.request_stop();
  gate_.set();
  EXPECT_EQ(left.get(), "miss: page 1");
}

TEST_F(EngineQueueTest, WhoComesWhenTheQueueIsFullIsRefusedAtOnce) {
  options_.queued_renders = 1;
  begin();
  Asked queued = ask(*busy_, of("/page", 3600s), renderer());
  ASSERT_TRUE(queue_is(1));
  Asked beyond = ask(*busy_, of("/another", 3600s), renderer());
  beyond.ended.get();
  ASSERT_FALSE(**beyond.answer);
  EXPECT_EQ((*beyond.answer)->error().code, ErrorCode::exhausted);
  EXPECT_EQ((*beyond.answer)->error().retry_at, isr_.now() + 2);
  EXPECT_EQ(busy_->counters().renders_refused, 1U);
  gate_.set();
  EXPECT_EQ(queued.get(), "miss: page 2");
}

TEST_F(EngineQueueTest, WhoJoinsAQueuedRenderOfTheBackgroundBringsItForward) {
  // Two pages that are stale.
  for (const std::string path : {"/a", "/b"})
    EXPECT_EQ(serving(*engine_, of(path, 3600s), naming(path)), "miss: " + path);
  order_.clear();
  clock_.advance(61s);
  begin();
  EXPECT_EQ(serving(*busy_, of("/a", 3600s), naming("/a")), "stale: /a");
  ASSERT_TRUE(queue_is(1));
  EXPECT_EQ(serving(*busy_, of("/b", 3600s), naming("/b")), "stale: /b");
  ASSERT_TRUE(queue_is(2));
  ServeRequest blocking = of("/b", 3600s);
  blocking.policy.mode = ServeMode::blocking;
  Asked waiting = ask(*busy_, std::move(blocking), naming("/b"));
  Asked missing = ask(*busy_, of("/c", 3600s), naming("/c"));
  ASSERT_TRUE(queue_is(3));
  ASSERT_TRUE(eventually([&] { return busy_->gauges().waiters == 3; }));
  gate_.set();
  EXPECT_EQ(missing.get(), "miss: /c");
  EXPECT_EQ(waiting.get(), "miss: /b");
  EXPECT_TRUE(eventually([&] { return busy_->gauges().flights == 0; }));
  EXPECT_EQ(order_, "/b/c/a");
}

// As where the loop that refreshes leases was busy for longer than a lease is long.
TEST_F(EngineQueueTest, AFlightThatLostItsLeaseKeepsItsPlace) {
  begin();
  Asked second = ask(*busy_, of("/second", 3600s), behind_a_gate());
  ASSERT_TRUE(queue_is(1));
  Asked third = ask(*busy_, of("/third", 3600s), renderer());
  ASSERT_TRUE(queue_is(2));
  clock_.advance(kDefaultLease + 1s);
  ASSERT_TRUE(eventually([&] { return busy_->counters().leases_lost == 1 && renders_ == 2; }));
  ASSERT_TRUE(queue_is(2));
  gate_.set();
  EXPECT_EQ(second.get(), "miss: page 2");
  EXPECT_EQ(first_.get(), "miss: page 3");
  EXPECT_EQ(third.get(), "miss: page 4");
}

TEST_F(EngineQueueTest, WhoDoesNotWaitAtAllWantsThePageForTheNextOne) {
  begin();
  EXPECT_EQ(serving(*busy_, of("/page", 0s), renderer()), "error: the page could not be rendered in time");
  EXPECT_TRUE(queue_is(1));
  gate_.set();
  EXPECT_TRUE(eventually([&] { return busy_->counters().published == 2; }));
}

}  // namespace
}  // namespace facetheory
