#include "tests/protocol/protocol_suite.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

class PublishTest : public ProtocolSuite {
 protected:
  PublishOutcome publishing(const Lease& lease, PublishOptions options = {},
                            std::string bytes = "<h1>page</h1>") {
    return done([&] { return publish(isr_, lease, rendered(bytes), options); });
  }
  static std::optional<PublishRefused::Reason> refused(const PublishOutcome& outcome) {
    const auto* refusal = std::get_if<PublishRefused>(&outcome);
    return refusal != nullptr ? std::optional(refusal->reason) : std::nullopt;
  }
  Error failure(const Lease& lease, Rendered page, PublishOptions options) {
    Error error{ErrorCode::unavailable, ""};
    const auto passing = [&] {
      return error.code == ErrorCode::unavailable || error.code == ErrorCode::ambiguous;
    };
    for (int attempt = 0; attempt < 50 && passing(); ++attempt)
      error = error_of(run(publish(isr_, lease, page, options)));
    return error;
  }
};

TEST_P(PublishTest, PointsMetaAtTheBodyAndGivesTheLeaseBackTogether) {
  const Lease lease = acquired();
  PublishOptions options;
  options.ttl = seconds(86'400);
  const auto outcome = publishing(lease, options);
  ASSERT_TRUE(std::holds_alternative<Published>(outcome));
  const MetaRow& meta = std::get<Published>(outcome).meta;
  EXPECT_EQ(row("LOCK"), std::nullopt);
  EXPECT_EQ(text("META", "s3_key"), meta.s3_key);
  EXPECT_EQ(number("META", "generated_at"), lease.acquired_at);
  EXPECT_EQ(number("META", "revalidate_seconds"), 60);
  EXPECT_EQ(text("META", "etag"), meta.etag);
  EXPECT_EQ(number("META", "ttl"), meta.ttl);
  EXPECT_EQ(number("META", "version"), 1);
  EXPECT_EQ(text("META", "current_sk"), std::nullopt);
  EXPECT_EQ(run(plain_.bodies->read(meta.s3_key))->value().bytes, "<h1>page</h1>");
  EXPECT_EQ(version_sks().size(), 0U);
}

TEST_P(PublishTest, TellsOfTheBodyBeforeMetaDoes) {
  std::vector<std::string> told;
  PublishOptions options;
  options.on_stored = [&](const std::string& s3_key) { told.push_back(s3_key); };
  const Lease lost = acquired(seconds(2));
  advance(seconds(3));
  EXPECT_TRUE(std::holds_alternative<LeaseLost>(publishing(lost, options)));
  EXPECT_EQ(told.size(), 1U);  // Although META never names that one.
  const Lease lease = acquired();
  const auto outcome = publishing(lease, options);
  ASSERT_TRUE(std::holds_alternative<Published>(outcome));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told.back(), std::get<Published>(outcome).meta.s3_key);
}

TEST_P(PublishTest, GeneratedAtIsWhenTheRenderBeganNotWhenItEnded) {
  const Lease lease = acquired(seconds(60));
  advance(seconds(20));
  publishing(lease);
  EXPECT_EQ(number("META", "generated_at"), lease.acquired_at);
}

TEST_P(PublishTest, WithTheTokenAloneTakesTheTimeFromTheLock) {
  Lease lease = acquired(seconds(60));
  const std::int64_t acquired_at = lease.acquired_at;
  advance(seconds(20));
  lease.acquired_at = 0;
  lease.expires_at = 0;
  publishing(lease);
  EXPECT_EQ(number("META", "generated_at"), acquired_at);
}

