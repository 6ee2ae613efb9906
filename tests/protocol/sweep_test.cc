#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/isr/body_key.h"
#include "facetheory/isr/partners.h"
#include "facetheory/table/memory_table.h"

#include "tests/protocol/protocol_suite.h"
#include "tests/support/servers.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;

// Bodies carry the store's own time of writing, which is the machine's; so does the clock here, moved by hand.
class SweepTest : public testing::TestWithParam<ProtocolBackend> {
 protected:
  SweepTest() {
    clock_.advance_on_sleep();
    // Whoever opens stores to write settles this first.
    if (!run(settle_partners(isr_)).may_delete()) throw std::runtime_error("they are strangers");
  }

  SweepReport sweeping(SweepOptions options = {}) {
    auto report = run(sweep(isr_, options));
    if (!report) throw std::runtime_error(to_string(report.error()));
    return *report;
  }
  SweepReport counting() {
    SweepOptions options;
    options.dry_run = true;
    return sweeping(options);
  }
  Published published(std::string cache_key, std::string bytes, PublishOptions options = {}) {
    const Page page = *page_of(cache_key);
    const auto lease = std::get<Lease>(*run(acquire(isr_, page, seconds(30))));
    Rendered rendered;
    rendered.body.bytes = std::move(bytes);
    return std::get<Published>(*run(publish(isr_, lease, rendered, options)));
  }
  std::optional<Item> row(std::string cache_key, std::string sk) {
    Key key{page_of(cache_key)->pk, std::move(sk)};
    return *run(stores_.table->get(std::move(key), Consistency::strong));
  }
  bool has_body(std::string key) { return run(stores_.bodies->read(std::move(key)))->has_value(); }

  ManualClock clock_{std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())};
  SeededRandom random_{3};
  ProtocolStores stores_ = GetParam().open(clock_);
  Isr isr_{*stores_.table, *stores_.bodies, clock_, random_, {}};
};

TEST_P(SweepTest, BodyThatNothingRefersToGoesInTheSecondPassAfterTheGracePeriod) {
  const Published old = published("/p", "one");
  const Published current = published("/p", "two");
  EXPECT_EQ(sweeping().bodies_recorded, 0U);  // Too young: it might be about to be published.
  clock_.advance(seconds(3601));
  EXPECT_EQ(sweeping().bodies_recorded, 1U);
  EXPECT_TRUE(has_body(old.meta.s3_key));
  clock_.advance(seconds(1800));
  const SweepReport waiting = sweeping();
  EXPECT_EQ(waiting.bodies_waiting, 1U);
  EXPECT_EQ(waiting.bodies_deleted, 0U);
  clock_.advance(seconds(1801));
  const SweepReport last = sweeping();
  EXPECT_EQ(last.bodies_deleted, 1U);
  EXPECT_EQ(last.bytes_deleted, 3U);
  EXPECT_FALSE(has_body(old.meta.s3_key));
  EXPECT_TRUE(has_body(current.meta.s3_key));
  const SweepReport after = sweeping();
  EXPECT_EQ(after.bodies_deleted + after.bodies_waiting + after.bodies_recorded, 0U);
  Query orphans;
  orphans.pk = "GC#BODIES";
  EXPECT_TRUE(run(stores_.table->query(std::move(orphans)))->items.empty());
}

// Nobody has asked for it since; without a sweep it would be fresh again when that time has come.
TEST_P(SweepTest, PurgeOfAPageThatClaimsToBeFromTheFutureIsKept) {
  const Page page = *page_of("/ahead", "acme");
  published("/another", "page");
  const auto meta = [&] {
    Key key = meta_key(page.pk);
    return *run(stores_.table->get(std::move(key), Consistency::strong));
  };
  Write write =
      Put{{meta_key(page.pk),
           {{"s3_key", "theirs.html"}, {"generated_at", isr_.now() + 8}, {"revalidate_seconds", 60}}}};
  ASSERT_TRUE(run(stores_.table->write(std::move(write), Durability::machine)));
  sweeping();
  EXPECT_TRUE(meta());
  ASSERT_TRUE(run(mark_tag(isr_, "acme", "", MarkKind::purge)));
  counting();
  EXPECT_TRUE(meta());
  sweeping();
  EXPECT_FALSE(meta());
}

