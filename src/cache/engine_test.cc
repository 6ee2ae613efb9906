#include "facetheory/cache/engine.h"

#include <thread>

#include "facetheory/base/loop_bound.h"
#include "facetheory/base/loop_thread.h"
#include "facetheory/isr/pages.h"

#include "tests/support/engine_fixture.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::run;
using testing::HasSubstr;

class EngineTest : public test::EngineFixture {};

TEST_F(EngineTest, MissingPageIsRenderedAndThenAHit) {
  EXPECT_EQ(serving(*engine_), "miss: page 1");
  EXPECT_EQ(serving(*engine_), "hit: page 1");
  clock_.advance(59s);
  EXPECT_EQ(serving(*engine_), "hit: page 1");
  EXPECT_EQ(engine_->counters().hit, 2U);
  EXPECT_EQ(engine_->counters().miss, 1U);
  EXPECT_EQ(engine_->counters().renders, 1U);
}

// Whoever learns of it from the table must not have to wait for the store of bodies.
TEST_F(EngineTest, APageIsInMemoryBeforeItsRowAppears) {
  std::vector<std::optional<std::uint64_t>> versions;
  EngineOptions options;
  options.prepare = [&](Body body) {
    versions.push_back(plain_table_->version());
    const std::size_t cost = body.bytes.size();
    return PreparedBody{std::make_shared<const KeptBody>(std::move(body)), cost};
  };
  const auto engine = node(std::move(options));
  EXPECT_EQ(serving(*engine), "miss: page 1");
  ASSERT_EQ(versions.size(), 1U);
  EXPECT_LT(versions.front(), plain_table_->version());
  EXPECT_EQ(serving(*engine), "hit: page 1");
  EXPECT_EQ(engine->counters().bodies_read, 0U);
  run(engine->drain());
}

TEST_F(EngineTest, OfEveryPageOnlyTheCurrentBodyStaysInMemory) {
  const std::unique_ptr<Engine> other = node();
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(serving({.mode = ServeMode::blocking}, renderer()), "miss: page " + std::to_string(i));
    EXPECT_EQ(serving(*other), "hit: page " + std::to_string(i));  // Learns of it from the table.
    EXPECT_EQ(engine_->gauges().bodies_in_memory, 1U);
    EXPECT_EQ(other->gauges().bodies_in_memory, 1U);
    clock_.advance(61s);
  }
}

TEST_F(EngineTest, ManyRequestsForAMissingPageShareOneRender) {
  std::vector<Task<Result<Served>>> tasks;
  for (int i = 0; i < 50; ++i)
    tasks.push_back(engine_->serve(request(), behind_a_gate()));
  std::thread opener([&] {
    run(rendering_.wait(system_clock(), 10s));
    gate_.set();
  });
  // run() needs the loop that run_all occupies only while it waits; both are driven by the same background loop.
  const auto answers = test::run_all(std::move(tasks));
  opener.join();
  for (const auto& served : answers) {
    ASSERT_TRUE(served) << to_string(served.error());
    EXPECT_EQ(served->body->bytes(), "page 1");
  }
  EXPECT_EQ(renders_, 1);
}

TEST_F(EngineTest, StalePageIsServedWhileItIsRegeneratedInTheBackground) {
  serving(*engine_);
  clock_.advance(60s);
  EXPECT_EQ(serving(*engine_, request(), behind_a_gate()), "stale: page 1");
  EXPECT_EQ(serving(*engine_, request(), behind_a_gate()), "stale: page 1");
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  gate_.set();
  ASSERT_TRUE(eventually([&] { return engine_->counters().published == 2; }));
  EXPECT_EQ(serving(*engine_), "hit: page 2");
  EXPECT_EQ(renders_, 2);
}

TEST_F(EngineTest, BlockingModeWaitsForTheNewPage) {
  serving(*engine_);
  clock_.advance(60s);
  PagePolicy policy;
  policy.mode = ServeMode::blocking;
  EXPECT_EQ(serving(policy, renderer()), "miss: page 2");
}