TEST_P(PublishTest, AfterATakeoverChangesNothing) {
  const Lease first = acquired(seconds(2));
  advance(seconds(3));
  const Lease second = acquired();
  const auto late = publishing(first, {}, "late");
  ASSERT_TRUE(std::holds_alternative<LeaseLost>(late));
  EXPECT_EQ(row("META"), std::nullopt);
  EXPECT_EQ(text("LOCK", "lease_token"), second.token);

  publishing(second, {}, "winner");
  ASSERT_TRUE(std::holds_alternative<LeaseLost>(publishing(first, {}, "later still")));
  EXPECT_EQ(run(plain_.bodies->read(*text("META", "s3_key")))->value().bytes, "winner");
}

TEST_P(PublishTest, WithHistoryAndARequestAfterATakeoverChangesNoneOfTheRows) {
  const RequestClaim request = claimed("r1");
  const Lease first = acquired(seconds(2));
  advance(seconds(3));
  const Lease second = acquired();
  PublishOptions options;
  options.history = 3;
  options.request = RequestToComplete{"r1", request.owner_token};
  ASSERT_TRUE(std::holds_alternative<LeaseLost>(publishing(first, options, "late")));
  EXPECT_TRUE(version_sks().empty());
  EXPECT_EQ(row("META"), std::nullopt);
  EXPECT_EQ(text("REQ#r1", "status"), "STARTED");
  EXPECT_EQ(text("LOCK", "lease_token"), second.token);
}

TEST_P(PublishTest, AtTheMomentOfExpiryChangesNothingEvenIfNobodyTookOver) {
  const Lease lease = acquired(seconds(30));
  clock_.set_now(WallTime(seconds(lease.expires_at)));
  ASSERT_TRUE(std::holds_alternative<LeaseLost>(publishing(lease)));
  EXPECT_EQ(row("META"), std::nullopt);
}

TEST_P(PublishTest, OneSecondBeforeExpirySucceeds) {
  const Lease lease = acquired(seconds(600));
  // Faults cost time: pauses between attempts.
  const seconds before(GetParam().faulty ? 20 : 1);
  clock_.set_now(WallTime(seconds(lease.expires_at) - before));
  ASSERT_TRUE(std::holds_alternative<Published>(publishing(lease)));
}

TEST_P(PublishTest, WithAForeignTokenChangesNothing) {
  Lease lease = acquired();
  const std::string token = std::exchange(lease.token, "0b9c5ad2-6b1f-4e0f-9d4f-0d6f6f7f3c55");
  ASSERT_TRUE(std::holds_alternative<LeaseLost>(publishing(lease)));
  EXPECT_EQ(row("META"), std::nullopt);
  EXPECT_EQ(text("LOCK", "lease_token"), token);
}

TEST_P(PublishTest, OfALostLeaseLeavesNoBodyBehind) {
  if (GetParam().faulty) return;  // After a lost answer the body is left to the sweeper.
  const Lease first = acquired(seconds(2));
  advance(seconds(3));
  acquired();
  publishing(first);
  EXPECT_TRUE(run(plain_.bodies->list(std::nullopt, 100))->entries.empty());
}

TEST_P(PublishTest, MonotonicGuardRefusesTheSameSecond) {
  PublishOptions options;
  options.monotonic = true;
  published(options, "first");
  const std::int64_t generated_at = *number("META", "generated_at");
  const Lease lease = acquired();
  options.generated_at = generated_at;
  const auto etag = text("META", "etag");
  EXPECT_EQ(refused(publishing(lease, options, "second")), PublishRefused::Reason::superseded);
  EXPECT_EQ(text("META", "etag"), etag);
  options.generated_at = generated_at + 1;
  EXPECT_TRUE(std::holds_alternative<Published>(publishing(lease, options, "third")));
}

TEST_P(PublishTest, OfAnOlderGenerationNeverReplacesANewerOne) {
  published();
  const std::int64_t generated_at = *number("META", "generated_at");
  const std::string before = *text("META", "s3_key");
  const Lease lease = acquired();
  PublishOptions options;
  options.generated_at = generated_at - 1;
  EXPECT_EQ(refused(publishing(lease, options, "older")), PublishRefused::Reason::superseded);
  EXPECT_EQ(text("META", "s3_key"), before);
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);
}

