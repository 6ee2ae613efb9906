#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/isr/blocking.h"

#include "tests/protocol/protocol_suite.h"
#include "tests/support/temporary_directory.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class RegenerateTest : public ProtocolSuite {
 protected:
  Renderer rendering(std::string bytes) {
    return [this, bytes = std::move(bytes)](RenderContext) -> Task<Result<Rendered>> {
      ++renders_;
      co_return rendered(bytes);
    };
  }
  Renderer failing(Error error) {
    return [this, error = std::move(error)](RenderContext) -> Task<Result<Rendered>> {
      ++renders_;
      co_return error;
    };
  }
  Renderer not_to_be_stored() {
    return [this](RenderContext) -> Task<Result<Rendered>> {
      ++renders_;
      Rendered page = rendered("for one alone");
      page.as = RenderedAs::transient;
      co_return page;
    };
  }
  RegenerateOutcome regenerating(Renderer renderer, RegenerateOptions options = {}) {
    return done([&] { return regenerate(isr_, page_, renderer, options); });
  }
  // Faults may leave a lease or a record behind; then it goes on when their time is over.
  RegenerateOutcome settling(Renderer renderer, RegenerateOptions options) {
    for (int attempt = 0;; ++attempt) {
      const RegenerateOutcome outcome = regenerating(renderer, options);
      const bool waiting =
          std::holds_alternative<LeaseHeld>(outcome) || std::holds_alternative<RequestInProgress>(outcome);
      if (!waiting || !GetParam().faulty || attempt == 10) return outcome;
      advance(seconds(60));
    }
  }
  static RegenerateOptions with_id(std::string id, std::map<std::string, std::string> inputs = {}) {
    RegenerateOptions options;
    options.request_id = std::move(id);
    options.inputs = std::move(inputs);
    return options;
  }
  std::string current() { return run(plain_.bodies->read(*text("META", "s3_key")))->value().bytes; }

  int renders_ = 0;
};

TEST_P(RegenerateTest, RendersAMissingPageAndThenNothingWhileItIsFresh) {
  EXPECT_TRUE(std::holds_alternative<Regenerated>(regenerating(rendering("one"))) || GetParam().faulty);
  EXPECT_EQ(current(), "one");
  const int renders = renders_;
  EXPECT_TRUE(std::holds_alternative<AlreadyFresh>(regenerating(rendering("two"))));
  EXPECT_EQ(renders_, renders);
  EXPECT_EQ(current(), "one");
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(RegenerateTest, RendersAgainWhenTheWindowHasEnded) {
  regenerating(rendering("one"));
  advance(seconds(60));
  EXPECT_TRUE(std::holds_alternative<Regenerated>(regenerating(rendering("two"))) || GetParam().faulty);
  EXPECT_EQ(current(), "two");
}

TEST_P(RegenerateTest, RendersAgainWhenATagWasInvalidated) {
  const Lease lease = acquired();
  Rendered page = rendered("tagged");
  const std::string tag = "regenerated " + page_.cache_key;
  page.tags = {tag};
  done([&] { return publish(isr_, lease, page, {}); });
  done([&] { return mark_tag(isr_, "", tag, MarkKind::invalidate); });
  regenerating(rendering("anew"));
  EXPECT_EQ(current(), "anew");
}

TEST_P(RegenerateTest, HealsAFreshPageWhoseBodyIsGone) {
  const Published page = published();
  ASSERT_TRUE(run(plain_.bodies->remove(page.meta.s3_key)));
  regenerating(rendering("healed"));
  EXPECT_EQ(current(), "healed");
}

TEST_P(RegenerateTest, RunsNothingWhileSomebodyElseHoldsTheLease) {
  const Lease lease = acquired(seconds(600));
  const auto outcome = regenerating(rendering("mine"));
  ASSERT_TRUE(std::holds_alternative<LeaseHeld>(outcome));
  EXPECT_EQ(std::get<LeaseHeld>(outcome).until, lease.expires_at);
  EXPECT_EQ(renders_, 0);
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);
}

