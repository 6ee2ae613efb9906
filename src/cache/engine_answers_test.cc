// What the engine answers beyond pages for everybody: pages that are not stored, answers of renders that failed, pages
// that their reviews refuse, and what is served only if it is there.

#include "facetheory/isr/pages.h"

#include "tests/support/engine_fixture.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::run;
using testing::HasSubstr;
using testing::StartsWith;

class EngineAnswersTest : public test::EngineFixture {
 protected:
  // As renderer() and behind_a_gate(), but for one request alone.
  Renderer private_renderer() {
    return [this](RenderContext) -> Task<Result<Rendered>> {
      Rendered page = rendered(++renders_);
      page.as = RenderedAs::transient;
      co_return page;
    };
  }
  Renderer private_behind_a_gate() {
    return [this](RenderContext) -> Task<Result<Rendered>> {
      Rendered page = rendered(++renders_);
      page.as = RenderedAs::transient;
      rendering_.set();
      co_await gate_.wait(system_clock(), 10s);
      co_return page;
    };
  }
  // An origin that answers 503, with words of its own.
  Renderer sorry() {
    return [this](RenderContext) -> Task<Result<Rendered>> {
      Rendered page = rendered(++renders_);
      page.body.bytes = "sorry";
      page.body.metadata.status = 503;
      page.as = RenderedAs::failed;
      co_return page;
    };
  }
  Renderer failing_behind_a_gate() {
    return [this](RenderContext) -> Task<Result<Rendered>> {
      rendering_.set();
      co_await gate_.wait(system_clock(), 10s);
      co_return Error{ErrorCode::unavailable, "origin answered 503"};
    };
  }
  static ServeRequest reviewed(ServeRequest request, Review review) {
    request.review = [review](const KeptBody&, const MetaRow&, PageState) { return review; };
    return request;
  }
  std::optional<MetaRow> meta() { return *run(get_meta(others_, page_, Consistency::strong)); }
  std::optional<LockRow> lock() { return *run(get_lock(others_, page_)); }
  void drain() {
    ASSERT_TRUE(eventually([&] { return engine_->gauges().flights == 0; }));
  }

  const PagePolicy blocking_{.mode = ServeMode::blocking};
};

// --- pages that are not stored ----------------------------------------------------------------------------------