TEST_P(PublishTest, OfAnOlderGenerationIsRefusedAfterAnInvalidationToo) {
  published();
  const std::int64_t generated_at = *number("META", "generated_at");
  done([&] { return invalidate(isr_, page_); });
  const Lease lease = acquired();
  PublishOptions options;
  options.generated_at = generated_at - 1;
  EXPECT_EQ(refused(publishing(lease, options, "older")), PublishRefused::Reason::superseded);
}

TEST_P(PublishTest, GeneratedAtDoesNotGoBackWhenTheClockOfTheNextWorkerIsBehind) {
  published();
  const std::int64_t generated_at = *number("META", "generated_at");
  clock_.set_now(WallTime(seconds(generated_at - 2)));
  published({}, "by a slow clock");
  EXPECT_EQ(number("META", "generated_at"), generated_at);
  EXPECT_EQ(number("META", "version"), 2);
}

TEST_P(PublishTest, GenerationFromFarInTheFutureDoesNotBindAnybody) {
  // Somebody wrote milliseconds.
  put("META", {{"s3_key", "theirs.html"}, {"generated_at", now() * 1000}, {"revalidate_seconds", 60}});
  const Published page = published({}, "in seconds");
  EXPECT_LE(page.meta.generated_at, now());
  put("META", {{"s3_key", "theirs.html"}, {"generated_at", now() * 1000}, {"revalidate_seconds", 60}});
  done([&] { return invalidate(isr_, page_); });
  EXPECT_LE(published({}, "after an invalidation").meta.generated_at, now());
  const Lease lease = acquired();
  PublishOptions options;
  options.generated_at = now() * 1000;
  EXPECT_EQ(failure(lease, rendered(), options).code, ErrorCode::invalid);
}

TEST_P(PublishTest, GeneratedAtIsNoFurtherAheadThanClocksMayDiffer) {
  const std::int64_t allowance = isr_.settings.clock_skew.count();
  const Lease lease = acquired();
  PublishOptions options;
  options.generated_at = now() + allowance + 1;
  const Error error = failure(lease, rendered(), options);
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_THAT(error.message, HasSubstr("clocks may differ by"));
  EXPECT_EQ(row("META"), std::nullopt);
  options.generated_at = now() + allowance;
  EXPECT_TRUE(std::holds_alternative<Published>(publishing(lease, options, "page")));
}

TEST_P(PublishTest, TimeAheadOfAllClocksIsNotInherited) {
  const std::int64_t allowance = isr_.settings.clock_skew.count();
  for (const std::int64_t ahead : {allowance + 1, std::int64_t{3600}, std::int64_t{24 * 3600}}) {
    put("META", {{"s3_key", "theirs.html"}, {"generated_at", now() + ahead}, {"revalidate_seconds", 60}});
    const std::int64_t at = now();
    const std::int64_t generated_at = published({}, "over theirs").meta.generated_at;
    // Faults take time, and then theirs may be a time that some clock has reached.
    EXPECT_TRUE(generated_at == at || GetParam().faulty) << ahead << ": " << generated_at - at;
    EXPECT_LE(generated_at, now() + allowance) << ahead;
    advance(seconds(allowance + 1));
    const Published next = published({}, "over ours");
    EXPECT_TRUE(next.meta.generated_at == now() || GetParam().faulty) << ahead;
    EXPECT_LE(next.meta.generated_at, now()) << ahead;
    // A guard of theirs holds again, too: what they render next is newer.
    EXPECT_LT(*number("META", "generated_at"), now() + 1);
  }
}

TEST_P(PublishTest, MonotonicGuardIsNotHeldUpByATimeAheadOfAllClocks) {
  put("META", {{"s3_key", "theirs.html"}, {"generated_at", now() + 3600}, {"revalidate_seconds", 60}});
  PublishOptions options;
  options.monotonic = true;
  EXPECT_LE(published(options, "ours").meta.generated_at, now() + isr_.settings.clock_skew.count());
}