TEST_P(RegenerateTest, WaitsForTheLeaseWhenAsked) {
  acquired(seconds(10));
  RegenerateOptions options;
  options.wait = seconds(120);
  EXPECT_TRUE(std::holds_alternative<Regenerated>(regenerating(rendering("waited"), options)) ||
              GetParam().faulty);
  EXPECT_EQ(current(), "waited");
}

TEST_P(RegenerateTest, FailedRenderKeepsTheOldPageAndMakesEverybodyBackOff) {
  published({}, "good");
  advance(seconds(60));
  const auto outcome = regenerating(failing({ErrorCode::unavailable, "origin answered 503"}));
  ASSERT_TRUE(std::holds_alternative<RenderFailed>(outcome) || GetParam().faulty);
  EXPECT_EQ(current(), "good");
  EXPECT_EQ(number("LOCK", "failures"), 1);
  EXPECT_THAT(*text("LOCK", "last_error"), HasSubstr("origin answered 503"));
  const auto next = regenerating(rendering("too early"));
  EXPECT_TRUE(std::holds_alternative<LeaseHeld>(next));
  advance(seconds(40));
  regenerating(rendering("recovered"));
  EXPECT_EQ(current(), "recovered");
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(RegenerateTest, WhoeverAsksForItIsToldOfTheFailureAtOnceWhileEverybodyBacksOff) {
  regenerating(failing({ErrorCode::unavailable, "origin answered 503"}));
  RegenerateOptions options;
  options.fail_in_backoff = true;
  options.wait = seconds(3600);
  const std::int64_t until = *number("LOCK", "lease_expires_at");
  const auto outcome = regenerating(rendering("too early"), options);
  ASSERT_TRUE(std::holds_alternative<RenderFailed>(outcome));
  EXPECT_TRUE(std::get<RenderFailed>(outcome).in_backoff);
  EXPECT_EQ(name(outcome), "in_backoff");
  EXPECT_EQ(std::get<RenderFailed>(outcome).retry_at, until);
  EXPECT_THAT(std::get<RenderFailed>(outcome).error.message, HasSubstr("origin answered 503"));
  EXPECT_EQ(row("META"), std::nullopt);
}

TEST_P(RegenerateTest, HolderWhoTookOverAfterFailuresIsNoBackoff) {
  regenerating(failing({ErrorCode::unavailable, "origin answered 503"}));
  advance(seconds(40));
  RegenerateOptions options;
  options.fail_in_backoff = true;
  acquired(seconds(600));
  EXPECT_EQ(row("LOCK")->attributes.find("backoff_token"), nullptr);
  EXPECT_EQ(number("LOCK", "failures"), 1);
  EXPECT_TRUE(std::holds_alternative<LeaseHeld>(regenerating(rendering("mine"), options)));
}

TEST_P(RegenerateTest, WaitsThroughABackoffOtherwise) {
  regenerating(failing({ErrorCode::unavailable, "origin answered 503"}));
  RegenerateOptions options;
  options.wait = seconds(3600);
  EXPECT_TRUE(std::holds_alternative<Regenerated>(regenerating(rendering("waited"), options)) ||
              GetParam().faulty);
  EXPECT_EQ(current(), "waited");
}

TEST_P(RegenerateTest, AnswerThatIsMarkedAsFailedIsNotPublished) {
  published({}, "good");
  advance(seconds(60));
  const Renderer sorry = [this](RenderContext) -> Task<Result<Rendered>> {
    Rendered page = rendered("sorry");
    page.as = RenderedAs::failed;
    page.body.metadata.status = 503;
    co_return page;
  };
  const auto outcome = regenerating(sorry);
  ASSERT_TRUE(std::holds_alternative<RenderFailed>(outcome) || GetParam().faulty);
  EXPECT_EQ(current(), "good");
  EXPECT_EQ(number("LOCK", "failures"), 1);
  EXPECT_THAT(*text("LOCK", "last_error"), HasSubstr("503"));
}

TEST_P(RegenerateTest, PageThatIsNotStoredLeavesNothingBehind) {
  const auto outcome = regenerating(not_to_be_stored(), with_id("private"));
  ASSERT_TRUE(std::holds_alternative<NotStored>(outcome) || GetParam().faulty);
  EXPECT_EQ(row("META"), std::nullopt);
  if (!GetParam().faulty) {
    EXPECT_FALSE(std::get<NotStored>(outcome).withdrawn);
    EXPECT_EQ(row("LOCK"), std::nullopt);
  }
  EXPECT_EQ(text("REQ#private", "status"), "FAILED");
  settling(rendering("for everybody"), with_id("private"));
  EXPECT_EQ(text("REQ#private", "status"), "COMPLETED");
  EXPECT_EQ(current(), "for everybody");
}

TEST_P(RegenerateTest, PageThatIsNoLongerForEverybodyIsWithdrawnAndItsVersionsStay) {
  PublishOptions history;
  history.history = 3;
  published(history, "for everybody");
  advance(seconds(60));
  const auto outcome = regenerating(not_to_be_stored());
  ASSERT_TRUE(std::holds_alternative<NotStored>(outcome) || GetParam().faulty);
  if (!GetParam().faulty) {
    EXPECT_TRUE(std::get<NotStored>(outcome).withdrawn);
  }
  EXPECT_EQ(name(RegenerateOutcome(NotStored{})), "not_stored");
  EXPECT_EQ(row("META"), std::nullopt);
  if (!GetParam().faulty) {
    EXPECT_EQ(row("LOCK"), std::nullopt);
  }
  EXPECT_EQ(version_sks().size(), 1U);
}

TEST_P(RegenerateTest, PageThatItsReaderRejectsIsRenderedAnewUnlessAnotherHasTakenItsPlace) {
  const Published old = published({}, "old");
  RegenerateOptions options;
  options.rejected = old.meta;
  advance(seconds(1));
  regenerating(rendering("new"), options);
  EXPECT_EQ(current(), "new");
  EXPECT_TRUE(std::holds_alternative<AlreadyFresh>(regenerating(rendering("newer"), options)));
  EXPECT_EQ(current(), "new");
}

TEST_P(RegenerateTest, RejectedPageThatIsPinnedStays) {
  published({}, "pinned");
  done([&] { return pin(isr_, page_); });
  RegenerateOptions options;
  options.rejected = done([&] { return get_meta(isr_, page_, Consistency::strong); });
  EXPECT_TRUE(std::holds_alternative<AlreadyFresh>(regenerating(rendering("new"), options)));
  EXPECT_EQ(current(), "pinned");
}

TEST_P(RegenerateTest, TellsOfTheLeaseAndTakesItsTurnFirst) {
  std::vector<RegenerateEvent> events;
  int turns = 0;
  std::weak_ptr<void> turn;
  bool in_turn = false;
  RegenerateOptions options;
  options.wait = seconds(3600);
  options.observe = [&](RegenerateEvent event) { events.push_back(event); };
  options.turn = [&]() -> Task<std::shared_ptr<void>> {
    EXPECT_TRUE(turn.expired());
    auto taken = std::make_shared<int>(++turns);
    turn = taken;
    co_return taken;
  };
  const Renderer renderer = [&](RenderContext) -> Task<Result<Rendered>> {
    in_turn = !turn.expired();
    co_return rendered("mine");
  };
  acquired(seconds(10));  // And never heard of again.
  regenerating(renderer, options);
  EXPECT_TRUE(in_turn);
  EXPECT_TRUE(turn.expired());
  EXPECT_GT(turns, 1);
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.front(), RegenerateEvent::lease_held);
  if (!GetParam().faulty) {
    EXPECT_EQ(events.back(), RegenerateEvent::lease_taken_over);
  }
}