TEST_F(EngineAnswersTest, PageThatIsNotStoredGoesToWhoeverAskedAndOthersAskForThemselves) {
  Asked first = ask(request(), private_behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  Asked second = ask(request(), renderer());
  ASSERT_TRUE(eventually([&] { return engine_->gauges().waiters == 2; }));
  gate_.set();
  EXPECT_EQ(first.get(), "uncached: page 1");
  EXPECT_EQ(second.get(), "pass");
  EXPECT_EQ(renders_, 1);
  EXPECT_EQ(meta(), std::nullopt);
  EXPECT_EQ(lock(), std::nullopt);
  EXPECT_EQ(engine_->counters().not_stored, 1U);
  EXPECT_EQ(engine_->counters().pass, 1U);
}

TEST_F(EngineAnswersTest, ItIsRememberedForAWhileThatAPageIsNotStored) {
  EXPECT_EQ(serving({}, private_renderer()), "uncached: page 1");
  clock_.advance(9999ms);
  EXPECT_EQ(serving({}, renderer()), "pass");
  EXPECT_EQ(renders_, 1);
  clock_.advance(1ms);
  EXPECT_EQ(serving({}, renderer()), "miss: page 2");
  EXPECT_EQ(serving({}, renderer()), "hit: page 2");
}

TEST_F(EngineAnswersTest, PageThatFindsNoRoomIsServedWithoutBeingStoredUntilThereIs) {
  bool room = false;
  EngineOptions options;
  options.admit = [&](std::size_t bytes) {
    EXPECT_GT(bytes, 0U);
    return room;
  };
  const auto full = node(options);
  EXPECT_EQ(serving(*full), "uncached: page 1");
  EXPECT_EQ(serving(*full), "uncached: page 2");
  EXPECT_EQ(meta(), std::nullopt);
  EXPECT_EQ(lock(), std::nullopt);
  room = true;
  EXPECT_EQ(serving(*full), "miss: page 3");
  EXPECT_EQ(serving(*full), "hit: page 3");
  // One that stands there already is renewed all the same: it takes no more room, and would be withdrawn otherwise.
  room = false;
  ASSERT_TRUE(run(invalidate(isr_, page_)));
  EXPECT_EQ(serving(*full, request(blocking_), renderer()), "miss: page 4");
  EXPECT_EQ(serving(*full), "hit: page 4");
}

TEST_F(EngineAnswersTest, PageThatSomebodyElseStoredIsServedAlthoughItWasNotStoredBefore) {
  serving({}, private_renderer());
  const auto second = node();
  EXPECT_EQ(serving(*second), "miss: page 2");
  EXPECT_EQ(serving({}, renderer()), "hit: page 2");
}

TEST_F(EngineAnswersTest, OfPagesThatAreNotStoredOnlySoManyAreRemembered) {
  EngineOptions options;
  options.transient_pages = 1;
  const auto forgetful = node(options);
  serving(*forgetful, request(), private_renderer());
  const Page first = std::exchange(page_, *page_of("/another"));
  serving(*forgetful, request(), private_renderer());
  EXPECT_EQ(serving(*forgetful, request(), private_renderer()), "pass");
  page_ = first;
  EXPECT_EQ(serving(*forgetful, request(), private_renderer()), "uncached: page 3");
}

TEST_F(EngineAnswersTest, StalePageThatIsNoLongerForEverybodyIsWithdrawn) {
  serving({.history = 2}, renderer());
  clock_.advance(60s);
  EXPECT_EQ(serving({.history = 2}, private_renderer()), "stale: page 1");
  drain();
  EXPECT_EQ(meta(), std::nullopt);
  EXPECT_EQ(lock(), std::nullopt);
  EXPECT_EQ(run(versions(others_, page_))->size(), 1U);
  EXPECT_EQ(serving({}, renderer()), "pass");
}

TEST_F(EngineAnswersTest, RequestIdOfAPageThatIsNotStoredMayBeUsedAgain) {
  ServeRequest triggered = request();
  triggered.request_id = "r1";
  EXPECT_EQ(serving(*engine_, triggered, private_renderer()), "uncached: page 1");
  clock_.advance(10s);
  EXPECT_EQ(serving(*engine_, triggered, renderer()), "miss: page 2");
}

// --- renders that fail ------------------------------------------------------------------------------------------

TEST_F(EngineAnswersTest, AnswerOfAFailedRenderIsShownToAllWhoWaited) {
  const Renderer gated = [this](RenderContext context) -> Task<Result<Rendered>> {
    rendering_.set();
    co_await gate_.wait(system_clock(), 10s);
    const Renderer apology = sorry();
    co_return co_await apology(std::move(context));
  };
  Asked first = ask(request(), gated);
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  Asked second = ask(request(), renderer());
  ASSERT_TRUE(eventually([&] { return engine_->gauges().waiters == 2; }));
  gate_.set();
  EXPECT_EQ(first.get(), "failed: sorry");
  EXPECT_EQ(second.get(), "failed: sorry");
  EXPECT_EQ((**first.answer)->retry_at, isr_.now() + 3);
  EXPECT_THAT((**first.answer)->reason, HasSubstr("status 503"));
  EXPECT_EQ(meta(), std::nullopt);
  EXPECT_EQ(engine_->counters().failed, 2U);
  EXPECT_EQ(engine_->counters().renders_failed, 1U);
}

TEST_F(EngineAnswersTest, AnswerOfAFailedRenderReplacesNoPage) {
  serving(*engine_);
  clock_.advance(60s);
  EXPECT_EQ(serving(blocking_, sorry()), "stale: page 1");
  clock_.advance(60s);
  EXPECT_EQ(serving({.mode = ServeMode::blocking, .on_failure = OnFailure::error}, sorry()), "failed: sorry");
  EXPECT_EQ(meta()->generated_at, isr_.now() - 120);
}

TEST_F(EngineAnswersTest, WhileEverybodyBacksOffNobodyIsKeptWaiting) {
  const std::string first = serving({}, failing());
  EXPECT_THAT(first, HasSubstr("origin answered 503"));
  const Result<Served> second = run(engine_->serve(request(), renderer()));
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("origin answered 503"));
  EXPECT_EQ(second.error().retry_at, isr_.now() + 3);
  EXPECT_EQ(renders_, 1);
  EXPECT_EQ(engine_->counters().renders_failed, 1U);
  EXPECT_EQ(engine_->counters().leases_contended, 0U);
  clock_.advance(3s);
  EXPECT_EQ(serving({}, renderer()), "miss: page 2");
}