TEST_P(PublishTest, VersionGuardMustMatch) {
  published();
  const Lease lease = acquired();
  PublishOptions options;
  options.if_version = 7;
  EXPECT_EQ(refused(publishing(lease, options, "a")), PublishRefused::Reason::version);
  options.if_version = 0;
  EXPECT_EQ(refused(publishing(lease, options, "b")), PublishRefused::Reason::version);
  options.if_version = 1;
  options.monotonic = true;
  options.generated_at = *number("META", "generated_at") + 1;
  EXPECT_TRUE(std::holds_alternative<Published>(publishing(lease, options, "c")));
  EXPECT_EQ(number("META", "version"), 2);
}

TEST_P(PublishTest, HistoryKeepsVersionsAndTrimsThemItself) {
  PublishOptions options;
  options.history = 3;
  std::vector<std::string> keys;
  for (int i = 1; i <= 5; ++i) {
    keys.push_back(published(options, "page " + std::to_string(i)).meta.s3_key);
    advance(seconds(1));
    EXPECT_EQ(version_sks().size(), static_cast<std::size_t>(std::min(i, 3)));
    EXPECT_EQ(text("META", "current_sk"), version_sks().back());
    EXPECT_EQ(number(version_sks().back(), "version"), i);
    EXPECT_EQ(number("META", "version"), i);
  }
  const auto kept = done([&] { return versions(isr_, page_); });
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0].s3_key, keys[4]);
  EXPECT_EQ(kept[2].s3_key, keys[2]);
}

// A page that is rendered every minute and changes once a day would otherwise have no other one to go back to.
TEST_P(PublishTest, HistoryTrimsVersionsWithTheSameBodyBeforeOlderPages) {
  put("VER#1000", {{"s3_key", "monday.html"}, {"generated_at", 1}, {"version", 1}});
  for (int version = 2; version <= 4; ++version)
    put("VER#100" + std::to_string(version),
        {{"s3_key", "tuesday.html"}, {"generated_at", version}, {"version", version}});
  PublishOptions options;
  options.history = 4;
  const std::string wednesday = *published(options, "wednesday").meta.current_sk;
  EXPECT_THAT(version_sks(), testing::UnorderedElementsAre(wednesday, "VER#1000", "VER#1003", "VER#1004"));
  const std::string thursday = *published(options, "thursday").meta.current_sk;
  EXPECT_THAT(version_sks(), testing::UnorderedElementsAre(wednesday, thursday, "VER#1000", "VER#1004"));
}

TEST_P(PublishTest, HistoryTrimsThePageThatIsReplacedLast) {
  PublishOptions options;
  options.history = 2;
  const std::string good = *published(options, "good").meta.current_sk;
  advance(seconds(1));
  const std::string bad = *published(options, "bad").meta.current_sk;
  advance(seconds(1));
  ASSERT_TRUE(std::holds_alternative<Pinned>(done([&] { return rollback(isr_, page_, good); })));
  done([&] { return unpin(isr_, page_); });
  advance(seconds(1));
  const std::string next = *published(options, "as bad").meta.current_sk;
  EXPECT_THAT(version_sks(), testing::UnorderedElementsAre(good, next));
}

TEST_P(PublishTest, ShorterHistoryTrimsWhatALongerOneKept) {
  PublishOptions options;
  options.history = 5;
  for (int i = 0; i < 5; ++i)
    published(options, "page " + std::to_string(i));
  options.history = 2;
  published(options, "last");
  EXPECT_EQ(version_sks().size(), 2U);
}

