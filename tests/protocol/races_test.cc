// What happens between two steps: somebody else acts at the worst moment, each time the same.
#include "facetheory/bodies/forwarding_bodies.h"
#include "facetheory/isr/verdict.h"

#include "tests/protocol/protocol_suite.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;

class RaceTest : public OneFaultSuite {
 protected:
  // The other worker: the same stores, nothing in between.
  Task<Result<void>> others_publish(std::string bytes) {
    auto acquired = co_await acquire(other_, page_, seconds(30));
    if (!acquired || !std::holds_alternative<Lease>(*acquired))
      co_return Error{ErrorCode::internal, "not acquired"};
    Rendered page = rendered(std::move(bytes));
    auto published = co_await publish(other_, std::get<Lease>(*acquired), std::move(page), {});
    if (!published || !std::holds_alternative<Published>(*published))
      co_return Error{ErrorCode::internal, "not published"};
    co_return Result<void>();
  }
  static Rendered rendered(std::string bytes) {
    Rendered page;
    page.body.bytes = std::move(bytes);
    return page;
  }
  static const Key* key_of(const Write& write) {
    if (const auto* put = std::get_if<Put>(&write)) return &put->item.key;
    if (const auto* update = std::get_if<Update>(&write)) return &update->key;
    return &std::get<Delete>(write).key;
  }
  std::string current() { return run(plain_.bodies->read(read_meta(*row("META"))->s3_key))->value().bytes; }

  MeddledTable meddled_{*plain_.table};
  SeededRandom other_random_{99};
  Isr other_{*plain_.table, *plain_.bodies, clock_, other_random_, {}};
  Isr ours_{meddled_, *plain_.bodies, clock_, random_, {}};
};

TEST_F(RaceTest, EveryAttemptToAcquireCarriesAnotherToken) {
  std::vector<std::string> tokens;
  meddled_.before_write = [&](const Write& write) -> Task<Result<void>> {
    for (const Changes::Entry& entry : std::get<Update>(write).changes.entries()) {
      if (entry.name == "lease_token")
        tokens.push_back(*std::get<Changes::Set>(entry.action).value.as<std::string>());
    }
    if (tokens.size() < 3) co_return Error{ErrorCode::ambiguous, "lost"};
    co_return Result<void>();
  };
  const auto outcome = *run(acquire(ours_, page_, seconds(30)));
  ASSERT_EQ(tokens.size(), 3U);
  EXPECT_NE(tokens[0], tokens[1]);
  EXPECT_NE(tokens[1], tokens[2]);
  EXPECT_EQ(std::get<Lease>(outcome).token, tokens[2]);
}

TEST_F(RaceTest, WhoIsQuickerBetweenTheFirstLookAndTheLeaseSparesUsTheRender) {
  bool once = true;
  meddled_.before_write = [&](const Write& write) -> Task<Result<void>> {
    if (key_of(write)->sk == "LOCK" && std::exchange(once, false))
      co_return co_await others_publish("quicker");
    co_return Result<void>();
  };
  int renders = 0;
  const Renderer renderer = [&](RenderContext) -> Task<Result<Rendered>> {
    ++renders;
    co_return rendered("ours");
  };
  const auto outcome = *run(regenerate(ours_, page_, renderer, {}));
  EXPECT_TRUE(std::holds_alternative<AlreadyFresh>(outcome));
  EXPECT_EQ(renders, 0);
  EXPECT_EQ(row("LOCK"), std::nullopt);
  EXPECT_EQ(current(), "quicker");
}

TEST_F(RaceTest, VersionIdThatSomebodyElseTookIsNotOverwritten) {
  std::vector<std::string> tried;
  meddled_.before_transact = [&](const std::vector<TransactItem>& items) -> Task<Result<void>> {
    for (const TransactItem& item : items) {
      const auto* put = std::get_if<Put>(&item);
      if (put == nullptr || !put->item.key.sk.starts_with("VER#")) continue;
      tried.push_back(put->item.key.sk);
      if (tried.size() > 1) continue;
      Write write = Put{{put->item.key, {{"s3_key", "theirs.html"}, {"generated_at", 1}}}};
      [[maybe_unused]] auto written = co_await plain_.table->write(std::move(write), Durability::machine);
    }
    co_return Result<void>();
  };
  const auto lease = std::get<Lease>(*run(acquire(ours_, page_, seconds(30))));
  PublishOptions options;
  options.history = 5;
  const auto outcome = *run(publish(ours_, lease, rendered("ours"), options));
  ASSERT_TRUE(std::holds_alternative<Published>(outcome));
  ASSERT_EQ(tried.size(), 2U);
  EXPECT_EQ(std::get<Published>(outcome).meta.current_sk, tried[1]);
  EXPECT_EQ(read_version(*row(tried[0]))->s3_key, "theirs.html");
}