TEST_F(EngineAnswersTest, PageWhoseRendersFailIsNotTriedInTheBackgroundForEveryRequest) {
  serving(*engine_);
  clock_.advance(60s);
  std::atomic<int> regenerations = 0;
  EngineOptions options;
  options.on_regenerated = [&](std::string_view, Duration) { ++regenerations; };
  const auto other = node(options);
  engines_.push_back(other.get());
  serving(*other, request(), failing());
  ASSERT_TRUE(eventually([&] { return other->gauges().flights == 0; }));
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(serving(*other, request(), renderer()), "stale: page 1");
  EXPECT_EQ(regenerations, 1);
  ASSERT_TRUE(run(invalidate(others_, page_)));
  clock_.advance(1s);
  EXPECT_EQ(serving(*other, request(), renderer()), "stale: page 1");
  ASSERT_TRUE(eventually([&] { return other->counters().published == 1; }));
  engines_.pop_back();
  run(other->drain());
}

TEST_F(EngineAnswersTest, RendererThatTakesTooLongIsCancelledAndHasFailed) {
  const Renderer hanging = [this](RenderContext context) -> Task<Result<Rendered>> {
    const std::stop_callback told(context.lost, [this] { rendering_.set(); });
    co_await clock_.sleep_for(1h);
    co_return rendered(1);
  };
  Asked asked = ask(request({.render_limit = 5s}), hanging);
  ASSERT_TRUE(pass_until([&] { return asked.is_answered(); }));
  EXPECT_EQ(asked.get(), "error: the render failed: not rendered within 5 s");
  EXPECT_GT((**asked.answer).error().retry_at, 0);
  EXPECT_TRUE(run(rendering_.wait(system_clock(), 0s)));
}

TEST_F(EngineAnswersTest, RendersWaitForTheirTurnWithoutTheLease) {
  EngineOptions options;
  options.renders = 1;
  const auto busy = node(options);
  engines_.push_back(busy.get());
  Asked first = ask(*busy, request(), behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  page_ = *page_of("/another");
  Asked second = ask(*busy, request(), renderer());
  ASSERT_TRUE(eventually([&] { return busy->gauges().waiters == 2; }));
  run(system_clock().sleep_for(10ms));
  EXPECT_EQ(lock(), std::nullopt);
  EXPECT_EQ(busy->gauges().flights, 2U);
  EXPECT_EQ(renders_, 1);
  gate_.set();
  EXPECT_EQ(first.get(), "miss: page 1");
  EXPECT_EQ(second.get(), "miss: page 2");
  engines_.pop_back();
}

// --- reviews ----------------------------------------------------------------------------------------------------

TEST_F(EngineAnswersTest, PageThatDoesNotSuitIsHandedOutAsSuchAndNothingBegins) {
  serving(*engine_);
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.suits = false}), renderer()), "other: page 1");
  clock_.advance(60s);
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.suits = false}), renderer()), "other: page 1");
  script_->chance(Fault::fail, 1.0);
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.suits = false}), renderer()), "other: page 1");
  script_->clear();
  EXPECT_EQ(renders_, 1);
  EXPECT_EQ(engine_->gauges().flights, 0U);
  EXPECT_EQ(engine_->counters().other, 3U);
}