TEST_P(PublishTest, VersionedMetaHoldsAllThatAReaderOfRecipeANeeds) {
  PublishOptions options;
  options.history = 2;
  options.ttl = seconds(1000);
  const MetaRow meta = published(options).meta;
  const std::string sk = *meta.current_sk;
  for (const char* attribute : {"s3_key", "etag"}) {
    EXPECT_EQ(text("META", attribute), text(sk, attribute)) << attribute;
    EXPECT_TRUE(text("META", attribute)) << attribute;
  }
  for (const char* attribute : {"generated_at", "revalidate_seconds", "ttl", "version"}) {
    EXPECT_EQ(number("META", attribute), number(sk, attribute)) << attribute;
    EXPECT_TRUE(number("META", attribute)) << attribute;
  }
  EXPECT_EQ(number(sk, "status"), 200);
  EXPECT_EQ(text(sk, "content_type"), "text/html; charset=utf-8");
  EXPECT_EQ(text(sk, "cache_key"), page_.cache_key);
}

TEST_P(PublishTest, VersionGoesOnFromTheNewestVersionAfterAForeignWriterDroppedIt) {
  PublishOptions options;
  options.history = 3;
  published(options, "one");
  published(options, "two");
  put("META", {{"s3_key", "theirs.html"}, {"generated_at", now()}, {"revalidate_seconds", 60}});
  published(options, "three");
  EXPECT_EQ(number("META", "version"), 3);
  put("META", {{"s3_key", "theirs.html"}, {"generated_at", now()}, {"revalidate_seconds", 60}});
  published({}, "four, without history");
  EXPECT_EQ(number("META", "version"), 4);
}

TEST_P(PublishTest, VersionGoesOnAfterMetaHasExpired) {
  PublishOptions options;
  options.history = 3;
  published(options, "one");
  published(options, "two");
  done([&] { return purge(isr_, page_); });  // As the table does with what is past its ttl.
  published(options, "three");
  EXPECT_EQ(number("META", "version"), 3);
}

TEST_P(PublishTest, HistoryBeyondOneTransactionIsTrimmedOverTwo) {
  for (int i = 0; i < 130; ++i) {
    put("VER#" + std::to_string(1000 + i), {{"s3_key", "old.html"}, {"generated_at", 1}, {"version", i + 1}});
  }
  PublishOptions options;
  options.history = 2;
  published(options, "one");
  EXPECT_GT(version_sks().size(), 2U);
  published(options, "two");
  EXPECT_EQ(version_sks().size(), 2U);
  EXPECT_EQ(number("META", "version"), 132);
}

TEST_P(PublishTest, VersionIdsSortByCreationEvenIfTheNextWorkersClockIsBehind) {
  PublishOptions options;
  options.history = 5;
  const std::string first = *published(options, "one").meta.current_sk;
  clock_.set_now(clock_.now() - std::chrono::seconds(2));
  const std::string second = *published(options, "two").meta.current_sk;
  EXPECT_LT(first, second);
}

TEST_P(PublishTest, BytesThatAreTheSameAreStoredOnce) {
  const Published first = published({}, "same");
  advance(seconds(100));
  const Published second = published({}, "same");
  // Where the current body could not be read, a second copy is the lesser evil.
  EXPECT_TRUE(second.body_reused || GetParam().faulty);
  EXPECT_EQ(second.body_reused, second.meta.s3_key == first.meta.s3_key);
  EXPECT_GT(second.meta.generated_at, first.meta.generated_at);
  EXPECT_EQ(second.meta.version, 2);
  EXPECT_TRUE(has_body(second.meta.s3_key));
  const Published third = published({}, "different");
  EXPECT_FALSE(third.body_reused);
  EXPECT_NE(third.meta.s3_key, first.meta.s3_key);
}

TEST_P(PublishTest, BytesThatAreTheSameAreStoredAnewWhenTheirBodyIsGoneOrOfAnotherType) {
  const Published first = published({}, "same");
  ASSERT_TRUE(run(plain_.bodies->remove(first.meta.s3_key)));
  const Published second = published({}, "same");
  EXPECT_FALSE(second.body_reused);
  EXPECT_TRUE(has_body(second.meta.s3_key));

  const Lease lease = acquired();
  Rendered json = rendered("same");
  json.body.metadata.content_type = "application/json";
  const auto outcome = done([&] { return publish(isr_, lease, json, {}); });
  EXPECT_FALSE(std::get<Published>(outcome).body_reused);
}