TEST_F(RaceTest, PageThatAppearsDuringAnInvalidationIsInvalidatedToo) {
  const auto first = std::get<Lease>(*run(acquire(other_, page_, seconds(30))));
  bool once = true;
  meddled_.before_transact = [&](const std::vector<TransactItem>&) -> Task<Result<void>> {
    if (std::exchange(once, false)) {
      Rendered page = rendered("of before");
      [[maybe_unused]] auto published = co_await publish(other_, first, std::move(page), {});
    }
    co_return Result<void>();
  };
  ASSERT_TRUE(run(invalidate(ours_, page_)));
  EXPECT_EQ(read_meta(*row("META"))->generated_at, 0);
}

TEST_F(RaceTest, PurgeThatArrivesLateSparesAPageRenderedSince) {
  ASSERT_TRUE(run(others_publish("old")));
  int transactions = 0;
  meddled_.before_transact = [&](const std::vector<TransactItem>&) -> Task<Result<void>> {
    // The request is on its way while a newer page is published; when it arrives it is not carried out.
    if (++transactions == 1) co_return co_await others_publish("new");
    co_return Error{ErrorCode::invalid, "enough"};
  };
  EXPECT_FALSE(run(purge(ours_, page_)));
  EXPECT_EQ(current(), "new");
}

TEST_F(RaceTest, WinnerWithinTheClockSkewIsNotTakenForOurs) {
  // The winner's render began in the second of our request: it may have begun before it.
  bool once = true;
  meddled_.before_write = [&](const Write& write) -> Task<Result<void>> {
    if (key_of(write)->sk == "LOCK" && std::exchange(once, false))
      co_return co_await others_publish("winner");
    co_return Result<void>();
  };
  const Renderer renderer = [&](RenderContext) -> Task<Result<Rendered>> { co_return rendered("ours"); };
  RegenerateOptions options;
  options.request_id = "r1";
  const auto outcome = *run(regenerate(ours_, page_, renderer, options));
  EXPECT_TRUE(std::holds_alternative<AlreadyFresh>(outcome));
  EXPECT_EQ(read_request(*row("REQ#r1"))->status, RequestStatus::failed);
}

TEST_F(RaceTest, RowThatGotANewTtlWhileItWasSweptStays) {
  Write expired = Put{{{page_.pk, "REQ#r"}, {{"request_hash", "h"}, {"status", "FAILED"}, {"ttl", 5}}}};
  ASSERT_TRUE(run(plain_.table->write(std::move(expired), Durability::machine)));
  meddled_.before_write = [&](const Write&) -> Task<Result<void>> {
    Write renewed = Update{{page_.pk, "REQ#r"}, Changes().set("ttl", 1'000'000'000'000)};
    [[maybe_unused]] auto written = co_await plain_.table->write(std::move(renewed), Durability::machine);
    co_return Result<void>();
  };
  const auto report = run(sweep(ours_, {}));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->rows_deleted, 0U);
  EXPECT_TRUE(row("REQ#r"));
}

TEST_F(RaceTest, LargeBodyKeepsTheLeaseWhileItIsStored) {
  // Storing takes longer than the lease.
  class SlowBodies final : public ForwardingBodies {
   public:
    SlowBodies(BodyStore& inner, Clock& clock) : ForwardingBodies(inner), clock_(clock) {}

   private:
    Task<Result<void>> do_write(std::string key, Body body) override {
      co_await clock_.sleep_for(seconds(100));
      co_return co_await inner().write(std::move(key), std::move(body));
    }
    Clock& clock_;
  };
  ManualClock clock;  // Moves only by hand.
  SlowBodies slow(*plain_.bodies, clock);
  const Isr isr{*plain_.table, slow, clock, random_, {}};
  const auto lease = std::get<Lease>(*run(acquire(isr, page_, seconds(30))));
  std::optional<Result<PublishOutcome>> outcome;
  auto ended = start(store(publish(isr, lease, rendered(std::string(2 << 20, 'x')), {}), outcome));
  for (int step = 0; step < 10; ++step) {
    ASSERT_TRUE(clock.wait_for_sleepers(2)) << step;  // The store, and the keeper of the lease.
    clock.advance(seconds(10));
  }
  ended.get();
  ASSERT_TRUE(*outcome) << to_string(outcome->error());
  EXPECT_TRUE(std::holds_alternative<Published>(**outcome));
}