TEST_F(EngineAnswersTest, ReviewSeesThePageAndItsState) {
  serving(*engine_);
  std::vector<std::string> seen;
  ServeRequest looked = request(blocking_);
  looked.review = [&](const KeptBody& body, const MetaRow& meta, PageState state) {
    seen.push_back(std::string(body.bytes()) + " " + std::string(name(state)) + " " +
                   std::to_string(meta.revalidate_seconds));
    return Review{};
  };
  serving(*engine_, looked, renderer());
  clock_.advance(60s);
  EXPECT_EQ(serving(*engine_, looked, renderer()), "miss: page 2");
  EXPECT_EQ(seen, (std::vector<std::string>{"page 1 fresh 60", "page 1 stale 60"}));
}

TEST_F(EngineAnswersTest, WhoeverJoinedARenderReviewsThePageAndWhoeverBeganItDoesNot) {
  Asked first = ask(reviewed(request(), {.suits = false}), behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  Asked second = ask(reviewed(request(), {.suits = false}), renderer());
  Asked third = ask(request(), renderer());
  ASSERT_TRUE(eventually([&] { return engine_->gauges().waiters == 3; }));
  gate_.set();
  EXPECT_EQ(first.get(), "miss: page 1");
  EXPECT_EQ(second.get(), "other: page 1");
  EXPECT_EQ(third.get(), "miss: page 1");
}

TEST_F(EngineAnswersTest, WhatIsToBeConfirmedForEachRequestIsNotForThoseWhoJoinedItsRender) {
  const ServeRequest wanted = reviewed(request(blocking_), {.fresh = false, .shared = false});
  Asked first = ask(wanted, behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  Asked second = ask(wanted, renderer());
  ASSERT_TRUE(eventually([&] { return engine_->gauges().waiters == 2; }));
  gate_.set();
  EXPECT_EQ(first.get(), "miss: page 1");
  EXPECT_EQ(second.get(), "pass");
  EXPECT_EQ(serving(*engine_, wanted, renderer()), "miss: page 2");
}

TEST_F(EngineAnswersTest, WhoeverJoinedTheRenderOfSuchAPageGetsTheStaleOneIfThatFails) {
  serving(*engine_);
  const ServeRequest wanted = reviewed(request(blocking_), {.fresh = false, .shared = false});
  Asked first = ask(wanted, failing_behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  Asked second = ask(wanted, renderer());
  ASSERT_TRUE(eventually([&] { return engine_->gauges().waiters == 2; }));
  ServeRequest strict = wanted;
  strict.policy.on_failure = OnFailure::error;
  EXPECT_EQ(serving(*engine_, strict, renderer()), "pass");  // Without waiting.
  gate_.set();
  EXPECT_EQ(first.get(), "stale: page 1");
  EXPECT_EQ(second.get(), "stale: page 1");
}

TEST_F(EngineAnswersTest, PageOfAnotherNodeIsReviewedAfterWaitingForIt) {
  const auto second = node();
  engines_.push_back(second.get());
  Asked theirs = ask(*second, request(), behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  Asked ours = ask(reviewed(request(), {.suits = false}), renderer());
  Asked strict = ask(reviewed(request(), {.shared = false}), renderer());
  ASSERT_TRUE(eventually([&] { return engine_->counters().leases_contended == 1; }));
  gate_.set();
  EXPECT_EQ(theirs.get(), "miss: page 1");
  ASSERT_TRUE(pass_until([&] { return ours.is_answered() && strict.is_answered(); }));
  EXPECT_EQ(ours.get(), "other: page 1");
  EXPECT_EQ(strict.get(), "pass");
  engines_.pop_back();
  run(second->drain());
}

TEST_F(EngineAnswersTest, FreshPageThatIsNotFreshEnoughIsRenderedAnew) {
  serving(*engine_);
  EXPECT_EQ(serving(*engine_, reviewed(request(blocking_), {.fresh = false}), renderer()), "miss: page 2");
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.fresh = false}), renderer()), "stale: page 2");
  ASSERT_TRUE(eventually([&] { return engine_->counters().published == 3; }));
  EXPECT_EQ(serving(*engine_), "hit: page 3");
  EXPECT_EQ(serving(*engine_, reviewed(request(blocking_), {.fresh = false}), failing()), "stale: page 3");
}

