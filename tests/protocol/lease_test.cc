#include "tests/protocol/protocol_suite.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

class LeaseTest : public ProtocolSuite {
 protected:
  bool is_held(const Isr& by) {
    return std::holds_alternative<LeaseHeld>(done([&] { return acquire(by, page_, seconds(30)); }));
  }
};

TEST_P(LeaseTest, SecondWorkerAcquiresOnlyAfterTheFirstLeaseExpires) {
  const Lease first = acquired(seconds(30));
  const auto refused = done([&] { return acquire(isr_, page_, seconds(30)); });
  ASSERT_TRUE(std::holds_alternative<LeaseHeld>(refused));
  EXPECT_EQ(std::get<LeaseHeld>(refused).until, first.expires_at);

  clock_.set_now(WallTime(seconds(first.expires_at - 1)));
  EXPECT_TRUE(is_held(isr_));
  clock_.set_now(WallTime(seconds(first.expires_at)));
  const Lease second = acquired();
  EXPECT_NE(second.token, first.token);
  EXPECT_EQ(text("LOCK", "lease_token"), second.token);
}

TEST_P(LeaseTest, MarksThatItsHolderFoundDecideForWhoeverPublishesWithItsTokenAlone) {
  const std::string tag = "tag of " + page_.cache_key;
  const auto acquired_in_steps = [&] {
    Lease lease = acquired();
    auto view = done([&] { return view_before_render(isr_, page_, {tag}); });
    done([&] { return note_marks(isr_, lease, view.seen_marks); });
    return Lease{.page = page_, .token = lease.token};
  };
  const auto publishing = [&](const Lease& lease) {
    Rendered page = rendered();
    page.tags = {tag};
    const auto outcome = done([&] { return publish(isr_, lease, page, {}); });
    EXPECT_TRUE(std::holds_alternative<Published>(outcome));
    return done([&] { return view(isr_, page_, Consistency::strong); }).freshness.state;
  };
  const auto mark = [&] { done([&] { return mark_tag(isr_, "", tag, MarkKind::invalidate); }); };
  mark();
  EXPECT_EQ(publishing(acquired_in_steps()), PageState::fresh);  // By its time it would be stale at birth.
  const Lease before = acquired_in_steps();
  clock_.advance(seconds(20));
  mark();
  EXPECT_EQ(publishing(before), PageState::stale);
}

TEST_P(LeaseTest, MarksOfALeaseThatIsOverAreNotThoseOfTheNext) {
  const Lease first = acquired();
  auto view = done([&] { return view_before_render(isr_, page_, {"tag of " + page_.cache_key}); });
  done([&] { return note_marks(isr_, first, view.seen_marks); });
  ASSERT_NE(row("LOCK")->attributes.find("seen_marks"), nullptr);
  advance(seconds(31));
  const auto lost = done([&] { return note_marks(isr_, first, view.seen_marks); });
  EXPECT_TRUE(std::holds_alternative<LeaseLost>(lost));
  acquired();
  EXPECT_EQ(row("LOCK")->attributes.find("seen_marks"), nullptr);
}

TEST_P(LeaseTest, AcquireWritesWhatOtherLanguagesRead) {
  const std::int64_t before = now();
  const Lease lease = acquired(seconds(30));
  EXPECT_GE(lease.acquired_at, before);
  EXPECT_EQ(lease.expires_at, lease.acquired_at + 30);
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);
  EXPECT_EQ(number("LOCK", "lease_expires_at"), lease.expires_at);
  EXPECT_EQ(number("LOCK", "acquired_at"), lease.acquired_at);
  EXPECT_EQ(number("LOCK", "ttl"), lease.expires_at + 3600);
}

TEST_P(LeaseTest, ExpiredLockIsTakenOverThoughItsTtlHasNotPassed) {
  put("LOCK", {{"lease_token", "theirs"}, {"lease_expires_at", now()}, {"ttl", now() + 3600}});
  EXPECT_EQ(text("LOCK", "lease_token"), "theirs");
  EXPECT_EQ(text("LOCK", "lease_token"), "theirs");
  const Lease lease = acquired();
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);
}