TEST_F(EngineTest, FailedRenderIsAnsweredAsThePolicySays) {
  serving(*engine_);
  clock_.advance(60s);
  PagePolicy policy;
  policy.mode = ServeMode::blocking;
  EXPECT_EQ(serving(policy, failing()), "stale: page 1");
  clock_.advance(60s);
  policy.on_failure = OnFailure::error;
  EXPECT_THAT(serving(policy, failing()), HasSubstr("error: the render failed: origin answered 503"));
  EXPECT_EQ(engine_->counters().renders_failed, 2U);
  clock_.advance(60s);
  EXPECT_EQ(serving(policy, renderer()), "miss: page 4");
}

TEST_F(EngineTest, FailedRenderOfAMissingPageIsAnError) {
  EXPECT_THAT(serving(*engine_, request(), failing()), HasSubstr("origin answered 503"));
  EXPECT_EQ(engine_->counters().failed, 1U);
}

TEST_F(EngineTest, PageThatIsTooStaleIsNotServed) {
  serving(*engine_);
  PagePolicy policy;
  policy.stale_for = 100s;
  clock_.advance(159s);
  EXPECT_EQ(serving(*engine_, request(policy), behind_a_gate()), "stale: page 1");
  gate_.set();
  ASSERT_TRUE(eventually([&] { return engine_->counters().published == 2; }));
  clock_.advance(160s);
  EXPECT_EQ(serving(policy, renderer()), "miss: page 3");
}

TEST_F(EngineTest, RequestThatGivesUpDoesNotStopTheRegeneration) {
  PagePolicy policy;
  policy.wait_limit = 5s;
  std::optional<Result<Served>> impatient;
  auto ended = test::start(test::store(engine_->serve(request(policy), behind_a_gate()), impatient));
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  ASSERT_TRUE(clock_.wait_for_sleepers(3));  // The request, the keeper of the lease, the limit of the render.
  clock_.advance(5s);
  ended.get();
  EXPECT_FALSE(*impatient);
  EXPECT_EQ(impatient->error().code, ErrorCode::exhausted);
  EXPECT_GT(impatient->error().retry_at, isr_.now());
  gate_.set();
  ASSERT_TRUE(eventually([&] { return engine_->counters().published == 1; }));
  EXPECT_EQ(serving(*engine_), "hit: page 1");
}

TEST_F(EngineTest, TwoNodesRenderOnce) {
  const auto second = node();
  engines_.push_back(second.get());
  std::optional<Result<Served>> first_answer, second_answer;
  auto first = test::start(test::store(engine_->serve(request(), behind_a_gate()), first_answer));
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  auto other = test::start(test::store(second->serve(request(), behind_a_gate()), second_answer));
  ASSERT_TRUE(
      clock_.wait_for_sleepers(5));  // Two requests, the keeper and the limit, the other node's poller.
  gate_.set();
  first.get();
  clock_.advance(1s);
  other.get();
  EXPECT_EQ(name((*first_answer)->as), "miss");
  EXPECT_EQ(name((*second_answer)->as), "wait-hit");
  EXPECT_EQ((*second_answer)->body->bytes(), "page 1");
  EXPECT_EQ(renders_, 1);
  engines_.pop_back();
  run(second->drain());
}

TEST_F(EngineTest, TakesOverFromAHolderThatDied) {
  ASSERT_TRUE(run(acquire(others_, page_, 10s)));  // And never heard of again.
  std::optional<Result<Served>> answer;
  auto ended = test::start(test::store(engine_->serve(request(), renderer()), answer));
  ASSERT_TRUE(pass_until([&] { return ended.wait_for(0s) == std::future_status::ready; }));
  ended.get();
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->body->bytes(), "page 1");
  EXPECT_EQ(engine_->counters().leases_contended, 1U);
  EXPECT_EQ(engine_->counters().leases_acquired, 1U);
  EXPECT_EQ(engine_->counters().leases_taken_over, 1U);
}

TEST_F(EngineTest, InvalidationByAnotherProcessIsSeenByTheVeryNextRequest) {
  serving(*engine_);
  ASSERT_TRUE(run(invalidate(others_, page_)));
  PagePolicy policy;
  policy.mode = ServeMode::blocking;
  EXPECT_EQ(serving(policy, renderer()), "miss: page 2");
}

TEST_F(EngineTest, PageWhoseTagWasInvalidatedIsStaleAndOtherReadersLearnOfIt) {
  serving(*engine_);
  ASSERT_TRUE(run(mark_tag(others_, "", "news", MarkKind::invalidate)));
  EXPECT_EQ(serving(*engine_, request(), behind_a_gate()), "stale: page 1");
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  EXPECT_EQ((*run(get_meta(others_, page_, Consistency::strong)))->generated_at, 0);
  clock_.advance(3s);
  gate_.set();
  ASSERT_TRUE(eventually([&] { return engine_->counters().published == 2; }));
}