TEST_P(SweepTest, DryRunCountsAndChangesNothing) {
  published("/p", "one");
  published("/p", "two");
  clock_.advance(seconds(3601));
  EXPECT_EQ(counting().bodies_recorded, 1U);
  EXPECT_EQ(counting().bodies_recorded, 1U);
  sweeping();
  clock_.advance(seconds(3601));
  EXPECT_EQ(counting().bodies_deleted, 1U);
  EXPECT_EQ(counting().bodies_deleted, 1U);
  EXPECT_EQ(counting().bodies_seen, 2U);
}

TEST_P(SweepTest, BodiesThatVersionsAndRequestsReferToStay) {
  PublishOptions options;
  options.history = 3;
  const Published first = published("/p", "one", options);
  const Page page = *page_of("/q");
  const auto claimed = std::get<RequestClaim>(*run(claim(isr_, page, "r", "h", seconds(30))));
  const Published replayed = published("/q", "result");
  ASSERT_TRUE(run(complete(isr_, claimed, replayed.meta.s3_key)));
  published("/p", "two", options);
  published("/q", "next");
  for (int round = 0; round < 3; ++round) {
    clock_.advance(seconds(3601));
    sweeping();
  }
  EXPECT_TRUE(has_body(first.meta.s3_key));
  EXPECT_TRUE(has_body(replayed.meta.s3_key));
}

TEST_P(SweepTest, BodyThatIsReferredToAgainIsForgotten) {
  published("/another", "page");
  PublishOptions options;
  options.history = 3;
  const Published page = published("/p", "one", options);
  const Item meta = *row("/p", "META");
  const Item version = *row("/p", *page.meta.current_sk);
  for (const Item* item : {&meta, &version}) {
    Write write = Delete{item->key};
    ASSERT_TRUE(run(stores_.table->write(std::move(write), Durability::machine)));
  }
  clock_.advance(seconds(3601));
  EXPECT_EQ(sweeping().bodies_recorded, 1U);
  Write write = Put{version};
  ASSERT_TRUE(run(stores_.table->write(std::move(write), Durability::machine)));
  clock_.advance(seconds(3601));
  EXPECT_EQ(sweeping().bodies_deleted, 0U);
  // Unreferenced once more, its grace period begins anew.
  Write removal = Delete{version.key};
  ASSERT_TRUE(run(stores_.table->write(std::move(removal), Durability::machine)));
  EXPECT_EQ(sweeping().bodies_recorded, 1U);
  EXPECT_TRUE(has_body(page.meta.s3_key));
}