TEST_P(PublishTest, BytesOfAnotherWriterAreNotSharedWithHim) {
  // He may delete his object when he likes.
  const Published first = published({}, "same");
  Body theirs;
  theirs.bytes = "same";
  theirs.metadata.content_type = "text/html; charset=utf-8";
  const std::string key = body_folder(page_) + "/1700000000000-0b9c5ad2-6b1f-4e0f-9d4f-0d6f6f7f3c55.html";
  ASSERT_TRUE(run(plain_.bodies->write(key, theirs)));
  MetaRow meta = first.meta;
  meta.s3_key = plain_.bodies->reference(key);
  put(to_item(page_.pk, meta));
  EXPECT_NE(published({}, "same").meta.s3_key, meta.s3_key);
}

TEST_P(PublishTest, EtagIsOfTheBytesUnlessGiven) {
  const Published first = published({}, "one");
  EXPECT_THAT(*first.meta.etag, testing::MatchesRegex("\"[0-9a-f]{32}\""));
  EXPECT_NE(published({}, "two").meta.etag, first.meta.etag);
  const Lease lease = acquired();
  Rendered page = rendered("three");
  page.etag = "W/\"mine\"";
  done([&] { return publish(isr_, lease, page, {}); });
  EXPECT_EQ(text("META", "etag"), "W/\"mine\"");
}

TEST_P(PublishTest, TtlInsideTheFreshnessWindowIsRefused) {
  const Lease lease = acquired();
  PublishOptions options;
  options.ttl = seconds(60);
  options.generated_at = now() + 1;
  const Error error = failure(lease, rendered(), options);
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_THAT(error.message, AllOf(HasSubstr("ttl"), HasSubstr("longer")));
  EXPECT_EQ(row("META"), std::nullopt);
}

TEST_P(PublishTest, BadOptionsAreRefusedBeforeAnythingIsWritten) {
  const Lease lease = acquired();
  Rendered page = rendered();
  page.revalidate = seconds(0);
  EXPECT_EQ(failure(lease, page, {}).code, ErrorCode::invalid);
  page = rendered();
  page.etag = "a\nb";
  EXPECT_EQ(failure(lease, page, {}).code, ErrorCode::invalid);
  page = rendered();
  page.tags = {"good", "bad\x01tag"};
  EXPECT_EQ(failure(lease, page, {}).code, ErrorCode::invalid);
  page = rendered();
  for (std::size_t i = 0; i <= kMaxTags; ++i)
    page.tags.push_back("tag " + std::to_string(i));
  EXPECT_EQ(failure(lease, page, {}).code, ErrorCode::invalid);
  PublishOptions options;
  options.history = -1;
  EXPECT_EQ(failure(lease, rendered(), options).code, ErrorCode::invalid);
  options.history = 1000;
  EXPECT_EQ(failure(lease, rendered(), options).code, ErrorCode::invalid);
  EXPECT_EQ(row("META"), std::nullopt);
}