TEST_F(EngineAnswersTest, WhatMayBeStaleInAnyModeIsNotWaitedForUnlessItWasInvalidated) {
  serving(*engine_);
  clock_.advance(60s);
  const ServeRequest allowed = reviewed(request(blocking_), {.in_any_mode = true});
  EXPECT_EQ(serving(*engine_, allowed, renderer()), "stale: page 1");
  ASSERT_TRUE(eventually([&] { return engine_->counters().published == 2; }));
  ASSERT_TRUE(run(invalidate(others_, page_)));
  EXPECT_EQ(serving(*engine_, allowed, renderer()), "miss: page 3");
  clock_.advance(60s);
  const ServeRequest too_old = reviewed(
      request({.mode = ServeMode::blocking, .stale_for = std::chrono::seconds(0)}), {.in_any_mode = true});
  EXPECT_EQ(serving(*engine_, too_old, renderer()), "miss: page 4");
}

TEST_F(EngineAnswersTest, PinnedPageIsFreshWhateverItsReviewSays) {
  serving(*engine_);
  ASSERT_TRUE(run(pin(others_, page_)));
  EXPECT_EQ(serving(*engine_, reviewed(request(blocking_), {.fresh = false}), renderer()), "hit: page 1");
}

TEST_F(EngineAnswersTest, OneRenderIsEnoughForAllNodesThatFindAPageNotFreshEnough) {
  serving(*engine_);
  const auto second = node();
  engines_.push_back(second.get());
  const ServeRequest wanted = reviewed(request(blocking_), {.fresh = false});
  Asked theirs = ask(*second, wanted, behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  Asked ours = ask(wanted, renderer());
  ASSERT_TRUE(eventually([&] { return engine_->counters().leases_contended == 1; }));
  clock_.advance(1s);
  gate_.set();
  EXPECT_EQ(theirs.get(), "miss: page 2");
  ASSERT_TRUE(pass_until([&] { return ours.is_answered(); }));
  EXPECT_EQ(ours.get(), "wait-hit: page 2");
  EXPECT_EQ(renders_, 2);
  engines_.pop_back();
  run(second->drain());
}

TEST_F(EngineAnswersTest, ReviewSaysWhetherAStalePageMayBeServedMeanwhile) {
  serving(*engine_);
  clock_.advance(60s);
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.while_stale = false}), renderer()), "miss: page 2");
}

TEST_F(EngineAnswersTest, ReviewSaysWhetherAStalePageMayBeServedOnFailure) {
  serving(*engine_);
  clock_.advance(60s);
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.while_stale = false}), failing()), "stale: page 1");
  clock_.advance(60s);
  EXPECT_THAT(serving(*engine_, reviewed(request(), {.while_stale = false, .on_failure = false}), failing()),
              HasSubstr("error"));
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.on_failure = false}), failing()), "stale: page 1");
}

TEST_F(EngineAnswersTest, ReviewSaysWhetherThePageMayBeServedWithoutTheTable) {
  serving(*engine_);
  script_->chance(Fault::fail, 1.0);
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.fresh = false}), renderer()),
            "stale-metadata-error: page 1");
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.even_uncertain = false}), renderer()),
            "uncached: page 2");
  EXPECT_EQ(serving(*engine_, reviewed(request(), {.even_uncertain = false}), sorry()), "failed: sorry");
  script_->clear();
}