TEST_P(RegenerateTest, RendererThatThrowsIsARenderThatFailed) {
  const Renderer throwing = [](RenderContext) -> Task<Result<Rendered>> {
    throw std::runtime_error("boom");
    co_return Rendered{};
  };
  const auto outcome = regenerating(throwing);
  ASSERT_TRUE(std::holds_alternative<RenderFailed>(outcome) || GetParam().faulty);
  EXPECT_THAT(*text("LOCK", "last_error"), HasSubstr("boom"));
  EXPECT_EQ(row("META"), std::nullopt);
}

TEST_P(RegenerateTest, InterruptedRenderGivesTheLeaseBackAtOnce) {
  const Renderer interrupted = [](RenderContext) -> Task<Result<Rendered>> {
    throw boost::system::system_error(boost::asio::error::operation_aborted);
    co_return Rendered{};
  };
  const auto outcome = regenerating(interrupted, with_id("r1"));
  ASSERT_TRUE(std::holds_alternative<RenderFailed>(outcome));
  EXPECT_EQ(std::get<RenderFailed>(outcome).retry_at, 0);
  EXPECT_EQ(row("LOCK"), std::nullopt);
  EXPECT_EQ(text("REQ#r1", "status"), "FAILED");
}

TEST_P(RegenerateTest, PageThatWasInvalidatedDuringTheRenderIsNotPublished) {
  published({}, "before");
  advance(seconds(60));
  bool once = true;
  const Renderer overtaken = [&](RenderContext) -> Task<Result<Rendered>> {
    ++renders_;
    if (std::exchange(once, false)) {
      Isr plain{*plain_.table, *plain_.bodies, clock_, random_, {}};
      [[maybe_unused]] auto done = co_await invalidate(plain, page_);
    }
    co_return rendered("of before the invalidation");
  };
  const auto outcome = done([&] { return regenerate(isr_, page_, overtaken, {}); });
  if (!GetParam().faulty) {
    EXPECT_TRUE(std::holds_alternative<LeaseLost>(outcome));
    EXPECT_EQ(current(), "before");
    EXPECT_EQ(number("META", "generated_at"), 0);
  }
}