TEST_P(LeaseTest, HeldLockIsRespectedThoughItsTtlHasPassed) {
  put("LOCK", {{"lease_token", "theirs"}, {"lease_expires_at", now() + 500}, {"ttl", now() - 500}});
  EXPECT_TRUE(is_held(isr_));
  EXPECT_EQ(text("LOCK", "lease_token"), "theirs");
}

TEST_P(LeaseTest, LockReleasedByUpdateIsNotHeld) {
  put("LOCK", {{"lease_token", "theirs"}});
  const Lease lease = acquired();
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);
}

TEST_P(LeaseTest, EveryAttemptHasATokenOfItsOwn) {
  const Lease first = acquired();
  done([&] { return release(isr_, first); });
  const Lease second = acquired();
  EXPECT_NE(first.token, second.token);
}

TEST_P(LeaseTest, ReleaseFreesThePage) {
  const Lease lease = acquired();
  EXPECT_TRUE(std::holds_alternative<LeaseReleased>(done([&] { return release(isr_, lease); })));
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(LeaseTest, ReleaseWithAnotherTokenChangesNothing) {
  const Lease lease = acquired();
  Lease other = lease;
  other.token = "0b9c5ad2-6b1f-4e0f-9d4f-0d6f6f7f3c55";
  EXPECT_TRUE(std::holds_alternative<LeaseLost>(done([&] { return release(isr_, other); })));
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);
}

TEST_P(LeaseTest, RefreshExtendsTheLeaseFromNow) {
  const Lease lease = acquired(seconds(30));
  advance(seconds(20));
  const auto refreshed = done([&] { return refresh(isr_, lease); });
  ASSERT_TRUE(std::holds_alternative<Lease>(refreshed));
  EXPECT_GE(std::get<Lease>(refreshed).expires_at, lease.acquired_at + 50);
  EXPECT_EQ(number("LOCK", "lease_expires_at"), std::get<Lease>(refreshed).expires_at);
  EXPECT_EQ(number("LOCK", "ttl"), std::get<Lease>(refreshed).expires_at + 3600);
  EXPECT_EQ(number("LOCK", "acquired_at"), lease.acquired_at);
}

TEST_P(LeaseTest, RefreshNeverShortensTheLease) {
  Lease lease = acquired(seconds(600));
  lease.length = seconds(10);
  const auto refreshed = done([&] { return refresh(isr_, lease); });
  ASSERT_TRUE(std::holds_alternative<Lease>(refreshed));
  EXPECT_EQ(std::get<Lease>(refreshed).expires_at, lease.acquired_at + 600);
  EXPECT_EQ(number("LOCK", "lease_expires_at"), lease.acquired_at + 600);
}

TEST_P(LeaseTest, RefreshOfAnExpiredLeaseIsLostEvenIfNobodyTookIt) {
  const Lease lease = acquired(seconds(30));
  clock_.set_now(WallTime(seconds(lease.expires_at)));
  EXPECT_TRUE(std::holds_alternative<LeaseLost>(done([&] { return refresh(isr_, lease); })));
  EXPECT_EQ(number("LOCK", "lease_expires_at"), lease.expires_at);
}

TEST_P(LeaseTest, RefreshAfterATakeoverIsLostAndTellsWhoHasIt) {
  const Lease first = acquired(seconds(2));
  advance(seconds(3));
  const Lease second = acquired();
  const auto outcome = done([&] { return refresh(isr_, first); });
  ASSERT_TRUE(std::holds_alternative<LeaseLost>(outcome));
  EXPECT_EQ(std::get<LeaseLost>(outcome).lock->lease_token, second.token);
  EXPECT_EQ(text("LOCK", "lease_token"), second.token);
}