TEST_F(EngineTest, PurgedPageIsNotServed) {
  serving(*engine_);
  ASSERT_TRUE(run(purge(others_, page_)));
  EXPECT_THAT(serving(*engine_, request(), failing()), HasSubstr("error"));
}

TEST_F(EngineTest, LastKnownPageIsServedWhileTheTableIsDown) {
  serving(*engine_);
  script_->chance(Fault::fail, 1.0);
  EXPECT_EQ(serving(*engine_), "stale-metadata-error: page 1");
  clock_.advance(3600s);
  EXPECT_EQ(serving(*engine_), "stale-metadata-error: page 1");
  EXPECT_EQ(renders_, 1);
  script_->clear();
  clock_.advance(10s);
  EXPECT_EQ(serving({.mode = ServeMode::blocking}, renderer()), "miss: page 2");
}

TEST_F(EngineTest, WithoutTableAndPageTheRendererIsAskedAndNothingStored) {
  script_->chance(Fault::fail, 1.0);
  EXPECT_EQ(serving(*engine_), "uncached: page 1");
  EXPECT_EQ(serving(*engine_), "uncached: page 2");
  script_->clear();
  EXPECT_EQ(*run(get_meta(others_, page_, Consistency::strong)), std::nullopt);
}

// What a renderer uses may live there: connections to an origin, say.
TEST_F(EngineTest, RendersOnItsOwnExecutorWhoeverAsksAndWhateverIsAway) {
  LoopThread renders("renders");
  EngineOptions options;
  Engine engine(renders.executor(), isr_, options);
  std::atomic<int> elsewhere = 0;
  const LoopBound bound = LoopBound::to_loop(renders.executor(), "a renderer");
  const Renderer by = [&](RenderContext) -> Task<Result<Rendered>> {
    if (!bound.is_here()) ++elsewhere;
    co_return rendered(++renders_);
  };
  EXPECT_EQ(serving(engine, request(), by), "miss: page 1");
  script_->chance(Fault::fail, 1.0);
  ServeRequest unknown{.page = *page_of("/other")};
  EXPECT_EQ(serving(engine, unknown, by), "uncached: page 2");
  EXPECT_EQ(elsewhere, 0);
  run(engine.drain());
}

TEST_F(EngineTest, RendersWithoutATableAreLimited) {
  EngineOptions options;
  options.uncached_renders = 1;
  const auto limited = node(options);
  engines_.push_back(limited.get());
  script_->chance(Fault::fail, 1.0);
  std::optional<Result<Served>> first;
  auto ended = test::start(test::store(limited->serve(request(), behind_a_gate()), first));
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  EXPECT_THAT(serving(*limited), HasSubstr("pages are being rendered without it"));
  gate_.set();
  ended.get();
  EXPECT_TRUE(*first);
  EXPECT_EQ(serving(*limited), "uncached: page 2");
  engines_.pop_back();
}