TEST_P(RegenerateTest, WithAnIdCompletesItAndReplaysIt) {
  const auto first = settling(rendering("one"), with_id("r1", {{"tenant", "acme"}}));
  EXPECT_TRUE(std::holds_alternative<Regenerated>(first) || GetParam().faulty);
  EXPECT_EQ(text("REQ#r1", "status"), "COMPLETED");
  EXPECT_EQ(text("REQ#r1", "result_s3_key"), text("META", "s3_key"));
  advance(seconds(60));
  const int renders = renders_;
  const auto again = regenerating(rendering("two"), with_id("r1", {{"tenant", "acme"}}));
  ASSERT_TRUE(std::holds_alternative<Replayed>(again));
  EXPECT_EQ(std::get<Replayed>(again).result_s3_key, text("META", "s3_key"));
  EXPECT_EQ(renders_, renders);
}

TEST_P(RegenerateTest, WithTheSameIdAndOtherInputsIsRefusedBeforeRendering) {
  regenerating(rendering("one"), with_id("r1", {{"tenant", "acme"}}));
  advance(seconds(60));
  const int renders = renders_;
  EXPECT_TRUE(std::holds_alternative<RequestMismatch>(
      regenerating(rendering("two"), with_id("r1", {{"tenant", "other"}}))));
  EXPECT_EQ(renders_, renders);
}

TEST_P(RegenerateTest, WithTheSameIdUnderAnotherPolicyIsRefusedBeforeRendering) {
  RegenerateOptions options = with_id("r1");
  options.publish.history = 2;
  settling(rendering("one"), options);
  advance(seconds(60));
  const int renders = renders_;
  options.publish.history = 3;
  EXPECT_TRUE(std::holds_alternative<RequestMismatch>(regenerating(rendering("two"), options)));
  options.publish.history = 2;
  options.publish.ttl = seconds(600);
  EXPECT_TRUE(std::holds_alternative<RequestMismatch>(regenerating(rendering("two"), options)));
  options.publish.ttl.reset();
  EXPECT_TRUE(std::holds_alternative<Replayed>(regenerating(rendering("two"), options)));
  EXPECT_EQ(renders_, renders);
}