TEST_F(RaceTest, BodyWhoseStoringWasCutShortIsNotPublished) {
  class StuckBodies final : public BodyStore {
    Task<Result<void>> do_write(std::string, Body) override {
      co_await system_clock().sleep_for(std::chrono::hours(1));
      co_return Result<void>();
    }
    Task<Result<std::optional<Body>>> do_read(std::string) override { co_return std::optional<Body>(); }
    Task<Result<void>> do_remove(std::string) override { co_return Result<void>(); }
    Task<Result<BodyPage>> do_list(std::optional<std::string>, std::size_t) override { co_return BodyPage{}; }
  };
  StuckBodies stuck;
  const Isr isr{meddled_, stuck, clock_, random_, {}};
  const auto lease = std::get<Lease>(*run(acquire(isr, page_, seconds(30))));
  // Every refresh is carried out and its answer lost: the keeper gives the lease up although the row says it is ours.
  meddled_.before_write = [&](const Write& write) -> Task<Result<void>> {
    Write copy = write;
    [[maybe_unused]] auto written = co_await plain_.table->write(std::move(copy), Durability::process);
    co_return Error{ErrorCode::ambiguous, "lost"};
  };
  const auto outcome = run(publish(isr, lease, rendered(std::string(2 << 20, 'x')), {}));
  EXPECT_FALSE(outcome && std::holds_alternative<Published>(*outcome));
  EXPECT_EQ(row("META"), std::nullopt);
}

TEST_F(RaceTest, SettingsSayHowLongRowsOutliveTheirMeaning) {
  Isr isr{*plain_.table,
          *plain_.bodies,
          clock_,
          random_,
          {.clock_skew = seconds(7), .ttl_buffer = seconds(11), .request_retention = seconds(1000)}};
  const auto lease = std::get<Lease>(*run(acquire(isr, page_, seconds(30))));
  EXPECT_EQ(read_lock(*row("LOCK"))->ttl, lease.expires_at + 11);
  const auto request = std::get<RequestClaim>(*run(claim(isr, page_, "r1", "h", seconds(30))));
  EXPECT_EQ(read_request(*row("REQ#r1"))->ttl, isr.now() + 30 + 11);
  ASSERT_TRUE(run(complete(isr, request, "a.html")));
  EXPECT_EQ(read_request(*row("REQ#r1"))->ttl, isr.now() + 1000);
  EXPECT_EQ(run(mark_tag(isr, "", "t", MarkKind::invalidate))->invalidated_at, isr.now() + 7);
}

// --- a page that is withdrawn -----------------------------------------------------------------------------------

class WithdrawTest : public RaceTest {
 protected:
  WithdrawTest() {
    EXPECT_TRUE(run(others_publish("old")));
    clock_.advance(seconds(60));
  }
  // Renders what is not to be stored, while somebody else does something; `result`: of the regeneration.
  Result<RegenerateOutcome> regenerating(std::function<Task<Result<void>>()> meanwhile) {
    meddled_.before_transact = [&,
                                once = true](const std::vector<TransactItem>&) mutable -> Task<Result<void>> {
      if (!std::exchange(once, false)) co_return Result<void>();
      co_return co_await meanwhile();
    };
    const Renderer renderer = [](RenderContext) -> Task<Result<Rendered>> {
      Rendered page = rendered("for one alone");
      page.as = RenderedAs::transient;
      co_return page;
    };
    return run(regenerate(ours_, page_, renderer, {}));
  }
};