TEST_F(EngineTest, WithoutATableARenderWhoseClientHasLeftGivesItsPlaceToWhoeverComes) {
  EngineOptions options;
  options.uncached_renders = 1;
  const auto limited = node(options);
  engines_.push_back(limited.get());
  script_->chance(Fault::fail, 1.0);
  std::stop_source left;
  ServeRequest abandoned = request();
  abandoned.left = left.get_token();
  Asked first = ask(*limited, abandoned, behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  EXPECT_THAT(serving(*limited), HasSubstr("pages are being rendered without it"));  // It is waited for.
  left.request_stop();
  EXPECT_EQ(serving(*limited), "uncached: page 2");
  EXPECT_EQ(first.get(), "error: its client has left, and somebody else needed its place");
  EXPECT_EQ(serving(*limited), "uncached: page 3");  // There is one place as before,
  Event second_renders;
  Asked second = ask(*limited, request(), [&](RenderContext) -> Task<Result<Rendered>> {
    second_renders.set();
    co_await gate_.wait(system_clock(), 10s);
    co_return rendered(4);
  });
  ASSERT_TRUE(run(second_renders.wait(system_clock(), 10s)));
  EXPECT_THAT(serving(*limited), HasSubstr("pages are being rendered without it"));  // and no more than one.
  gate_.set();
  EXPECT_EQ(second.get(), "uncached: page 4");
  engines_.pop_back();
}

TEST_F(EngineTest, WithoutATableAClientThatHasProbablyLeftIsAnsweredWhereNobodyNeedsItsPlace) {
  script_->chance(Fault::fail, 1.0);
  std::stop_source left;
  left.request_stop();
  ServeRequest abandoned = request();
  abandoned.left = left.get_token();
  EXPECT_EQ(serving(*engine_, abandoned, renderer()), "uncached: page 1");
}

TEST_F(EngineTest, PageWhoseBodyCannotBeReadIsRenderedAndNotStored) {
  serving(*engine_);
  const auto restarted = node();
  engines_.push_back(restarted.get());
  script_->queue("read", Fault::fail, 1);
  EXPECT_EQ(serving(*restarted), "uncached: page 2");
  EXPECT_EQ(serving(*restarted), "hit: page 1");
  engines_.pop_back();
}

TEST_F(EngineTest, AStalePageIsNotGivenUpForOneThatIsStillBeingRendered) {
  serving(*engine_);
  for (const bool fails : {true, false}) {
    clock_.advance(61s);
    Event gate;
    ServeRequest blocking = request({.mode = ServeMode::blocking});
    blocking.readable = std::make_shared<Event>();
    Asked asked = ask(blocking, [&, readable = blocking.readable](RenderContext) -> Task<Result<Rendered>> {
      readable->set();
      co_await gate.wait(system_clock(), 10s);
      if (fails) co_return Error{ErrorCode::unavailable, "it broke off"};
      co_return rendered(2);
    });
    ASSERT_TRUE(run(blocking.readable->wait(system_clock(), 10s)));
    for (int i = 0; i < 20; ++i) {  // Longer than a whole page is waited for.
      clock_.advance(50ms);
      run(system_clock().sleep_for(5ms));
    }
    EXPECT_FALSE(asked.is_answered());
    gate.set();
    EXPECT_EQ(asked.get(), fails ? "stale: page 1" : "miss: page 2");
    clock_.advance(60s);  // The pause after the failure.
  }
}

TEST_F(EngineTest, PageThatCannotBeStoredIsForWhoeverItWasRenderedFor) {
  script_->queue("write", Fault::none, 1);  // The lease.
  script_->queue("write", Fault::fail, 10);
  Asked asked = ask(request(), renderer());
  ASSERT_TRUE(pass_until([&] { return asked.is_answered(); }));
  EXPECT_EQ(asked.get(), "uncached: page 1");
  EXPECT_EQ(renders_, 1);
  ASSERT_TRUE(pass_until([&] { return engine_->gauges().flights == 0; }));  // It still tries to write.
  script_->clear();
  EXPECT_EQ(*run(get_meta(others_, page_, Consistency::strong)), std::nullopt);
}

TEST_F(EngineTest, PageThatCannotBeStoredIsRenderedAnewForEachWhoJoined) {
  script_->queue("write", Fault::none, 1);  // The lease.
  script_->queue("write", Fault::fail, 10);
  Asked first = ask(request(), behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  Asked joined = ask(request(), renderer());
  ASSERT_TRUE(eventually([&] { return engine_->gauges().waiters == 2; }));
  gate_.set();
  ASSERT_TRUE(pass_until([&] { return first.is_answered() && joined.is_answered(); }));
  EXPECT_EQ(first.get(), "uncached: page 1");
  EXPECT_EQ(joined.get(), "uncached: page 2");
  ASSERT_TRUE(pass_until([&] { return engine_->gauges().flights == 0; }));
  script_->clear();
  EXPECT_EQ(*run(get_meta(others_, page_, Consistency::strong)), std::nullopt);
}

TEST_F(EngineTest, PageWhoseLeaseCannotBeWrittenIsRenderedAndNotStored) {
  script_->queue("write", Fault::fail, 1);
  EXPECT_EQ(serving(*engine_), "uncached: page 1");
  EXPECT_EQ(serving(*engine_), "miss: page 2");
}

TEST_F(EngineTest, TableThatKeepsFailingIsLeftAloneButForAProbe) {
  EngineOptions options;
  options.breaker_failures = 3;
  options.breaker_pause = 2s;
  const auto careful = node(options);
  serving(*careful);
  script_->chance(Fault::fail, 1.0);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(serving(*careful), "stale-metadata-error: page 1");
  EXPECT_EQ(script_->applied(Fault::fail), 3);
  script_->clear();
  EXPECT_EQ(serving(*careful), "stale-metadata-error: page 1");  // Nobody asks yet.
  clock_.advance(2s);
  EXPECT_EQ(serving(*careful), "hit: page 1");
  EXPECT_EQ(serving(*careful), "hit: page 1");
}

TEST_F(EngineTest, PointerIsTrustedForItsTimeAndThenReadAgain) {
  EngineOptions options;
  options.pointer_ttl = 1s;
  const auto trusting = node(options);
  serving(*trusting);
  EXPECT_EQ(serving(*trusting), "hit: page 1");
  ASSERT_TRUE(run(invalidate(others_, page_)));
  EXPECT_EQ(serving(*trusting), "hit: page 1");
  clock_.advance(999ms);
  EXPECT_EQ(serving(*trusting), "hit: page 1");
  clock_.advance(1ms);
  const PagePolicy blocking{.mode = ServeMode::blocking};
  EXPECT_EQ(serving(*trusting, request(blocking), renderer()), "miss: page 2");
  run(trusting->drain());
}

TEST_F(EngineTest, WhatWasPublishedHereIsReadBeforeItIsTrusted) {
  EngineOptions options;
  options.pointer_ttl = 1h;
  const auto trusting = node(options);
  EXPECT_EQ(serving(*trusting), "miss: page 1");
  ASSERT_TRUE(run(invalidate(others_, page_)));  // Perhaps before the answer to the publish had come.
  EXPECT_EQ(serving(*trusting, request({.mode = ServeMode::blocking}), renderer()), "miss: page 2");
  run(trusting->drain());
}

TEST_F(EngineTest, PointerIsTrustedFromTheTimeAtWhichItsReadBegan) {
  serving(*engine_);
  EngineOptions options;
  options.pointer_ttl = 10s;
  const auto trusting = node(options);
  script_->set_delay(8s);
  script_->queue("get_all", Fault::delay);
  std::optional<Result<Served>> answer;
  auto ended = test::start(test::store(trusting->serve(request(), renderer()), answer));
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  clock_.advance(8s);
  ended.get();
  EXPECT_EQ((*answer)->as, ServedAs::hit);
  ASSERT_TRUE(run(invalidate(others_, page_)));
  clock_.advance(1999ms);
  EXPECT_EQ(serving(*trusting), "hit: page 1");
  clock_.advance(1ms);
  EXPECT_EQ(serving(*trusting, request({.mode = ServeMode::blocking}), renderer()), "miss: page 2");
  run(trusting->drain());
}

TEST_F(EngineTest, ClientThatLeavesDuringTheSharedReadOfAPointerHoldsNobodyUp) {
  serving(*engine_);
  EngineOptions options;
  options.pointer_ttl = 1h;
  const auto trusting = node(options);
  script_->set_delay(1h);
  script_->queue("get_all", Fault::delay);
  Event leaves;
  auto left = test::start(unless(leaves, trusting->serve(request(), renderer())));
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  std::optional<Result<Served>> beside;
  std::optional<Result<Served>> after;
  auto beside_ended = test::start(test::store(trusting->serve(request(), renderer()), beside));
  ASSERT_TRUE(clock_.wait_for_sleepers(2));
  leaves.set();
  left.get();
  auto after_ended = test::start(test::store(trusting->serve(request(), renderer()), after));
  EXPECT_EQ(beside_ended.wait_for(5s), std::future_status::ready);
  EXPECT_EQ(after_ended.wait_for(5s), std::future_status::ready);
  clock_.advance(1h);  // Whoever waits all the same.
  beside_ended.get();
  after_ended.get();
  EXPECT_EQ((*beside)->as, ServedAs::hit);
  EXPECT_EQ((*after)->as, ServedAs::hit);
}

TEST_F(EngineTest, RequestDoesNotTakeARenderThatATagHadOvertakenBeforeItCame) {
  std::optional<Result<Served>> first;
  std::optional<Result<Served>> second;
  auto first_ended = test::start(test::store(engine_->serve(request(), behind_a_gate()), first));
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  ASSERT_TRUE(run(mark_tag(others_, "", "news", MarkKind::invalidate)));
  clock_.advance(3s);
  auto second_ended = test::start(test::store(engine_->serve(request(), behind_a_gate()), second));
  ASSERT_TRUE(clock_.wait_for_sleepers(4));  // Both requests, the keeper of the lease, the limit.
  gate_.set();
  first_ended.get();
  second_ended.get();
  EXPECT_EQ((*first)->body->bytes(), "page 1");
  EXPECT_EQ((*second)->body->bytes(), "page 2");
}

TEST_F(EngineTest, PageThatGetsTooStaleWhileARequestWaitsIsNotServed) {
  serving(*engine_);
  clock_.advance(65s);
  const PagePolicy policy{.mode = ServeMode::blocking, .wait_limit = 5s, .stale_for = 10s};
  std::optional<Result<Served>> answer;
  auto ended = test::start(test::store(engine_->serve(request(policy), behind_a_gate()), answer));
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  ASSERT_TRUE(clock_.wait_for_sleepers(3));
  clock_.advance(5s);
  ended.get();
  EXPECT_FALSE(*answer);
  gate_.set();
}

TEST_F(EngineTest, RequestOutwaitsTheFlightOfOneWithLessPatience) {
  const auto lease = run(acquire(others_, page_, 3600s));
  ASSERT_TRUE(lease);
  std::optional<Result<Served>> hasty;
  std::optional<Result<Served>> patient;
  auto hasty_ended = test::start(test::store(engine_->serve(request({.wait_limit = 2s}), renderer()), hasty));
  ASSERT_TRUE(clock_.wait_for_sleepers(2));  // The request, and its flight that polls.
  auto patient_ended =
      test::start(test::store(engine_->serve(request({.wait_limit = 600s}), renderer()), patient));
  ASSERT_TRUE(clock_.wait_for_sleepers(3));
  ASSERT_TRUE(pass_until([&] { return hasty_ended.wait_for(0s) == std::future_status::ready; }));
  hasty_ended.get();
  EXPECT_FALSE(*hasty);
  ASSERT_TRUE(run(release(others_, std::get<Lease>(*lease))));
  ASSERT_TRUE(pass_until([&] { return engine_->counters().published == 1; }));
  patient_ended.get();
  ASSERT_TRUE(*patient);
  EXPECT_EQ((*patient)->body->bytes(), "page 1");
}

TEST_F(EngineTest, RendererThatBreaksWithoutATableIsAnErrorAndNotAnException) {
  script_->chance(Fault::fail, 1.0);
  const Renderer breaking = [](RenderContext) -> Task<Result<Rendered>> {
    throw std::runtime_error("the template is broken");
    co_return Error{};
  };
  EXPECT_EQ(serving(*engine_, request(), breaking), "error: the template is broken");
  script_->clear();
}

TEST_F(EngineTest, RendererThatHangsWithoutATableIsEndedAtTheLimit) {
  script_->chance(Fault::fail, 1.0);
  const Renderer hanging = [this](RenderContext) -> Task<Result<Rendered>> {
    co_await clock_.sleep_for(1h);
    co_return rendered(1);
  };
  std::optional<Result<Served>> answer;
  auto ended = test::start(
      test::store(engine_->serve(request({.wait_limit = 1s, .render_limit = 5s}), hanging), answer));
  ASSERT_TRUE(clock_.wait_for_sleepers(2));
  clock_.advance(5s);
  EXPECT_EQ(ended.wait_for(5s), std::future_status::ready);
  clock_.advance(1h);
  ended.get();
  EXPECT_FALSE(*answer);
  EXPECT_THAT(answer->error().message, HasSubstr("not rendered within 5 s"));
  script_->clear();
}

TEST_F(EngineTest, WhoDoesNotWaitForRendersIsRenderedForWhileThereIsNoTable) {
  script_->chance(Fault::fail, 1.0);
  EXPECT_EQ(serving({.wait_limit = 0s}, renderer()), "uncached: page 1");
  script_->clear();
}

TEST_F(EngineTest, RequestIdWithOtherInputsDoesNotShareTheRender) {
  ServeRequest triggered = request();
  triggered.request_id = "r1";
  std::optional<Result<Served>> answer;
  auto ended = test::start(test::store(engine_->serve(triggered, behind_a_gate()), answer));
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  triggered.inputs = {{"policy", "2"}};
  std::optional<Result<Served>> other;
  auto refused = test::start(test::store(engine_->serve(triggered, renderer()), other));
  EXPECT_EQ(refused.wait_for(5s), std::future_status::ready);
  gate_.set();
  refused.get();
  ended.get();
  ASSERT_TRUE(*answer);
  ASSERT_FALSE(*other);
  EXPECT_EQ(other->error().code, ErrorCode::invalid);
}

TEST_F(EngineTest, BodyIsReadOnceAndThenServedFromMemory) {
  serving(*engine_);
  const auto second = node();
  EXPECT_EQ(serving(*second), "hit: page 1");
  EXPECT_EQ(serving(*second), "hit: page 1");
  EXPECT_EQ(second->counters().bodies_read, 1U);
}

TEST_F(EngineTest, PageWhoseBodyIsGoneIsHealed) {
  serving(*engine_);
  const auto meta = *run(get_meta(others_, page_, Consistency::strong));
  ASSERT_TRUE(run(plain_bodies_->remove(meta->s3_key)));
  const auto fresh_memory = node();
  engines_.push_back(fresh_memory.get());
  EXPECT_EQ(serving(*fresh_memory), "miss: page 2");
  EXPECT_EQ(serving(*fresh_memory), "hit: page 2");
  engines_.pop_back();
}

TEST_F(EngineTest, PurgedPageThatClaimsToBeFromTheFutureDoesNotComeBackWhenThatTimeHasCome) {
  serving(*engine_);
  auto meta = *run(get_meta(others_, page_, Consistency::strong));
  meta->seen_marks.clear();  // As a writer that knows no tags has it.
  meta->generated_at = epoch_seconds(clock_.now()) + 8;
  for (const MarkKind kind : {MarkKind::invalidate, MarkKind::purge}) {
    Write write = Put{to_item(page_.pk, *meta)};
    ASSERT_TRUE(run(plain_table_->write(std::move(write), Durability::machine)));
    ASSERT_TRUE(run(mark_tag(others_, "", "news", kind)));
    ServeRequest stored = request();
    stored.only_if_cached = true;  // Nobody renders it.
    const std::string as = kind == MarkKind::purge ? "absent" : "stale: page 1";
    EXPECT_EQ(serving(*node(), stored, renderer()), as);
    clock_.advance(10s);
    EXPECT_EQ(serving(*node(), stored, renderer()), as);
    meta->generated_at += 20;
  }
  EXPECT_EQ(renders_, 1);
}

TEST_F(EngineTest, RequestWithAnIdIsDoneOnceAndReplayed) {
  ServeRequest triggered = request({.mode = ServeMode::blocking});
  triggered.request_id = "r1";
  EXPECT_EQ(serving(*engine_, triggered, renderer()), "miss: page 1");
  clock_.advance(60s);
  EXPECT_EQ(serving(*engine_, triggered, renderer()), "wait-hit: page 1");
  triggered.inputs = {{"policy", "2"}};
  EXPECT_THAT(serving(*engine_, triggered, renderer()), HasSubstr("used with other inputs"));
  EXPECT_EQ(renders_, 1);
}

TEST_F(EngineTest, RequestWithAnIdInProgressElsewhereIsServedStale) {
  serving(*engine_);
  clock_.advance(60s);
  ASSERT_TRUE(run(claim(others_, page_, "r1", request_hash({}), 600s)));
  ServeRequest triggered = request({.mode = ServeMode::blocking, .wait_limit = 0s});
  triggered.request_id = "r1";
  EXPECT_EQ(serving(*engine_, triggered, renderer()), "stale: page 1");
}

TEST_F(EngineTest, DrainWaitsForWhatIsUnderWayAndLetsNothingNewBegin) {
  std::optional<Result<Served>> answer;
  auto serving_one = test::start(test::store(engine_->serve(request(), behind_a_gate()), answer));
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  auto drained = test::start(engine_->drain());
  EXPECT_EQ(drained.wait_for(20ms), std::future_status::timeout);
  gate_.set();
  drained.get();
  serving_one.get();
  EXPECT_TRUE(*answer);
  page_ = *page_of("/another");
  EXPECT_THAT(serving(*engine_), HasSubstr("about to end"));
}

}  // namespace
}  // namespace facetheory