// --- only if cached ---------------------------------------------------------------------------------------------

TEST_F(EngineAnswersTest, WhatIsWantedOnlyIfCachedIsNeitherRenderedNorWaitedFor) {
  ServeRequest cached = request();
  cached.only_if_cached = true;
  EXPECT_EQ(serving(*engine_, cached, renderer()), "absent");
  serving(*engine_);
  EXPECT_EQ(serving(*engine_, cached, renderer()), "hit: page 1");
  clock_.advance(60s);
  EXPECT_EQ(serving(*engine_, cached, renderer()), "stale: page 1");
  EXPECT_EQ(serving(*engine_, reviewed(cached, {.while_stale = false}), renderer()), "absent");
  cached.policy.mode = ServeMode::blocking;
  EXPECT_EQ(serving(*engine_, cached, renderer()), "absent");
  script_->chance(Fault::fail, 1.0);
  EXPECT_EQ(serving(*engine_, cached, renderer()), "stale-metadata-error: page 1");
  page_ = *page_of("/another");
  cached.page = page_;
  EXPECT_EQ(serving(*engine_, cached, renderer()), "absent");
  script_->clear();
  EXPECT_EQ(engine_->gauges().flights, 0U);
  EXPECT_EQ(engine_->counters().absent, 4U);
  EXPECT_EQ(renders_, 1);
}

// --- bodies and memory ------------------------------------------------------------------------------------------

struct Compressed : KeptBody {
  explicit Compressed(Body body) : KeptBody(std::move(body)), smaller(bytes().substr(0, 1)) {}
  const std::string smaller;
};