TEST_P(SweepTest, BodiesOfOtherWritersAreNeverTouched) {
  const std::string theirs =
      "0123456789abcdef01234567/1700000000000-0b9c5ad2-6b1f-4e0f-9d4f-0d6f6f7f3c55.html";
  Body body;
  body.bytes = "theirs";
  ASSERT_TRUE(run(stores_.bodies->write(theirs, body)));
  for (int round = 0; round < 3; ++round) {
    clock_.advance(seconds(100'000));
    EXPECT_EQ(sweeping().bodies_foreign, 1U);
  }
  EXPECT_TRUE(has_body(theirs));
}

TEST_P(SweepTest, BodyNamedInAnyFormByARowStays) {
  const Published page = published("/p", "one");
  const std::string reference = page.meta.s3_key;
  Item meta = *row("/p", "META");
  meta.attributes.set("s3_key", "s3://bucket/" + reference);
  Write write = Put{meta};
  ASSERT_TRUE(run(stores_.table->write(std::move(write), Durability::machine)));
  for (int round = 0; round < 3; ++round) {
    clock_.advance(seconds(3601));
    sweeping();
  }
  EXPECT_TRUE(has_body(reference));
}

TEST_P(SweepTest, BodiesOfAnotherTableAreNotTouched) {
  const Published theirs = published("/p", "one");
  const ProtocolStores other = GetParam().open(clock_);
  const Isr stranger{*other.table, *stores_.bodies, clock_, random_, {}, {"our table", "their bodies"}};
  for (int round = 0; round < 3; ++round) {
    clock_.advance(seconds(3601));
    for (const bool dry_run : {true, false}) {
      SweepOptions options;
      options.dry_run = dry_run;
      const Error error = error_of(run(sweep(stranger, options)));
      EXPECT_EQ(error.code, ErrorCode::invalid);
      EXPECT_THAT(error.message,
                  testing::AllOf(testing::HasSubstr("our table"), testing::HasSubstr("their bodies")));
    }
  }
  EXPECT_TRUE(has_body(theirs.meta.s3_key));
}

TEST_P(SweepTest, TableThatRefersToNothingIsNotBelievedUnlessSomebodyVouchesForIt) {
  const Published page = published("/p", "one");
  Write write = Delete{meta_key(page_of("/p")->pk)};
  ASSERT_TRUE(run(stores_.table->write(std::move(write), Durability::machine)));
  for (int round = 0; round < 3; ++round) {
    clock_.advance(seconds(3601));
    EXPECT_EQ(error_of(run(sweep(isr_, {}))).code, ErrorCode::invalid);
  }
  EXPECT_TRUE(has_body(page.meta.s3_key));
  SweepOptions options;
  options.vouched = true;
  EXPECT_EQ(sweeping(options).bodies_recorded, 1U);
  clock_.advance(seconds(3601));
  EXPECT_EQ(sweeping(options).bodies_deleted, 1U);
}

TEST_P(SweepTest, BodiesFromBeforeThePartnershipStayUntilTheyAreAdopted) {
  const ProtocolStores from_before = GetParam().open(clock_);
  const Isr isr{*from_before.table, *from_before.bodies, clock_, random_, {}};
  std::vector<std::string> keys;
  const auto publish_again = [&] {
    const auto lease = std::get<Lease>(*run(acquire(isr, *page_of("/p"), seconds(30))));
    Rendered rendered;
    rendered.body.bytes = "page " + std::to_string(keys.size());
    keys.push_back(std::get<Published>(*run(publish(isr, lease, rendered, {}))).meta.s3_key);
  };
  publish_again();
  publish_again();
  for (int round = 0; round < 3; ++round) {
    clock_.advance(seconds(3601));
    const auto report = run(sweep(isr, {}));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->bodies_from_before, 1U);
    EXPECT_EQ(report->bodies_recorded + report->bodies_deleted, 0U);
  }
  EXPECT_TRUE(run(from_before.bodies->read(keys[0]))->has_value());
  ASSERT_TRUE(run(adopt_bodies(isr)));
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(run(sweep(isr, {})));
    clock_.advance(seconds(3601));
  }
  EXPECT_FALSE(run(from_before.bodies->read(keys[0]))->has_value());
  EXPECT_TRUE(run(from_before.bodies->read(keys[1]))->has_value());
}

TEST_P(SweepTest, OneNodeSweepsAtATime) {
  published("/p", "one");
  published("/p", "two");
  clock_.advance(seconds(3601));
  std::optional<Result<SweepOutcome>> other;
  // The second comes in the middle of the first.
  MeddledTable meddled(*stores_.table);
  meddled.before_transact = [&](const std::vector<TransactItem>&) -> Task<Result<void>> {
    if (!other) other = co_await sweep_alone(isr_, {}, "second");
    co_return Result<void>();
  };
  const Isr first{meddled, *stores_.bodies, clock_, random_, {}};
  const auto outcome = run(sweep_alone(first, {}, "first"));
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(std::get<SweepReport>(*outcome).bodies_recorded, 1U);
  ASSERT_TRUE(other && *other);
  ASSERT_TRUE(std::holds_alternative<LeaseHeld>(**other));
  EXPECT_EQ(std::get<LeaseHeld>(**other).lock.owner, "first");
  // When it has ended, anybody may.
  EXPECT_TRUE(std::holds_alternative<SweepReport>(*run(sweep_alone(isr_, {}, "second"))));
}

TEST_P(SweepTest, LeavesBehindWhenItEndedAndHowManyPagesThereAre) {
  EXPECT_EQ(*run(last_sweep(isr_)), std::nullopt);
  published("/p", "one");
  published("/q", "two");
  counting();
  EXPECT_EQ(*run(last_sweep(isr_)), std::nullopt);
  sweeping();
  const auto last = *run(last_sweep(isr_));
  ASSERT_TRUE(last);
  EXPECT_EQ(last->finished_at, isr_.now());
  EXPECT_EQ(last->pages, 2U);
}

TEST_P(SweepTest, SweepThatWasInterruptedGoesOnWhereItWas) {
  // More than a step's worth of bodies, all but one of them orphans.
  published("/q", "page");
  Body body;
  body.bytes = "orphan";
  for (int i = 0; i < 700; ++i)
    ASSERT_TRUE(run(stores_.bodies->write(body_key_for(*page_of("/p"), "", clock_.now(), random_), body)));
  clock_.advance(seconds(3700));
  std::stop_source stop;
  SweepOptions options;
  options.stop = stop.get_token();
  std::uint64_t seen = 0;
  const auto interrupted = run(sweep(isr_, options, [&](const SweepReport& report) {
    seen = report.bodies_seen;
    if (seen > 0) stop.request_stop();
  }));
  ASSERT_FALSE(interrupted);
  EXPECT_GT(seen, 400U);
  EXPECT_EQ(seen + sweeping().bodies_seen, 701U);
  // Those of the first part are still recorded.
  const SweepReport whole = sweeping();
  EXPECT_EQ(whole.bodies_seen, 701U);
  EXPECT_EQ(whole.bodies_waiting, 700U);
}