TEST_F(WithdrawTest, IsNotWithdrawnByWhoeverHasLostTheLease) {
  const auto outcome = regenerating([&]() -> Task<Result<void>> {
    clock_.advance(seconds(31));
    co_return co_await others_publish("new");
  });
  ASSERT_TRUE(outcome && std::holds_alternative<NotStored>(*outcome));
  EXPECT_TRUE(std::get<NotStored>(*outcome).lease_lost);
  EXPECT_FALSE(std::get<NotStored>(*outcome).withdrawn);
  EXPECT_EQ(current(), "new");
}

TEST_F(WithdrawTest, IsNotWithdrawnUnderALeaseThatIsOver) {
  const auto outcome = regenerating([&]() -> Task<Result<void>> {
    clock_.advance(seconds(31));
    const auto meta = co_await get_meta(other_, page_, Consistency::strong);
    auto closed = co_await close_window(other_, page_, **meta);  // So that it is tried again.
    if (!closed) co_return closed.error();
    co_return Result<void>();
  });
  ASSERT_TRUE(outcome && std::holds_alternative<NotStored>(*outcome));
  EXPECT_TRUE(std::get<NotStored>(*outcome).lease_lost);
  EXPECT_FALSE(std::get<NotStored>(*outcome).withdrawn);
  EXPECT_EQ(current(), "old");
}

TEST_F(WithdrawTest, IsWithdrawnAlsoIfItsWindowWasClosedMeanwhile) {
  const auto outcome = regenerating([&]() -> Task<Result<void>> {
    const auto meta = co_await get_meta(other_, page_, Consistency::strong);
    auto closed = co_await close_window(other_, page_, **meta);
    if (!closed) co_return closed.error();
    co_return Result<void>();
  });
  ASSERT_TRUE(outcome && std::holds_alternative<NotStored>(*outcome));
  EXPECT_TRUE(std::get<NotStored>(*outcome).withdrawn);
  EXPECT_EQ(row("META"), std::nullopt);
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_F(WithdrawTest, StaysIfAWriterThatIgnoresLeasesPublishedANewerOne) {
  const auto outcome = regenerating([&]() -> Task<Result<void>> {
    MetaRow newer{.s3_key = "theirs", .generated_at = other_.now(), .revalidate_seconds = 60};
    Write write = Put{to_item(page_.pk, newer), {}};
    auto written = co_await plain_.table->write(std::move(write), Durability::machine);
    if (!written) co_return std::move(written).error();
    co_return Result<void>();
  });
  ASSERT_TRUE(outcome && std::holds_alternative<NotStored>(*outcome));
  EXPECT_FALSE(std::get<NotStored>(*outcome).withdrawn);
  ASSERT_NE(row("META"), std::nullopt);
  EXPECT_EQ(read_meta(*row("META"))->s3_key, "theirs");
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_F(WithdrawTest, IsNotWithdrawnOnceItWasInvalidated) {
  const auto outcome = regenerating([&]() -> Task<Result<void>> {
    auto invalidated = co_await invalidate(other_, page_);
    if (!invalidated) co_return std::move(invalidated).error();
    co_return Result<void>();
  });
  ASSERT_TRUE(outcome && std::holds_alternative<NotStored>(*outcome));
  EXPECT_TRUE(std::get<NotStored>(*outcome).lease_lost);
  EXPECT_FALSE(std::get<NotStored>(*outcome).withdrawn);
  EXPECT_NE(row("META"), std::nullopt);
}

TEST_F(WithdrawTest, AnswerThatWasLostIsFoundOut) {
  bool once = true;
  meddled_.before_transact = [&](const std::vector<TransactItem>& items) -> Task<Result<void>> {
    if (!std::exchange(once, false)) co_return Result<void>();
    auto transacted = co_await plain_.table->transact(items, "of nobody");
    if (!transacted) co_return std::move(transacted).error();
    co_return Error{ErrorCode::ambiguous, "the answer was lost"};
  };
  const Renderer renderer = [](RenderContext) -> Task<Result<Rendered>> {
    Rendered page = rendered("for one alone");
    page.as = RenderedAs::transient;
    co_return page;
  };
  clock_.advance_on_sleep();
  const auto outcome = run(regenerate(ours_, page_, renderer, {}));
  ASSERT_TRUE(outcome);
  ASSERT_TRUE(std::holds_alternative<NotStored>(*outcome));
  EXPECT_TRUE(std::get<NotStored>(*outcome).withdrawn);
}

}  // namespace
}  // namespace facetheory::test