TEST_F(EngineAnswersTest, BodyIsPreparedOnceForAllRequests) {
  std::atomic<int> prepared = 0;
  EngineOptions options;
  options.prepare = [&](Body body) {
    ++prepared;
    return PreparedBody{std::make_shared<const Compressed>(std::move(body)), 20'000};
  };
  const auto renders = node(options);
  engines_.push_back(renders.get());
  const auto smaller = [](const Result<Served>& served) {
    return static_cast<const Compressed&>(*served->body).smaller;
  };
  EXPECT_EQ(smaller(run(renders->serve(request(), renderer()))), "p");
  EXPECT_EQ(smaller(run(renders->serve(request(), renderer()))), "p");
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(renders->gauges().bodies_in_memory, 1U);
  EXPECT_GE(renders->gauges().bytes_in_memory, 20'000U);

  const auto reads = node(options);
  script_->set_delay(1s);
  script_->queue("read", Fault::delay);
  std::vector<Asked> asked;
  for (int i = 0; i < 20; ++i)
    asked.push_back(ask(*reads, request(), renderer()));
  ASSERT_TRUE(clock_.wait_for_sleepers(20));
  clock_.advance(1s);
  for (Asked& each : asked)
    EXPECT_EQ(each.get(), "hit: page 1");
  EXPECT_EQ(prepared, 2);
  EXPECT_EQ(reads->counters().bodies_read, 1U);
  const auto body = run(reads->body(meta()->s3_key));
  ASSERT_TRUE(body);
  EXPECT_EQ((*body)->bytes(), "page 1");
  EXPECT_EQ(prepared, 2);
  EXPECT_EQ(run(reads->body("gone")).error().code, ErrorCode::corrupt);
  engines_.pop_back();
}

TEST_F(EngineAnswersTest, BodyThatIsPublishedAgainIsNotPreparedAgain) {
  std::atomic<int> prepared = 0;
  EngineOptions options;
  options.prepare = [&](Body body) {
    ++prepared;
    return PreparedBody{std::make_shared<const KeptBody>(std::move(body)), 100};
  };
  const auto renews = node(options);
  const Renderer same = [](RenderContext) -> Task<Result<Rendered>> { co_return rendered(7); };
  serving(*renews, request(), same);
  clock_.advance(60s);
  EXPECT_EQ(serving(*renews, request(blocking_), same), "miss: page 7");
  EXPECT_EQ(prepared, 1);
}

TEST_F(EngineAnswersTest, ForgottenPointerIsReadAnewAndStillTheLastKnown) {
  EngineOptions options;
  options.pointer_ttl = 1h;
  const auto trusting = node(options);
  engines_.push_back(trusting.get());
  serving(*trusting);
  EXPECT_EQ(serving(*trusting), "hit: page 1");
  ASSERT_TRUE(run(invalidate(others_, page_)));
  EXPECT_EQ(serving(*trusting), "hit: page 1");
  trusting->forget(page_);
  EXPECT_EQ(serving(*trusting, request(blocking_), renderer()), "miss: page 2");
  trusting->forget(page_);
  script_->chance(Fault::fail, 1.0);
  EXPECT_EQ(serving(*trusting), "stale-metadata-error: page 2");
  script_->clear();
  engines_.pop_back();
}

TEST_F(EngineAnswersTest, ReadThatBeganBeforeThePointerWasForgottenIsNotTrusted) {
  serving(*engine_);
  EngineOptions options;
  options.pointer_ttl = 1h;
  const auto trusting = node(options);
  engines_.push_back(trusting.get());
  script_->set_delay(1s);
  script_->queue("get_all", Fault::none);
  script_->queue("get_all", Fault::delay);  // META was read, its marks are on the way.
  Asked before = ask(*trusting, request(), renderer());
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  ASSERT_TRUE(run(invalidate(others_, page_)));
  trusting->forget(page_);
  Asked after = ask(*trusting, request(blocking_), renderer());
  ASSERT_TRUE(eventually([&] {
    clock_.advance(1ms);  // It waits so long for others, beside a read that is under way.
    return after.is_answered();
  }));
  EXPECT_EQ(after.get(), "miss: page 2");
  ASSERT_TRUE(run(invalidate(others_, page_)));
  trusting->forget(page_);
  clock_.advance(1s);
  EXPECT_EQ(before.get(), "hit: page 1");
  EXPECT_EQ(serving(*trusting, request(blocking_), renderer()), "miss: page 3");
  engines_.pop_back();
}

// --- what others do meanwhile -----------------------------------------------------------------------------------

TEST_F(EngineAnswersTest, RequestThatNeedNotWaitForAnotherNodeDoesNotWaitBesideOneThatDoes) {
  serving(*engine_);
  clock_.advance(60s);
  ASSERT_TRUE(run(acquire(others_, page_, 3600s)));
  Asked patient = ask(request({.mode = ServeMode::blocking, .wait_limit = 20s}), renderer());
  ASSERT_TRUE(eventually([&] { return engine_->counters().leases_contended == 1; }));
  EXPECT_EQ(serving({.mode = ServeMode::blocking, .on_contention = OnContention::serve_stale}, renderer()),
            "stale: page 1");
  EXPECT_FALSE(patient.is_answered());
  ASSERT_TRUE(pass_until([&] { return patient.is_answered(); }));
  EXPECT_EQ(patient.get(), "stale: page 1");
  EXPECT_EQ(renders_, 1);
}

TEST_F(EngineAnswersTest, PageThatHasBecomeTooOldIsNotServedWhenAnotherNodeIsFoundRendering) {
  serving(*engine_);
  EngineOptions options;
  options.renders = 1;
  const auto busy = node(options);
  engines_.push_back(busy.get());
  clock_.advance(61s);
  ASSERT_TRUE(run(acquire(others_, page_, 3600s)));
  Asked first = ask(*busy, {.page = *page_of("/other")}, behind_a_gate());
  ASSERT_TRUE(run(rendering_.wait(system_clock(), 10s)));
  PagePolicy policy;
  policy.mode = ServeMode::blocking;
  policy.on_contention = OnContention::serve_stale;
  policy.stale_for = 2s;
  policy.wait_limit = 20s;
  Asked second = ask(*busy, request(policy), renderer());  // It has to wait for its turn.
  run(system_clock().sleep_for(50ms));
  clock_.advance(3s);
  gate_.set();
  EXPECT_EQ(first.get(), "miss: page 2");
  ASSERT_TRUE(pass_until([&] { return second.is_answered(); }));
  EXPECT_THAT(second.get(), HasSubstr("error"));
  engines_.pop_back();
}

TEST_F(EngineAnswersTest, LimitOfStaleServingHoldsAfterAnInvalidation) {
  serving(*engine_);
  ASSERT_TRUE(run(invalidate(others_, page_)));
  clock_.advance(9s);
  EXPECT_EQ(serving({.mode = ServeMode::blocking, .stale_for = 10s}, failing()), "stale: page 1");
  clock_.advance(60s);
  EXPECT_THAT(serving({.mode = ServeMode::blocking, .stale_for = 10s}, failing()), HasSubstr("error"));
  clock_.advance(60s);
  EXPECT_EQ(serving(blocking_, failing()), "stale: page 1");
}

TEST_F(EngineAnswersTest, RecordOfARequestDoesNotBringAPurgedPageBack) {
  ServeRequest triggered = request();
  triggered.request_id = "r1";
  EXPECT_EQ(serving(*engine_, triggered, renderer()), "miss: page 1");
  ASSERT_TRUE(run(purge(others_, page_)));
  EXPECT_EQ(serving(*engine_, triggered, renderer()), "miss: page 2");
  clock_.advance(60s);
  triggered.policy.mode = ServeMode::blocking;
  EXPECT_EQ(serving(*engine_, triggered, renderer()), "miss: page 3");
}

TEST_F(EngineAnswersTest, PurgedPageIsNotServedWhileTheTableIsDown) {
  serving(*engine_);
  ASSERT_TRUE(run(mark_tag(others_, "", "news", MarkKind::purge)));
  EXPECT_THAT(serving({}, failing()), StartsWith("error"));
  script_->chance(Fault::fail, 1.0);
  EXPECT_EQ(serving({}, renderer()), "uncached: page 3");
  script_->clear();
}

TEST_F(EngineAnswersTest, RegenerationsAreToldByTheirOutcomes) {
  std::vector<std::string> outcomes;
  EngineOptions options;
  options.on_regenerated = [&](std::string_view outcome, Duration took) {
    outcomes.push_back(std::string(outcome) + (took < 1s ? "" : " late"));
  };
  const auto counted = node(options);
  engines_.push_back(counted.get());
  serving(*counted, request(), renderer());
  clock_.advance(60s);
  serving(*counted, request(blocking_), failing());
  serving(*counted, request(blocking_), renderer());
  clock_.advance(60s);
  serving(*counted, request(blocking_), private_renderer());
  script_->queue("write", Fault::fail);
  clock_.advance(60s);
  serving(*counted, request(), renderer());
  EXPECT_THAT(outcomes, testing::ElementsAre("published", "failed", "in_backoff", "not_stored", "error"));
  EXPECT_EQ(counted->counters().leases_acquired, 3U);
  EXPECT_EQ(counted->gauges().flights, 0U);
  EXPECT_EQ(counted->gauges().waiters, 0U);
  EXPECT_FALSE(counted->gauges().table_down);
  engines_.pop_back();
}

TEST_F(EngineAnswersTest, TableThatIsLeftAloneIsSaidToBeDown) {
  script_->chance(Fault::fail, 1.0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(engine_->gauges().table_down);
    serving(*engine_);
  }
  EXPECT_TRUE(engine_->gauges().table_down);
  script_->clear();
}

}  // namespace
}  // namespace facetheory