TEST_P(PublishTest, CompletesTheRequestInTheSameTransaction) {
  const RequestClaim request = claimed("r1");
  const Lease lease = acquired();
  PublishOptions options;
  options.request = RequestToComplete{"r1", request.owner_token};
  const auto outcome = publishing(lease, options);
  ASSERT_TRUE(std::holds_alternative<Published>(outcome));
  EXPECT_EQ(text("REQ#r1", "status"), "COMPLETED");
  EXPECT_EQ(text("REQ#r1", "result_s3_key"), text("META", "s3_key"));
  EXPECT_EQ(number("REQ#r1", "in_progress_expires_at"), std::nullopt);
  EXPECT_GE(number("REQ#r1", "ttl"), now() + 86'000);
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(PublishTest, ChangesNothingWhenTheRequestBelongsToSomebodyElse) {
  const RequestClaim first = claimed("r1");
  const Lease lease = acquired(seconds(600));
  advance(seconds(200));
  const RequestClaim second = claimed("r1");
  PublishOptions options;
  options.request = RequestToComplete{"r1", first.owner_token};
  EXPECT_EQ(refused(publishing(lease, options)), PublishRefused::Reason::request);
  EXPECT_EQ(row("META"), std::nullopt);
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);
  EXPECT_EQ(text("REQ#r1", "owner_token"), second.owner_token);
  EXPECT_EQ(text("REQ#r1", "status"), "STARTED");
}

TEST_P(PublishTest, UnderARequestThatNobodyClaimedSaysSo) {
  const Lease lease = acquired();
  PublishOptions options;
  options.request = RequestToComplete{"nobody", std::nullopt};
  const Error error = failure(lease, rendered(), options);
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_THAT(error.message, HasSubstr("claim it"));
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);
}

TEST_P(PublishTest, OnAPinnedPageIsRefused) {
  published();
  done([&] { return pin(isr_, page_); });
  const Lease lease = acquired();
  EXPECT_EQ(refused(publishing(lease)), PublishRefused::Reason::pinned);
}

TEST_P(PublishTest, OverAMetaOfWrongTypeIsAnErrorThatNamesIt) {
  put("META", {{"s3_key", "k"}, {"generated_at", "yesterday"}, {"revalidate_seconds", 60}});
  const Lease lease = acquired();
  const Error error = failure(lease, rendered(), {});
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_THAT(error.message, HasSubstr("generated_at"));
  EXPECT_EQ(text("META", "generated_at"), "yesterday");
}

TEST_P(PublishTest, NamesBodiesSoThatOtherLanguagesFindThem) {
  const Published page = published();
  if (GetParam().name.starts_with("dynamodb")) {
    // The complete key of the object, prefix and all.
    EXPECT_THAT(page.meta.s3_key,
                testing::MatchesRegex("protocol-[0-9]+/[0-9a-f]{24}/[0-9]+-[0-9a-f-]{36}\\.isr\\.html"));
  } else {
    EXPECT_THAT(page.meta.s3_key, testing::MatchesRegex("[0-9a-f]{24}/[0-9]+-[0-9a-f-]{36}\\.isr\\.html"));
  }
}

INSTANTIATE_TEST_SUITE_P(Protocol, PublishTest, testing::ValuesIn(protocol_backends()),
                         protocol_backend_name);

class PublishAnswerTest : public OneFaultSuite {
 protected:
  PublishAnswerTest() : lease_(std::get<Lease>(*run(acquire(isr_, page_, seconds(30))))) {
    page_to_publish_.body.bytes = "page";
  }
  Result<PublishOutcome> publishing(PublishOptions options = {}) {
    return run(publish(isr_, lease_, page_to_publish_, options));
  }
  Lease lease_;
  Rendered page_to_publish_;
};

TEST_F(PublishAnswerTest, ThatWasLostIsSettledByMeta) {
  script_->queue("transact", Fault::lose_answer);
  const auto outcome = publishing();
  ASSERT_TRUE(outcome && std::holds_alternative<Published>(*outcome));
  EXPECT_EQ(read_meta(*row("META"))->s3_key, std::get<Published>(*outcome).meta.s3_key);
}

TEST_F(PublishAnswerTest, ThatNeverCameIsSettledByMetaToo) {
  script_->queue("transact", Fault::lose_answer, 4);
  const auto outcome = publishing();
  ASSERT_TRUE(outcome && std::holds_alternative<Published>(*outcome));
}

TEST_F(PublishAnswerTest, ThatWasLostWithTheRequestIsRepeated) {
  script_->queue("transact", Fault::lose_request, 3);
  const auto outcome = publishing();
  ASSERT_TRUE(outcome && std::holds_alternative<Published>(*outcome));
}