TEST_P(RegenerateTest, RecordThatSaysNothingOfThePolicyIsOfTheSameRequest) {
  const std::vector<std::string> earlier = {request_hash({}), request_hash({{"page", page_.pk}})};
  for (const std::string& hash : earlier) {
    const std::string id = "r" + hash.substr(0, 8);
    const RequestClaim claim = claimed(id, hash);
    done([&] { return complete(isr_, claim, "before.html"); });
    const auto outcome = regenerating(rendering("mine"), with_id(id));
    ASSERT_TRUE(std::holds_alternative<Replayed>(outcome)) << name(outcome);
    EXPECT_EQ(std::get<Replayed>(outcome).result_s3_key, "before.html");
  }
  // One that is taken over keeps its hash, so that whoever made it can repeat it.
  const RequestClaim dead = claimed("dead", request_hash({}));
  advance(seconds(120));
  settling(rendering("mine"), with_id("dead"));
  EXPECT_EQ(text("REQ#dead", "status"), "COMPLETED");
  EXPECT_EQ(text("REQ#dead", "request_hash"), request_hash({}));
}

TEST_P(RegenerateTest, GuardThatCannotHoldIsFoundBeforeRenderingAndNobodyBacksOff) {
  RegenerateOptions options = with_id("r1");
  options.publish.if_version = 7;
  auto outcome = settling(rendering("mine"), options);
  ASSERT_TRUE(std::holds_alternative<PublishRefused>(outcome)) << name(outcome);
  EXPECT_EQ(std::get<PublishRefused>(outcome).reason, PublishRefused::Reason::version);
  EXPECT_EQ(text("REQ#r1", "status"), "FAILED");

  published();
  options = {};
  options.even_if_fresh = true;
  options.publish.monotonic = true;
  options.publish.generated_at = *number("META", "generated_at");
  outcome = settling(rendering("mine"), options);
  ASSERT_TRUE(std::holds_alternative<PublishRefused>(outcome)) << name(outcome);
  EXPECT_EQ(std::get<PublishRefused>(outcome).reason, PublishRefused::Reason::superseded);
  EXPECT_EQ(renders_, 0);
  EXPECT_TRUE(row("LOCK") == std::nullopt || GetParam().faulty);
}

TEST_P(RegenerateTest, PinnedPageIsNotRenderedHoweverMuchItIsWanted) {
  const Published page = published();
  done([&] { return pin(isr_, page_); });
  RegenerateOptions options;
  options.even_if_fresh = true;
  auto outcome = regenerating(rendering("mine"), options);
  ASSERT_TRUE(std::holds_alternative<PublishRefused>(outcome)) << name(outcome);
  EXPECT_EQ(std::get<PublishRefused>(outcome).reason, PublishRefused::Reason::pinned);
  // Nor when its body is gone: nothing could be published.
  ASSERT_TRUE(run(plain_.bodies->remove(page.meta.s3_key)));
  outcome = settling(rendering("mine"), {});
  ASSERT_TRUE(std::holds_alternative<PublishRefused>(outcome)) << name(outcome);
  EXPECT_EQ(renders_, 0);
}

TEST_P(RegenerateTest, RequestOfAWorkerThatDiesIsHeldUpNoLongerThanItsPage) {
  const Lease theirs = acquired(seconds(60));
  RegenerateOptions options = with_id("r1");
  options.lease = seconds(10);
  options.wait = seconds(300);
  std::int64_t left = 0;
  const Renderer looking = [&](RenderContext context) -> Task<Result<Rendered>> {
    const Isr plain{*plain_.table, *plain_.bodies, clock_, random_, {}};
    auto row = co_await get_request(plain, context.page, "r1");
    if (row && *row) left = (*row)->in_progress_expires_at.value_or(0) - now();
    co_return rendered("waited");
  };
  settling(looking, options);
  EXPECT_GT(left, 0) << "while it waited for the lease the request was kept";
  EXPECT_LE(left, 10);
  EXPECT_EQ(current(), "waited");
}