TEST_P(SweepTest, TableThatCannotBeReadWholeLosesNoBody) {
  const Published page = published("/p", "one");
  clock_.advance(seconds(3601));
  const auto script = std::make_shared<FaultScript>();
  const ProtocolStores faulty = behind(stores_, script, clock_);
  const Isr isr{*faulty.table, *faulty.bodies, clock_, random_, {}};
  SweepOptions options;
  options.vouched = true;
  script->queue("scan", Fault::fail);
  EXPECT_FALSE(run(sweep(isr, options)));
  EXPECT_EQ(sweeping().bodies_waiting, 0U);
  EXPECT_TRUE(has_body(page.meta.s3_key));
}

TEST_P(SweepTest, PacedSweepTakesItsTime) {
  for (int i = 0; i < 10; ++i)
    published("/" + std::to_string(i), "page");
  const Duration before = clock_.monotonic();
  SweepOptions options;
  options.pace = 10;
  EXPECT_EQ(sweeping(options).pages_seen, 10U);
  EXPECT_GE(clock_.monotonic() - before, seconds(2));  // Ten rows, ten bodies.
}

INSTANTIATE_TEST_SUITE_P(Protocol, SweepTest,
                         testing::ValuesIn(protocol_backends().begin(), protocol_backends().begin() + 2),
                         protocol_backend_name);

class RowSweepTest : public SweepTest {};

TEST_P(RowSweepTest, RowsPastTheirTtlGoAndOthersStay) {
  PublishOptions options;
  options.ttl = seconds(1000);
  options.history = 2;
  const Published page = published("/short", "one", options);
  published("/long", "two");
  clock_.advance(seconds(999));
  EXPECT_EQ(sweeping().rows_deleted, 0U);
  clock_.advance(seconds(2));
  EXPECT_EQ(counting().rows_deleted, 2U);
  EXPECT_TRUE(row("/short", "META"));
  EXPECT_EQ(sweeping().rows_deleted, 2U);
  EXPECT_EQ(row("/short", "META"), std::nullopt);
  EXPECT_EQ(row("/short", *page.meta.current_sk), std::nullopt);
  EXPECT_TRUE(row("/long", "META"));
}

TEST_P(RowSweepTest, RowsThatStillDecideSomethingStayWhateverTheirTtl) {
  const std::string pk = page_of("/p")->pk;
  const std::int64_t now = isr_.now();
  for (Item item :
       {Item{{pk, "META"},
             {{"s3_key", "k"}, {"generated_at", now}, {"revalidate_seconds", 500}, {"ttl", now - 100}}},
        Item{{pk, "LOCK"}, {{"lease_token", "t"}, {"lease_expires_at", now + 100}, {"ttl", now - 100}}}}) {
    Write write = Put{std::move(item)};
    ASSERT_TRUE(run(stores_.table->write(std::move(write), Durability::machine)));
  }
  EXPECT_EQ(sweeping().rows_deleted, 0U);
  clock_.advance(seconds(100));
  EXPECT_EQ(sweeping().rows_deleted, 1U);
  EXPECT_EQ(row("/p", "LOCK"), std::nullopt);
  clock_.advance(seconds(400));
  EXPECT_EQ(sweeping().rows_deleted, 1U);
}