TEST_F(PublishAnswerTest, ThatNobodyCanSettleIsAmbiguousAndLeavesTheBody) {
  script_->queue("transact", Fault::lose_request, 4);
  EXPECT_EQ(error_of(publishing()).code, ErrorCode::ambiguous);
  EXPECT_EQ(row("META"), std::nullopt);
  EXPECT_EQ(run(plain_.bodies->list(std::nullopt, 10))->entries.size(), 1U);
}

TEST_F(PublishAnswerTest, ThatCannotBeSettledBecauseReadingFailsIsAmbiguousNotUnavailable) {
  script_->queue("transact", Fault::lose_answer, 4);
  script_->queue("get", Fault::none);  // The look at META before it.
  script_->queue("get", Fault::throttle, 20);
  EXPECT_EQ(error_of(publishing()).code, ErrorCode::ambiguous);
}

// Whoever sleeps for the first time finds that another worker has published in the meantime.
class OvertakingClock final : public Clock {
 public:
  OvertakingClock(Clock& inner, Table& table, Item meta)
      : inner_(inner), table_(table), meta_(std::move(meta)) {}
  WallTime now() const override { return inner_.now(); }
  Duration monotonic() const override { return inner_.monotonic(); }
  Task<bool> wait_for(Duration duration) override {
    if (meta_) {
      Write write = Put{*std::exchange(meta_, std::nullopt)};
      [[maybe_unused]] auto written = co_await table_.write(std::move(write), Durability::machine);
    }
    co_return co_await inner_.wait_for(duration);
  }

 private:
  Clock& inner_;
  Table& table_;
  std::optional<Item> meta_;
};

TEST_F(PublishAnswerTest, ThatWasLostIsSettledByTheVersionAfterSomebodyElsePublished) {
  OvertakingClock clock(
      clock_, *plain_.table,
      {{page_.pk, "META"},
       {{"s3_key", "theirs.html"}, {"generated_at", isr_.now()}, {"revalidate_seconds", 60}}});
  script_->queue("transact", Fault::lose_answer);
  Isr isr{*faulty_.table, *faulty_.bodies, clock, random_, {}};
  PublishOptions options;
  options.history = 2;
  const auto outcome = run(publish(isr, lease_, page_to_publish_, options));
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_TRUE(std::holds_alternative<Published>(*outcome));
  EXPECT_EQ(read_meta(*row("META"))->s3_key, "theirs.html");
}

TEST_F(PublishAnswerTest, ThatWasLostIsSettledByTheRequestAfterSomebodyElsePublished) {
  const auto request = std::get<RequestClaim>(*run(claim(isr_, page_, "r1", "hash", seconds(30))));
  OvertakingClock clock(
      clock_, *plain_.table,
      {{page_.pk, "META"},
       {{"s3_key", "theirs.html"}, {"generated_at", isr_.now()}, {"revalidate_seconds", 60}}});
  script_->queue("transact", Fault::lose_answer);
  Isr isr{*faulty_.table, *faulty_.bodies, clock, random_, {}};
  PublishOptions options;
  options.request = RequestToComplete{"r1", request.owner_token};
  const auto outcome = run(publish(isr, lease_, page_to_publish_, options));
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_TRUE(std::holds_alternative<Published>(*outcome));
}

TEST_F(PublishAnswerTest, OfTheBodyStoreThatWasLostIsRepeated) {
  script_->queue("write", Fault::lose_answer);
  const auto outcome = publishing();
  ASSERT_TRUE(outcome && std::holds_alternative<Published>(*outcome));
}

TEST_F(PublishAnswerTest, MetaNeverPointsAtABodyThatWasNotStored) {
  script_->queue("write", Fault::fail, 10);
  EXPECT_EQ(error_of(publishing()).code, ErrorCode::unavailable);
  EXPECT_EQ(row("META"), std::nullopt);
  EXPECT_TRUE(row("LOCK"));
}

}  // namespace
}  // namespace facetheory::test