TEST_P(RegenerateTest, GivesItsTurnBackWhenTheRequestWasTakenOverBeforeIt) {
  std::weak_ptr<void> turn;
  int turns = 0;
  RegenerateOptions options = with_id("r1");
  options.lease = seconds(10);
  options.wait = seconds(300);
  options.turn = [&]() -> Task<std::shared_ptr<void>> {
    EXPECT_TRUE(turn.expired()) << "it would wait for itself";
    if (++turns == 1) {
      advance(seconds(20));
      const Isr plain{*plain_.table, *plain_.bodies, clock_, random_, {}};
      auto row = co_await get_request(plain, page_, "r1");
      auto theirs = co_await claim(plain, page_, "r1", (*row)->request_hash, seconds(30), {});
      EXPECT_TRUE(theirs && std::holds_alternative<RequestClaim>(*theirs));
    }
    auto taken = std::make_shared<int>(turns);
    turn = taken;
    co_return taken;
  };
  settling(rendering("mine"), options);
  EXPECT_TRUE(turn.expired());
  EXPECT_GT(turns, 1);
  EXPECT_EQ(current(), "mine");
}

TEST_P(RegenerateTest, WithAnIdThatIsInProgressDoesNothing) {
  claimed("r1", request_hash({}));
  EXPECT_TRUE(std::holds_alternative<RequestInProgress>(regenerating(rendering("mine"), with_id("r1"))));
  EXPECT_EQ(renders_, 0);
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(RegenerateTest, OnAFreshPageLeavesNoRecord) {
  published();
  EXPECT_TRUE(std::holds_alternative<AlreadyFresh>(regenerating(rendering("mine"), with_id("r1"))));
  EXPECT_EQ(row("REQ#r1"), std::nullopt);
}

TEST_P(RegenerateTest, HandsTheRequestBackWhenSomebodyElseHoldsTheLease) {
  acquired(seconds(600));
  EXPECT_TRUE(std::holds_alternative<LeaseHeld>(regenerating(rendering("mine"), with_id("r1"))));
  EXPECT_EQ(text("REQ#r1", "status"), "FAILED");
  EXPECT_EQ(renders_, 0);
}

TEST_P(RegenerateTest, AttachesToAWinnerWhoseRenderBeganAfterTheRequest) {
  if (GetParam().faulty) return;  // The order of the steps is the point here.
  // While we render, our lease is taken over and the winner publishes.
  std::string winner;
  const Renderer overtaken = [&](RenderContext context) -> Task<Result<Rendered>> {
    // The winner is somebody else: that we are cancelled does not stop it.
    co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
    co_await boost::asio::this_coro::throw_if_cancelled(false);
    Isr plain{*plain_.table, *plain_.bodies, clock_, random_, {}};
    clock_.advance(seconds(1000));
    Page page = context.page;
    auto lease = co_await acquire(plain, page, seconds(30));
    Rendered theirs = rendered("the winner's");
    auto published = co_await publish(plain, std::get<Lease>(*lease), theirs, {});
    winner = std::get<Published>(*published).meta.s3_key;
    co_return rendered("mine");
  };
  const auto outcome = regenerating(overtaken, with_id("r1"));
  ASSERT_TRUE(std::holds_alternative<Replayed>(outcome));
  EXPECT_EQ(std::get<Replayed>(outcome).result_s3_key, winner);
  EXPECT_EQ(text("REQ#r1", "status"), "COMPLETED");
  EXPECT_EQ(text("REQ#r1", "result_s3_key"), winner);
  EXPECT_EQ(current(), "the winner's");
}

TEST_P(RegenerateTest, HandsTheRequestBackWhenTheRenderFails) {
  regenerating(failing({ErrorCode::unavailable, "boom"}), with_id("r1"));
  EXPECT_EQ(text("REQ#r1", "status"), "FAILED");
  EXPECT_THAT(*text("REQ#r1", "error"), HasSubstr("boom"));
  advance(seconds(60));
  settling(rendering("second attempt"), with_id("r1"));
  EXPECT_EQ(text("REQ#r1", "status"), "COMPLETED");
}

TEST_P(RegenerateTest, TellsTheRendererWhatIsReplaced) {
  const Published page = published();
  advance(seconds(60));
  std::optional<MetaRow> previous;
  const Renderer curious = [&](RenderContext context) -> Task<Result<Rendered>> {
    previous = context.previous;
    co_return rendered("next");
  };
  regenerating(curious);
  ASSERT_TRUE(previous);
  EXPECT_EQ(previous->s3_key, page.meta.s3_key);
}

INSTANTIATE_TEST_SUITE_P(Protocol, RegenerateTest, testing::ValuesIn(protocol_backends()),
                         protocol_backend_name);

class ConcurrentRegenerationTest : public testing::TestWithParam<ProtocolBackend> {};

TEST_P(ConcurrentRegenerationTest, RendersOncePerWindowHoweverManyWorkersAsk) {
  const ProtocolStores stores = GetParam().open(system_clock());
  const Isr isr{*stores.table, *stores.bodies};
  const Page page = *page_of("/concurrent/" + GetParam().name);
  std::atomic<int> renders = 0;
  const Renderer renderer = [&](RenderContext) -> Task<Result<Rendered>> {
    ++renders;
    co_await system_clock().sleep_for(std::chrono::milliseconds(50));
    Rendered rendered;
    rendered.body.bytes = "page";
    co_return rendered;
  };
  RegenerateOptions options;
  options.wait = seconds(20);
  std::vector<Task<Result<RegenerateOutcome>>> tasks;
  for (int worker = 0; worker < 16; ++worker)
    tasks.push_back(regenerate(isr, page, renderer, options));
  for (const auto& outcome : run_all(std::move(tasks))) {
    ASSERT_TRUE(outcome) << to_string(outcome.error());
    EXPECT_TRUE(std::holds_alternative<Regenerated>(*outcome) ||
                std::holds_alternative<AlreadyFresh>(*outcome));
  }
  EXPECT_EQ(renders, 1);
}

INSTANTIATE_TEST_SUITE_P(Protocol, ConcurrentRegenerationTest,
                         testing::ValuesIn(protocol_backends().begin(), protocol_backends().begin() + 3),
                         protocol_backend_name);

// The same without an event loop of one's own.
class BlockingTest : public testing::Test {
 protected:
  BlockingTest() {
    auto opened = BlockingIsr::open("lmdb:" + (directory_.path() / "table").string(),
                                    "file:" + (directory_.path() / "bodies").string());
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    isr_ = *std::move(opened);
  }
  static Result<Rendered> render(std::string bytes) {
    Rendered rendered;
    rendered.body.bytes = std::move(bytes);
    return rendered;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<BlockingIsr> isr_;
  Page page_ = *page_of("/blocking");
};

TEST_F(BlockingTest, WalksThroughTheProtocol) {
  const auto lease = std::get<Lease>(*isr_->acquire(page_, seconds(30)));
  EXPECT_TRUE(std::holds_alternative<LeaseHeld>(*isr_->acquire(page_, seconds(30))));
  EXPECT_TRUE(std::holds_alternative<Lease>(*isr_->refresh(lease)));
  const auto request = std::get<RequestClaim>(*isr_->claim(page_, "r1", request_hash({}), seconds(30)));
  EXPECT_TRUE(std::holds_alternative<RequestChanged>(*isr_->extend(request, seconds(30))));
  PublishOptions options;
  options.history = 2;
  options.request = RequestToComplete{"r1", request.owner_token};
  EXPECT_TRUE(std::holds_alternative<Published>(*isr_->publish(lease, *render("page"), options)));
  EXPECT_EQ((*isr_->get_request(page_, "r1"))->status, RequestStatus::completed);
  EXPECT_EQ(isr_->view(page_, Consistency::strong)->freshness.state, PageState::fresh);
  EXPECT_EQ((*isr_->read_body(*isr_->view(page_, Consistency::strong)))->bytes, "page");
  EXPECT_EQ(isr_->versions(page_)->size(), 1U);
  EXPECT_TRUE(std::holds_alternative<Pinned>(*isr_->pin(page_)));
  EXPECT_TRUE(std::holds_alternative<Unpinned>(*isr_->unpin(page_)));
  EXPECT_TRUE(std::holds_alternative<Invalidated>(*isr_->invalidate(page_)));
  EXPECT_TRUE(isr_->mark_tag("", "t", MarkKind::invalidate));
  int pages = 0;
  EXPECT_TRUE(isr_->for_each_page([&](const PageView&) { return ++pages > 0; }));
  EXPECT_EQ(pages, 1);
  EXPECT_TRUE(isr_->sweep({}));
  EXPECT_TRUE(isr_->purge(page_));
  EXPECT_EQ(*isr_->get_meta(page_, Consistency::strong), std::nullopt);
  EXPECT_EQ(*isr_->get_lock(page_), std::nullopt);
}

TEST_F(BlockingTest, KeepsTheLeaseWhileABlockingRendererRuns) {
  RegenerateOptions options;
  options.lease = seconds(2);
  std::optional<std::int64_t> first, last;
  const auto outcome = isr_->regenerate(
      page_,
      [&](RenderContext context) {
        first = context.lease.expires_at;
        // Bounded: until the expiry in LOCK has moved, as only a refresh can move it.
        for (int i = 0; i < 500 && last.value_or(0) <= *first; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
          last = (*isr_->get_lock(page_))->lease_expires_at;
        }
        return render("slow");
      },
      options);
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_TRUE(std::holds_alternative<Regenerated>(*outcome));
  EXPECT_GT(last, first);
}

TEST_F(BlockingTest, AsksTheRendererToStopWhenTheLeaseIsLost) {
  RegenerateOptions options;
  options.lease = seconds(2);
  bool stopped = false;
  const auto outcome = isr_->regenerate(
      page_,
      [&](RenderContext context) {
        EXPECT_TRUE(isr_->invalidate(page_));
        for (int i = 0; i < 500 && !stopped; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
          stopped = context.lost.stop_requested();
        }
        return render("late");
      },
      options);
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_TRUE(std::holds_alternative<LeaseLost>(*outcome));
  EXPECT_TRUE(stopped);
  EXPECT_EQ(*isr_->get_meta(page_, Consistency::strong), std::nullopt);
}

TEST_F(BlockingTest, InterruptionStopsTheRendererAndGivesTheLeaseBack) {
  std::stop_source interrupt;
  RegenerateOptions options;
  options.request_id = "r1";
  const auto outcome = isr_->regenerate(
      page_,
      [&](RenderContext context) {
        interrupt.request_stop();
        EXPECT_TRUE(context.lost.stop_requested());
        return render("interrupted");
      },
      options, interrupt.get_token());
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_TRUE(std::holds_alternative<RenderFailed>(*outcome));
  EXPECT_EQ(*isr_->get_lock(page_), std::nullopt);
  EXPECT_EQ((*isr_->get_request(page_, "r1"))->status, RequestStatus::failed);
}

TEST_F(BlockingTest, OpeningWhatCannotBeOpenedSaysWhy) {
  EXPECT_EQ(error_of(BlockingIsr::open("lmdb", "memory:")).code, ErrorCode::invalid);
  EXPECT_EQ(error_of(BlockingIsr::open("memory:", "nowhere")).code, ErrorCode::invalid);
}

TEST_F(BlockingTest, BodiesOfOneMachineAreRefusedBesideATableThatMachinesShare) {
  const std::string folder = (directory_.path() / "of-one-machine").string();
  for (const std::string& bodies : {"lmdb:" + folder, std::string("memory:")}) {
    const Error error = error_of(BlockingIsr::open("dynamodb:pages", bodies));
    EXPECT_EQ(error.code, ErrorCode::invalid);
    EXPECT_THAT(error.message,
                testing::HasSubstr("the table dynamodb:pages is shared, but the bodies " + bodies));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
  Platform platform;
  platform.environment =
      Environment(std::map<std::string, std::string, std::less<>>{{"AWS_REGION", "eu-central-1"}});
  EXPECT_TRUE(
      BlockingIsr::open("dynamodb:pages", "file:" + folder, {}, platform));  // All machines may mount it.
  EXPECT_TRUE(BlockingIsr::open("dynamodb:pages", "", {}, platform));
}

}  // namespace
}  // namespace facetheory::test