TEST_P(RowSweepTest, RowsThatCannotBeReadStayForPeopleToLookAtAndNoBodyIsDeletedMeanwhile) {
  const Published old = published("/q", "one");
  published("/q", "two");
  const std::string pk = page_of("/p")->pk;
  for (Item bad : {Item{{pk, "META"}, {{"s3_key", 1}, {"ttl", 5}}}, Item{{pk, "META"}, {{"generated_at", 1}}},
                   Item{{pk, "VER#01"}, {{"version", 1}}}, Item{{pk, "REQ#1"}, {{"result_s3_key", 1}}},
                   Item{{"SOMEBODY", "ELSE"}, {{"s3_key", 1}}}}) {
    Write write = Put{bad};
    ASSERT_TRUE(run(stores_.table->write(std::move(write), Durability::machine)));
    for (int round = 0; round < 3; ++round) {
      clock_.advance(seconds(3601));
      const Error error = error_of(run(sweep(isr_, {})));
      EXPECT_EQ(error.code, ErrorCode::corrupt);
      EXPECT_THAT(error.message, testing::HasSubstr(to_string(bad.key)));
    }
    EXPECT_TRUE(*run(stores_.table->get(bad.key, Consistency::strong)));
    EXPECT_TRUE(has_body(old.meta.s3_key));
    Write removal = Delete{bad.key};
    ASSERT_TRUE(run(stores_.table->write(std::move(removal), Durability::machine)));
  }
  for (int round = 0; round < 2; ++round) {
    clock_.advance(seconds(3601));
    sweeping();
  }
  EXPECT_FALSE(has_body(old.meta.s3_key));
}

INSTANTIATE_TEST_SUITE_P(Protocol, RowSweepTest,
                         testing::ValuesIn(protocol_backends().begin(), protocol_backends().begin() + 2),
                         protocol_backend_name);

// Rows that were not read may refer to any body.
class SweepUnderFaults : public OneFaultSuite {};

TEST_F(SweepUnderFaults, ScanThatFailsMidwayDeletesNoBody) {
  clock_.set_now(
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()));  // As the bodies'.
  ASSERT_TRUE(run(settle_partners(isr_)).may_delete());
  const auto publish_one = [&](const std::string& cache_key, const std::string& bytes) {
    const auto lease = std::get<Lease>(*run(acquire(isr_, *page_of(cache_key), seconds(30))));
    Rendered rendered;
    rendered.body.bytes = bytes;
    return std::get<Published>(*run(publish(isr_, lease, rendered, {}))).meta.s3_key;
  };
  std::vector<std::string> keys;
  for (int page = 0; page < 700; ++page)  // More than one scan takes.
    keys.push_back(publish_one("/" + std::to_string(page), "one"));
  keys.push_back(publish_one("/0", "two"));  // The first one is garbage now.
  const Isr plain{*plain_.table, *plain_.bodies, clock_, random_, {}};
  clock_.advance(seconds(3700));
  ASSERT_EQ(run(sweep(plain, {}))->bodies_recorded, 1U);
  clock_.advance(seconds(3700));
  for (const Fault fault : {Fault::fail, Fault::throttle, Fault::lose_answer}) {
    script_->queue("scan", Fault::none);
    script_->queue("scan", fault);
    EXPECT_FALSE(run(sweep(isr_, {})));
    script_->clear();
    for (const std::string& key : keys)
      ASSERT_TRUE(run(plain_.bodies->read(key))->has_value()) << name(fault);
  }
  EXPECT_EQ(run(sweep(isr_, {}))->bodies_deleted, 1U);
  EXPECT_FALSE(run(plain_.bodies->read(keys.front()))->has_value());
}

TEST(SweepOnDynamoDb, LeavesRowsToTheTableAndSweepsBodiesInTheBucket) {
  ManualClock clock(std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()));
  const ProtocolStores stores = protocol_backends()[2].open(clock);
  SeededRandom random(11);
  const Isr isr{*stores.table, *stores.bodies, clock, random, {}};
  const Page page = *page_of("/swept on dynamodb");
  ASSERT_TRUE(run(settle_partners(isr)).may_delete());
  std::vector<std::string> keys;
  for (const char* bytes : {"one", "two"}) {
    const auto lease = std::get<Lease>(*run(acquire(isr, page, seconds(30))));
    Rendered rendered;
    rendered.body.bytes = bytes;
    PublishOptions options;
    options.ttl = seconds(100);
    keys.push_back(std::get<Published>(*run(publish(isr, lease, rendered, options))).meta.s3_key);
  }
  std::uint64_t deleted = 0;
  for (int round = 0; round < 2; ++round) {
    clock.advance(seconds(3700));
    const auto report = run(sweep(isr, {}));
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_TRUE(report->table_expires_rows);
    EXPECT_EQ(report->rows_deleted, 0U);
    deleted += report->bodies_deleted;
  }
  EXPECT_EQ(deleted, 1U);
  EXPECT_FALSE(run(stores.bodies->read(keys[0]))->has_value());
  EXPECT_TRUE(run(stores.bodies->read(keys[1]))->has_value());
}

}  // namespace
}  // namespace facetheory::test