TEST_P(LeaseTest, TooShortOrTooLongIsRefused) {
  EXPECT_THAT(error_of(run(acquire(isr_, page_, seconds(1)))).message, HasSubstr("2 s or more"));
  EXPECT_THAT(error_of(run(acquire(isr_, page_, seconds(0)))).code, ErrorCode::invalid);
  EXPECT_THAT(error_of(run(acquire(isr_, page_, seconds(86'400)))).message, HasSubstr("refresh it"));
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(LeaseTest, LockOfWrongTypeIsAnErrorThatNamesIt) {
  put("LOCK", {{"lease_token", "theirs"}, {"lease_expires_at", "tomorrow"}});
  Error error;
  for (int attempt = 0; attempt < 50 && error.code != ErrorCode::corrupt; ++attempt)
    error = error_of(run(acquire(isr_, page_, seconds(30))));
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_THAT(error.message, AllOf(HasSubstr("LOCK"), HasSubstr("lease_expires_at")));
}

TEST_P(LeaseTest, BackoffGrowsWithEveryFailureUntilAPageIsPublished) {
  std::vector<std::int64_t> waits;
  for (int failure = 1; failure <= 6; ++failure) {
    const Lease lease = acquired();
    const auto outcome = done([&] { return back_off(isr_, lease, "boom " + std::to_string(failure)); });
    ASSERT_TRUE(std::holds_alternative<BackedOff>(outcome));
    const auto backed_off = std::get<BackedOff>(outcome);
    EXPECT_EQ(backed_off.failures, failure);
    EXPECT_EQ(number("LOCK", "failures"), failure);
    EXPECT_EQ(text("LOCK", "last_error"), "boom " + std::to_string(failure));
    EXPECT_NE(text("LOCK", "lease_token"), lease.token);
    EXPECT_EQ(number("LOCK", "lease_expires_at"), backed_off.until);
    EXPECT_EQ(text("LOCK", "backoff_token"), text("LOCK", "lease_token"));
    EXPECT_TRUE(is_held(isr_));
    waits.push_back(backed_off.until - now());
    clock_.set_now(WallTime(seconds(backed_off.until)));
  }
  for (const std::int64_t wait : waits) {
    EXPECT_LE(wait, 30);
    EXPECT_GE(wait, 2);  // Three when it was written; faults may have cost a second since.
  }
  EXPECT_GE(waits.back(), 14);
  published();
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(LeaseTest, BackoffOfALostLeaseChangesNothing) {
  const Lease first = acquired(seconds(2));
  advance(seconds(3));
  const Lease second = acquired();
  EXPECT_TRUE(std::holds_alternative<LeaseLost>(done([&] { return back_off(isr_, first, "late"); })));
  EXPECT_EQ(text("LOCK", "lease_token"), second.token);
}

TEST_P(LeaseTest, OnlyOneOfManyConcurrentWorkersAcquires) {
  std::vector<Task<Result<AcquireOutcome>>> tasks;
  for (int worker = 0; worker < 16; ++worker)
    tasks.push_back(acquire(isr_, page_, seconds(30)));
  int holders = 0;
  for (const auto& outcome : run_all(std::move(tasks)))
    holders += outcome && std::holds_alternative<Lease>(*outcome) ? 1 : 0;
  EXPECT_LE(holders, 1);
  EXPECT_TRUE(holders == 1 || GetParam().faulty);
}

INSTANTIATE_TEST_SUITE_P(Protocol, LeaseTest, testing::ValuesIn(protocol_backends()), protocol_backend_name);

class LeaseAnswerTest : public OneFaultSuite {
 protected:
  LockRow stored() { return *read_lock(*row("LOCK")); }
};

TEST_F(LeaseAnswerTest, OfAcquireThatWasLostIsRecognisedByItsToken) {
  script_->queue("write", Fault::lose_answer);
  const auto outcome = *run(acquire(isr_, page_, seconds(30)));
  ASSERT_TRUE(std::holds_alternative<Lease>(outcome));
  EXPECT_EQ(std::get<Lease>(outcome).token, stored().lease_token);
  EXPECT_EQ(std::get<Lease>(outcome).acquired_at, stored().acquired_at);
}

TEST_F(LeaseAnswerTest, OfEveryAttemptLostIsSettledByReading) {
  script_->queue("write", Fault::lose_answer, 4);
  const auto outcome = *run(acquire(isr_, page_, seconds(30)));
  ASSERT_TRUE(std::holds_alternative<Lease>(outcome));
  EXPECT_EQ(std::get<Lease>(outcome).token, stored().lease_token);
}

TEST_F(LeaseAnswerTest, LostWithTheRequestIsFollowedByAnotherToken) {
  script_->queue("write", Fault::lose_request);
  ASSERT_TRUE(std::holds_alternative<Lease>(*run(acquire(isr_, page_, seconds(30)))));
}

TEST_F(LeaseAnswerTest, NeverHeardIsAmbiguousAndNotHeld) {
  script_->queue("write", Fault::lose_request, 4);
  EXPECT_EQ(error_of(run(acquire(isr_, page_, seconds(30)))).code, ErrorCode::ambiguous);
}

TEST_F(LeaseAnswerTest, OfReleaseThatWasLostStillReleases) {
  const auto lease = std::get<Lease>(*run(acquire(isr_, page_, seconds(30))));
  script_->queue("write", Fault::lose_answer);
  EXPECT_TRUE(std::holds_alternative<LeaseReleased>(*run(release(isr_, lease))));
}

TEST_F(LeaseAnswerTest, OfBackoffThatWasLostStillBacksOff) {
  const auto lease = std::get<Lease>(*run(acquire(isr_, page_, seconds(30))));
  script_->queue("write", Fault::lose_answer);
  const auto outcome = *run(back_off(isr_, lease, "boom"));
  ASSERT_TRUE(std::holds_alternative<BackedOff>(outcome));
  EXPECT_EQ(stored().failures, 1);
}

// refresh_while() under a clock that only the test moves.
class KeepTest : public testing::Test {
 protected:
  Task<void> sleeping(seconds duration) { return clock_.sleep_for(duration); }

  ManualClock clock_;
  SeededRandom random_{7};
  ProtocolStores stores_ = protocol_backends().front().open(clock_);
  Isr isr_{*stores_.table, *stores_.bodies, clock_, random_, {}};
  Page page_ = *page_of("/kept");
};

TEST_F(KeepTest, RefreshesAtEveryThirdOfTheLengthWhileTheWorkRuns) {
  const auto lease = std::get<Lease>(*run(acquire(isr_, page_, seconds(30))));
  std::optional<bool> kept;
  std::stop_source lost;
  auto ended = start(store(refresh_while(isr_, lease, sleeping(seconds(65)), lost), kept));
  for (int step = 0; step < 7; ++step) {
    ASSERT_TRUE(clock_.wait_for_sleepers(step < 6 ? 2 : 1));
    clock_.advance(seconds(10));
    const auto lock = *run(get_lock(isr_, page_));
    ASSERT_TRUE(lock);
  }
  ended.get();
  EXPECT_EQ(kept, true);
  EXPECT_FALSE(lost.stop_requested());
  const auto lock = *run(get_lock(isr_, page_));
  EXPECT_EQ(lock->lease_expires_at, lease.acquired_at + 60 + 30);
  EXPECT_EQ(lock->lease_token, lease.token);
}

TEST_F(KeepTest, CancelsTheWorkAsSoonAsTheLeaseIsLost) {
  const auto lease = std::get<Lease>(*run(acquire(isr_, page_, seconds(30))));
  std::optional<bool> kept;
  std::stop_source lost;
  auto ended = start(store(refresh_while(isr_, lease, sleeping(seconds(1000)), lost), kept));
  ASSERT_TRUE(clock_.wait_for_sleepers(2));
  ASSERT_TRUE(run(invalidate(isr_, page_)));
  clock_.advance(seconds(10));
  ended.get();
  EXPECT_EQ(kept, false);
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(clock_.sleepers(), 0U);
}

TEST_F(KeepTest, PassesOnWhatTheWorkThrows) {
  const auto lease = std::get<Lease>(*run(acquire(isr_, page_, seconds(30))));
  const auto throwing = []() -> Task<void> {
    throw std::runtime_error("boom");
    co_return;
  };
  std::stop_source lost;
  EXPECT_THROW(run(refresh_while(isr_, lease, throwing(), lost)), std::runtime_error);
  EXPECT_FALSE(lost.stop_requested());
}

}  // namespace
}  // namespace facetheory::test
