// The checker itself: sequences of raw writes, made by hand, each with one thing in it that must not be. A checker
// that sees nothing finds nothing.
#include "tests/simulation/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory::simulation {
namespace {

using testing::HasSubstr;
using Kind = Report::Kind;

constexpr std::int64_t kStart = 1'700'000'000;
const std::string kPk = "CACHE#abc";
const std::string kTagPk = "TAG#red";

// A fleet of two by hand: every row as it stands, and a clock that all agree on.
class CheckerTest : public testing::Test {
 protected:
  explicit CheckerTest(CheckerSettings settings = {.longest_lease = 10}) : checker_(settings) {
    checker_.body_written("body-1", false);
    checker_.body_written("body-2", false);
  }

  std::int64_t now() const { return now_; }
  void pass(std::int64_t seconds) { now_ += seconds; }
  Millis millis() const { return now_ * 1000; }

  std::uint64_t begin(Intent intent, PartyId party = 1, std::string request_id = {},
                      std::string inputs = {}) {
    Operation operation{.party = party, .intent = intent, .pk = kPk};
    operation.request_id = std::move(request_id);
    operation.inputs = std::move(inputs);
    return checker_.begin(std::move(operation), millis());
  }
  void end(std::uint64_t operation, Report report) { checker_.end(operation, report, millis()); }

  using Rows = std::vector<std::pair<std::string, std::optional<Attributes>>>;
  // One transaction that leaves these rows behind; nothing: the row is gone.
  void commit(std::uint64_t operation, const Rows& rows, std::int64_t asked_ago = 0,
              const std::string& pk = kPk) {
    Commit commit{operation, millis() - asked_ago * 1000, millis() - asked_ago * 1000, {}};
    for (const auto& [sk, after] : rows) {
      const Key key{pk, sk};
      const auto stored = rows_.find(key);
      commit.changes.push_back(
          Change{key, stored == rows_.end() ? std::nullopt : std::optional(stored->second), after});
      if (after) {
        rows_[key] = *after;
      } else {
        rows_.erase(key);
      }
    }
    checker_.committed(commit, millis());
  }

  static Attributes lock(const std::string& token, std::int64_t expires_at) {
    return {{"lease_token", token},
            {"lease_expires_at", expires_at},
            {"ttl", expires_at + 60},
            {"acquired_at", expires_at - 10}};
  }
  static Attributes meta(const std::string& s3_key, std::int64_t generated_at, std::int64_t window = 60) {
    return {{"s3_key", s3_key}, {"generated_at", generated_at}, {"revalidate_seconds", window}};
  }
  static Attributes closed(const std::string& s3_key, std::int64_t generated_at) {
    Attributes row = meta(s3_key, 0, 0);
    row.set("last_generated_at", generated_at);
    return row;
  }
  static Attributes with(Attributes row, const std::string& name, Value value) {
    row.set(name, std::move(value));
    return row;
  }
  Attributes request(const std::string& status, const std::string& owner,
                     const std::string& hash = "h1") const {
    return {{"status", status},
            {"owner_token", owner},
            {"request_hash", hash},
            {"ttl", now_ + 100},
            {"in_progress_expires_at", now_ + 10}};
  }

  void acquire(const std::string& token, PartyId party = 1, std::int64_t length = 10) {
    commit(begin(Intent::acquire, party), {{"LOCK", lock(token, now_ + length)}});
  }
  void publish(const std::string& s3_key, PartyId party = 1) {
    commit(begin(Intent::publish, party), {{"LOCK", {}}, {"META", meta(s3_key, now_)}});
  }
  void page(const std::string& s3_key = "body-1") {
    acquire("first");
    publish(s3_key);
    pass(1);
  }

  void expect_clean() const { EXPECT_EQ(checker_.violation(), std::nullopt); }
  void expect(const std::string& violation) const {
    ASSERT_TRUE(checker_.violation()) << "nothing was found";
    EXPECT_THAT(*checker_.violation(), HasSubstr(violation));
  }

  std::int64_t now_ = kStart;
  Checker checker_;
  std::map<Key, Attributes> rows_;
};

// Bodies must stay for a minute for readers with an old pointer.
class SlowReadersTest : public CheckerTest {
 protected:
  SlowReadersTest() : CheckerTest({.longest_lease = 10, .bodies_stay = 60'000}) {}
};

TEST_F(CheckerTest, FindsNothingInAnOrderlyLife) {
  page();
  acquire("second", 2);
  commit(begin(Intent::refresh, 2), {{"LOCK", lock("second", now() + 10)}});
  publish("body-2", 2);
  const auto invalidation = begin(Intent::invalidate);
  commit(invalidation, {{"META", closed("body-2", now())}, {"LOCK", {}}});
  end(invalidation, {.kind = Kind::done});
  expect_clean();
}

TEST_F(CheckerTest, SeesAPinRemovedThatNoMarkHadPurged) {
  page();
  commit(begin(Intent::pin), {{"META", with(with(meta("body-1", now()), "pinned", true), "version", 1)}});
  expect_clean();
  commit(begin(Intent::regenerate), {{"META", {}}});
  expect("was deleted by regenerate");
}

TEST_F(CheckerTest, AllowsAPinToBeRemovedThatAMarkHasPurged) {
  page();
  commit(begin(Intent::pin), {{"META", with(meta("body-1", now()), "pinned", true)}});
  commit(begin(Intent::mark), {{"META", Attributes{{"purged_at", now() + 2}}}}, 0, "TAG#");
  commit(begin(Intent::regenerate), {{"META", {}}});
  expect_clean();
}

TEST_F(CheckerTest, SeesAPublishWithoutItsLock) {
  acquire("t");
  commit(begin(Intent::publish), {{"META", meta("body-1", now())}});
  expect("moved without its LOCK");
}

TEST_F(CheckerTest, SeesAPublishUnderSomebodyElsesLease) {
  acquire("t", 1);
  publish("body-1", 2);
  expect("never had its lease");
}

TEST_F(CheckerTest, SeesAPublishUnderALeaseThatWasOver) {
  acquire("t");
  pass(11);
  publish("body-1");
  expect("was over when the publish was asked for");
}

TEST_F(CheckerTest, AcceptsAPublishThatArrivesLate) {
  acquire("t");
  pass(11);
  commit(begin(Intent::publish), {{"LOCK", {}}, {"META", meta("body-1", now())}}, 5);
  expect_clean();
}

TEST_F(CheckerTest, SeesAPublishUnderATokenThatNobodyAcquired) {
  rows_[{kPk, "LOCK"}] = lock("planted", now() + 10);
  publish("body-1");
  expect("harness: LOCK changed unseen");
}

TEST_F(CheckerTest, SeesATokenThatComesBack) {
  acquire("t");
  publish("body-1");
  acquire("t");
  expect("a token that was there before");
}

TEST_F(CheckerTest, SeesAPublishAfterTheRenderHadFailed) {
  acquire("t");
  checker_.render_failed("t");
  publish("body-1");
  expect("although the render had failed");
}

TEST_F(CheckerTest, SeesAPublishUnderABackoff) {
  acquire("t");
  commit(begin(Intent::back_off),
         {{"LOCK", with(with(lock("nobodys", now() + 10), "failures", 1), "backoff_token", "nobodys")}});
  expect_clean();
  publish("body-1");
  expect("under a backoff's token");
}

TEST_F(CheckerTest, SeesAPublishOverAPin) {
  page();
  commit(begin(Intent::pin), {{"META", with(meta("body-1", now(), 1'000'000), "pinned", true)}});
  expect_clean();
  acquire("t");
  publish("body-2");
  expect("although it was pinned");
}

TEST_F(CheckerTest, SeesALeaseTakenWhileItIsHeld) {
  acquire("mine", 1);
  pass(9);
  acquire("yours", 2);
  expect("replaced while its lease was held");
}

TEST_F(CheckerTest, AcceptsALeaseTakenInTheSecondInWhichItEnds) {
  acquire("mine", 1);
  pass(10);
  acquire("yours", 2);
  expect_clean();
}

TEST_F(CheckerTest, SeesAReleaseWithoutTheToken) {
  acquire("mine", 1);
  commit(begin(Intent::release, 2), {{"LOCK", {}}});
  expect("deleted by somebody who never had its lease");
}

TEST_F(CheckerTest, SeesARefreshThatShortens) {
  acquire("mine", 1);
  commit(begin(Intent::refresh, 1), {{"LOCK", lock("mine", now() + 5)}});
  expect("shortened by a refresh");
}

TEST_F(CheckerTest, SeesARefreshBySomebodyElse) {
  acquire("mine", 1);
  commit(begin(Intent::refresh, 2), {{"LOCK", lock("mine", now() + 10)}});
  commit(begin(Intent::refresh, 2), {{"LOCK", lock("mine", now() + 11)}});
  expect("refreshed by somebody who never had its lease");
}

TEST_F(CheckerTest, SeesARefreshAfterTheEnd) {
  acquire("mine", 1);
  pass(11);
  commit(begin(Intent::refresh, 1), {{"LOCK", lock("mine", now() + 10)}});
  expect("refreshed after its time was over");
}

TEST_F(CheckerTest, SeesALeaseWithoutEnd) {
  acquire("mine", 1, 1000);
  expect("longer than any lease");
}

TEST_F(CheckerTest, SeesMetaNameABodyThatDoesNotExist) {
  acquire("t");
  publish("nowhere");
  expect("META of CACHE#abc names a body that does not exist");
}

TEST_F(CheckerTest, SeesABodySweptUnderMeta) {
  page();
  checker_.body_removed("body-2", millis());
  expect_clean();
  checker_.body_removed("body-1", millis());
  expect("was removed though META of CACHE#abc names it");
}

TEST_F(SlowReadersTest, SeesABodyRemovedTooSoonAfterMetaCeasedToNameIt) {
  page();
  acquire("u");
  publish("body-2");
  expect_clean();
  checker_.body_removed("body-1", millis() + 59'000);
  expect("was removed under a reader");
}

TEST_F(SlowReadersTest, AllowsABodyToBeRemovedAWhileAfterMetaCeasedToNameIt) {
  page();
  acquire("u");
  publish("body-2");
  checker_.body_removed("body-1", millis() + 60'000);
  expect_clean();
}

TEST_F(CheckerTest, SeesABodySweptUnderAVersion) {
  acquire("t");
  commit(begin(Intent::publish), {{"LOCK", {}},
                                  {"META", with(meta("body-1", now()), "current_sk", "VER#1")},
                                  {"VER#1", with(meta("body-1", now()), "version", 1)}});
  acquire("u");
  publish("body-2");
  expect_clean();
  checker_.body_removed("body-1", millis());
  expect("was removed though VER#1 of CACHE#abc names it");
}

TEST_F(CheckerTest, SeesABodySweptUnderACompletedRequestUntilItsTtl) {
  commit(begin(Intent::claim), {{"REQ#a", request("STARTED", "o")}});
  commit(begin(Intent::complete), {{"REQ#a", with(request("COMPLETED", "o"), "result_s3_key", "body-1")}});
  commit(begin(Intent::claim), {{"REQ#b", request("STARTED", "p")}});
  commit(begin(Intent::complete), {{"REQ#b", with(request("COMPLETED", "p"), "result_s3_key", "body-2")}});
  checker_.body_removed("body-2", millis() + 200'000);
  expect_clean();
  checker_.body_removed("body-1", millis());
  expect("was removed though REQ#a of CACHE#abc names it");
}

TEST_F(CheckerTest, SeesAnotherWritersBodyRemoved) {
  checker_.body_written("foreign", true);
  checker_.body_removed("foreign", millis());
  expect("of another writer was removed");
}

TEST_F(CheckerTest, SeesAnOlderGenerationReplaceANewerOne) {
  page();
  pass(5);
  acquire("t");
  commit(begin(Intent::publish), {{"LOCK", {}}, {"META", meta("body-2", now() - 10)}});
  expect("generated_at in META of CACHE#abc went back");
}

TEST_F(CheckerTest, SeesTheTruthLostByAnInvalidation) {
  page();
  commit(begin(Intent::invalidate), {{"META", meta("body-1", 0, 0)}, {"LOCK", {}}});
  expect("generated_at in META of CACHE#abc went back");
}

TEST_F(CheckerTest, SeesAVersionTwice) {
  const auto publish_version = [this](const std::string& sk, int version) {
    commit(begin(Intent::publish),
           {{"LOCK", {}},
            {"META", with(with(meta("body-1", now()), "current_sk", sk), "version", version)},
            {sk, with(meta("body-1", now()), "version", version)}});
  };
  acquire("t");
  publish_version("VER#1", 1);
  acquire("u");
  publish_version("VER#2", 2);
  expect_clean();
  acquire("v");
  publish_version("VER#3", 2);
  expect("the version in META of CACHE#abc was not raised");
}

TEST_F(CheckerTest, SeesAVersionThatSortsBeforeAnOlderOne) {
  acquire("t");
  commit(
      begin(Intent::publish),
      {{"LOCK", {}}, {"META", meta("body-1", now())}, {"VER#5", with(meta("body-1", now()), "version", 1)}});
  acquire("u");
  commit(
      begin(Intent::publish),
      {{"LOCK", {}}, {"META", meta("body-1", now())}, {"VER#4", with(meta("body-1", now()), "version", 2)}});
  expect("does not sort after the older versions");
}

TEST_F(CheckerTest, SeesAVersionNumberThatDoesNotFollow) {
  acquire("t");
  commit(
      begin(Intent::publish),
      {{"LOCK", {}}, {"META", meta("body-1", now())}, {"VER#5", with(meta("body-1", now()), "version", 3)}});
  acquire("u");
  commit(
      begin(Intent::publish),
      {{"LOCK", {}}, {"META", meta("body-1", now())}, {"VER#6", with(meta("body-1", now()), "version", 3)}});
  expect("does not follow the last one");
}

TEST_F(CheckerTest, SeesAPointerAtAVersionThatDoesNotExist) {
  acquire("t");
  commit(begin(Intent::publish),
         {{"LOCK", {}}, {"META", with(meta("body-1", now()), "current_sk", "VER#1")}});
  expect("points at VER#1, which does not exist");
}

TEST_F(CheckerTest, SeesAVersionDeletedOrChanged) {
  acquire("t");
  commit(
      begin(Intent::publish),
      {{"LOCK", {}}, {"META", meta("body-1", now())}, {"VER#1", with(meta("body-1", now()), "version", 1)}});
  commit(begin(Intent::rollback), {{"VER#1", with(meta("body-2", now()), "version", 1)}});
  expect("VER#1 of CACHE#abc was changed");
}

TEST_F(CheckerTest, SeesAnInvalidationThatLeavesTheLock) {
  page();
  acquire("t");
  commit(begin(Intent::invalidate), {{"META", closed("body-1", now() - 1)}});
  expect("was invalidated and its LOCK left");
}

TEST_F(CheckerTest, SeesALeaseBroughtBackAfterAnInvalidation) {
  page();
  acquire("t");
  const auto invalidation = begin(Intent::invalidate);
  commit(invalidation, {{"META", closed("body-1", now() - 1)}, {"LOCK", {}}});
  expect_clean();
  commit(begin(Intent::acquire), {{"LOCK", lock("t", now() + 10)}});
  expect("a token that was there before");
}

TEST_F(CheckerTest, SeesARenderSurviveAnInvalidationThatFoundNothing) {
  acquire("t");
  const auto invalidation = begin(Intent::invalidate, 2);
  end(invalidation, {.kind = Kind::done});
  publish("body-1");
  expect("began before an invalidation, purge or rollback");
}

TEST_F(CheckerTest, AcceptsARenderThatBeganDuringTheInvalidation) {
  const auto invalidation = begin(Intent::invalidate, 2);
  acquire("t");
  end(invalidation, {.kind = Kind::done});
  publish("body-1");
  expect_clean();
}

TEST_F(CheckerTest, SeesAnInvalidationThatClosedNothing) {
  page();
  end(begin(Intent::invalidate), {.kind = Kind::done});
  expect("though the window is open");
}

TEST_F(CheckerTest, SeesAPurgeThatLeavesMeta) {
  page();
  end(begin(Intent::purge), {.kind = Kind::done});
  expect("though META is still there");
}

TEST_F(CheckerTest, SeesAPinnedPageInvalidated) {
  page();
  commit(begin(Intent::pin), {{"META", with(meta("body-1", now(), 1'000'000), "pinned", true)}});
  commit(begin(Intent::invalidate), {{"META", closed("body-1", now())}, {"LOCK", {}}});
  expect("was pinned");
}

TEST_F(CheckerTest, SeesARollbackToWhatWasNeverKept) {
  page();
  commit(begin(Intent::rollback),
         {{"META", with(meta("body-2", now(), 1'000'000), "pinned", true)}, {"LOCK", {}}});
  expect("not that of a version that was kept");
}

TEST_F(CheckerTest, SeesAMarkThatMissesARenderBegunBefore) {
  acquire("t");
  commit(begin(Intent::publish),
         {{"LOCK", {}}, {"META", with(meta("body-1", now()), "tags", StringSet{"red"})}});
  Operation marking{.party = 2, .intent = Intent::mark, .pk = kTagPk};
  const auto mark = checker_.begin(marking, millis());
  commit(mark, {{"META", Attributes{{"invalidated_at", now() + 2}}}}, 0, kTagPk);
  expect_clean();
  const auto wrong = checker_.begin(marking, millis());
  rows_[{kTagPk, "META"}] = Attributes{{"invalidated_at", now() + 2}};
  commit(wrong, {{"META", Attributes{{"invalidated_at", now() - 1}}}}, 0, kTagPk);
  expect("went back");
}

TEST_F(CheckerTest, SeesAPageThatIsFreshAlthoughItsTagWasMarkedDuringItsRender) {
  acquire("t");
  pass(3);
  const auto mark = checker_.begin({.party = 2, .intent = Intent::mark, .pk = kTagPk}, millis());
  commit(mark, {{"META", Attributes{{"invalidated_at", now()}}}}, 0, kTagPk);
  pass(3);
  // A writer that dates its pages by the time of publishing would do this.
  commit(begin(Intent::publish),
         {{"LOCK", {}}, {"META", with(meta("body-1", now()), "tags", StringSet{"red"})}});
  expect("was marked after its render had begun");
}

TEST_F(CheckerTest, SeesARecordCompletedTwice) {
  commit(begin(Intent::claim), {{"REQ#a", request("STARTED", "o")}});
  commit(begin(Intent::complete), {{"REQ#a", with(request("COMPLETED", "o"), "result_s3_key", "body-1")}});
  expect_clean();
  commit(begin(Intent::complete), {{"REQ#a", with(request("COMPLETED", "o"), "result_s3_key", "body-2")}});
  expect("changed after it was COMPLETED");
}

TEST_F(CheckerTest, SeesARecordChangeItsHash) {
  commit(begin(Intent::claim), {{"REQ#a", request("STARTED", "o", "h1")}});
  pass(11);
  commit(begin(Intent::claim), {{"REQ#a", request("STARTED", "p", "h2")}});
  expect("changed its request_hash");
}

TEST_F(CheckerTest, SeesARecordTakenOverWhileItIsInProgress) {
  commit(begin(Intent::claim, 1), {{"REQ#a", request("STARTED", "o")}});
  pass(9);
  commit(begin(Intent::claim, 2), {{"REQ#a", request("STARTED", "p")}});
  expect("taken over while it was in progress");
}

TEST_F(CheckerTest, SeesARecordEndedBySomebodyWhoHadNotClaimedIt) {
  commit(begin(Intent::claim, 1), {{"REQ#a", request("STARTED", "o")}});
  commit(begin(Intent::fail, 2), {{"REQ#a", request("FAILED", "o")}});
  expect("changed by somebody who had not claimed it");
}

TEST_F(CheckerTest, SeesARecordCompletedWithARenderFromBefore) {
  page();
  pass(5);
  const auto regeneration = begin(Intent::regenerate);
  commit(regeneration, {{"REQ#a", request("STARTED", "o")}});
  commit(regeneration, {{"REQ#a", with(request("COMPLETED", "o"), "result_s3_key", "body-1")}});
  expect("completed with a render that began before it");
}

TEST_F(CheckerTest, SeesOneHashForDifferentInputs) {
  commit(begin(Intent::claim, 1, "a", "one"), {{"REQ#a", request("STARTED", "o", "h")}});
  commit(begin(Intent::claim, 1, "b", "two"), {{"REQ#b", request("STARTED", "p", "h")}});
  expect("one hash for different inputs");
}

TEST_F(CheckerTest, SeesAMismatchWithAClaimOfOnesOwn) {
  const auto regeneration = begin(Intent::regenerate, 1, "a", "one");
  commit(regeneration, {{"REQ#a", request("STARTED", "o", "h1")}});
  pass(11);
  commit(begin(Intent::claim, 2, "a", "one"), {{"REQ#a", request("STARTED", "p", "h1")}});
  expect_clean();
  end(regeneration, {.kind = Kind::mismatch});
  expect("though the record was claimed");
}

TEST_F(CheckerTest, AcceptsAMismatchOnceTheRecordHasExpiredAndIsAnothers) {
  const auto regeneration = begin(Intent::regenerate, 1, "a", "one");
  commit(regeneration, {{"REQ#a", request("STARTED", "o", "h1")}});
  pass(101);
  commit(begin(Intent::claim, 2, "a", "two"), {{"REQ#a", request("STARTED", "p", "h2")}});
  end(regeneration, {.kind = Kind::mismatch});
  expect_clean();
}

TEST_F(CheckerTest, AcceptsAMismatchOnceTheRecordWasSweptAndIsAnothers) {
  const auto regeneration = begin(Intent::regenerate, 1, "a", "one");
  commit(regeneration, {{"REQ#a", request("STARTED", "o", "h1")}});
  pass(101);
  commit(begin(Intent::sweep, 2), {{"REQ#a", {}}});
  commit(begin(Intent::claim, 2, "a", "two"), {{"REQ#a", request("STARTED", "p", "h2")}});
  end(regeneration, {.kind = Kind::mismatch});
  expect_clean();
}

TEST_F(CheckerTest, SeesRowsSweptBeforeTheirTime) {
  acquire("t");
  commit(begin(Intent::sweep), {{"LOCK", {}}});
  expect("swept while its lease was held");
}

TEST_F(CheckerTest, SeesMetaSweptWithoutTtl) {
  page();
  commit(begin(Intent::sweep), {{"META", {}}});
  expect("swept before its ttl");
}

TEST_F(CheckerTest, SeesReportsThatAreNotTrue) {
  const std::vector<std::pair<Intent, Report>> lies = {
      {Intent::publish, {.kind = Kind::published, .s3_key = "body-1"}},
      {Intent::acquire, {.kind = Kind::acquired, .token = "t"}},
      {Intent::claim, {.kind = Kind::claimed, .token = "t"}},
      {Intent::regenerate, {.kind = Kind::replayed, .s3_key = "body-1"}},
      {Intent::read, {.kind = Kind::broken}},
  };
  for (const auto& [intent, report] : lies) {
    Checker checker;
    const auto operation = checker.begin({.intent = intent, .pk = kPk}, millis());
    checker.end(operation, report, millis());
    EXPECT_TRUE(checker.violation()) << name(intent) << ": " << name(report.kind);
  }
}

TEST_F(CheckerTest, SeesAPublishThatIsDenied) {
  acquire("t");
  const auto publishing = begin(Intent::publish);
  commit(publishing, {{"LOCK", {}}, {"META", meta("body-1", now())}});
  end(publishing, {.kind = Kind::lost});
  expect("though the page was published");
}

TEST_F(CheckerTest, AcceptsAPublishThatIsDeniedWhenItsAnswerWasLost) {
  acquire("t");
  const auto publishing = begin(Intent::publish);
  checker_.answer_lost(publishing);
  commit(publishing, {{"LOCK", {}}, {"META", meta("body-1", now())}});
  end(publishing, {.kind = Kind::lost});
  expect_clean();
}

TEST_F(CheckerTest, SeesAnErrorThatSaysNothingHappened) {
  const auto acquiring = begin(Intent::acquire);
  end(acquiring, {.kind = Kind::unavailable});
  commit(acquiring, {{"LOCK", lock("t", now() + 10)}});
  expect("told that nothing happened");
}

TEST_F(CheckerTest, SeesAWrongVerdict) {
  page();
  end(begin(Intent::read), {.kind = Kind::fresh});
  expect_clean();
  end(begin(Intent::read), {.kind = Kind::stale});
  expect("was judged \"stale\", and is \"fresh\"");
}

TEST_F(CheckerTest, SeesAPageThatIsGoneInTheEnd) {
  checker_.check_healthy(kPk, millis());
  expect("has no page in the end");
}

TEST_F(CheckerTest, SeesALeaseThatIsHeldInTheEnd) {
  page();
  checker_.check_healthy(kPk, millis());
  expect_clean();
  acquire("t");
  checker_.check_healthy(kPk, millis());
  expect("is held in the end");
}

TEST_F(CheckerTest, SeesAnOrphanInTheEnd) {
  page("body-1");
  checker_.check_no_orphans();
  expect("the body body-2 was never swept");
}

TEST_F(CheckerTest, SeesARequestThatIsOpenInTheEnd) {
  commit(begin(Intent::claim), {{"REQ#a", request("STARTED", "o")}});
  checker_.check_completed(kPk, "REQ#a");
  expect("could not be completed");
}

// --- what is withdrawn

TEST_F(CheckerTest, FindsNothingWhereAPrivateRenderWithdrawsThePage) {
  page();
  acquire("second");
  checker_.render_is_private("second");
  const auto operation = begin(Intent::regenerate);
  commit(operation, {{"LOCK", {}}, {"META", {}}});
  end(operation, {.kind = Kind::not_stored});
  expect_clean();
}

TEST_F(CheckerTest, SeesAPageWithdrawnThoughItsRenderWasToBeStored) {
  page();
  acquire("second");
  commit(begin(Intent::regenerate), {{"LOCK", {}}, {"META", {}}});
  expect("was to be stored");
}

TEST_F(CheckerTest, SeesAPageWithdrawnUnderAnExpiredLease) {
  page();
  acquire("second");
  checker_.render_is_private("second");
  pass(10);
  commit(begin(Intent::regenerate), {{"LOCK", {}}, {"META", {}}});
  expect("under a lease that was over");
}

TEST_F(CheckerTest, SeesAPageWithdrawnUnderSomebodyElsesLease) {
  page();
  acquire("second", 2);
  checker_.render_is_private("second");
  commit(begin(Intent::regenerate), {{"LOCK", {}}, {"META", {}}});
  expect("never had its lease");
}

TEST_F(CheckerTest, SeesAPageWithdrawnAndItsLockLeft) {
  page();
  acquire("second");
  checker_.render_is_private("second");
  commit(begin(Intent::regenerate), {{"META", {}}});
  expect("was deleted by regenerate");
}

TEST_F(CheckerTest, SeesAPrivateRenderPublished) {
  acquire("first");
  checker_.render_is_private("first");
  publish("body-1");
  expect("was not to be stored");
}

TEST_F(CheckerTest, SeesThePageLeftByARenderThatIsNotStored) {
  page();
  const auto operation = begin(Intent::regenerate);
  end(operation, {.kind = Kind::not_stored});
  expect("leaves the page that stood there");
}

// --- what is evicted

TEST_F(CheckerTest, FindsNothingWhereAPageIsEvictedWithItsVersionsAndTheLeaseThatIsOver) {
  acquire("first");
  commit(begin(Intent::publish), {{"LOCK", {}},
                                  {"META", with(meta("body-1", now()), "version", 7)},
                                  {"VER#1", with(meta("body-1", now()), "version", 7)}});
  acquire("second");
  pass(10);
  const auto operation = begin(Intent::evict, 2);
  commit(operation, {{"META", {}}, {"LOCK", {}}, {"VER#1", {}}});
  end(operation, {.kind = Kind::done});
  acquire("third");
  commit(begin(Intent::publish), {{"LOCK", {}}, {"META", with(meta("body-1", now()), "version", 1)}});
  acquire("fourth");
  commit(begin(Intent::publish), {{"LOCK", {}},
                                  {"META", with(meta("body-2", now()), "version", 2)},
                                  {"VER#2", with(meta("body-2", now()), "version", 2)}});
  expect_clean();
}

TEST_F(CheckerTest, SeesAPageEvictedWhileItsLeaseIsHeld) {
  page();
  acquire("second");
  commit(begin(Intent::evict, 2), {{"META", {}}, {"LOCK", {}}});
  expect("evicted while its lease was held");
}

TEST_F(CheckerTest, SeesAPageEvictedAndItsLockLeft) {
  page();
  acquire("second");
  pass(10);
  commit(begin(Intent::evict, 2), {{"META", {}}});
  expect("evicted and its LOCK left");
}

TEST_F(CheckerTest, SeesAPinnedPageEvicted) {
  page();
  commit(begin(Intent::pin), {{"META", with(meta("body-1", now() - 1), "pinned", true)}});
  commit(begin(Intent::evict, 2), {{"META", {}}});
  expect("evicted although it was pinned");
}

TEST_F(CheckerTest, SeesVersionsOfAnEvictedPageLeft) {
  acquire("first");
  commit(begin(Intent::publish), {{"LOCK", {}},
                                  {"META", with(meta("body-1", now()), "version", 1)},
                                  {"VER#1", with(meta("body-1", now()), "version", 1)}});
  commit(begin(Intent::evict, 2), {{"META", {}}});
  expect("versions of it left");
}

// --- births

TEST_F(CheckerTest, SeesARenderThatDidNotLookAtTheMarkOfATagThatThePageHad) {
  commit(begin(Intent::mark), {{"META", Attributes{{"invalidated_at", now()}, {"invalidations", 1}}}}, 0,
         kTagPk);
  pass(5);
  const auto tagged = [&](const std::string& s3_key) {
    return with(meta(s3_key, now()), "tags", StringSet{"red"});
  };
  acquire("first");
  commit(begin(Intent::regenerate), {{"LOCK", {}}, {"META", tagged("body-1")}});
  expect_clean();
  acquire("second");
  commit(begin(Intent::regenerate), {{"LOCK", {}}, {"META", tagged("body-2")}});
  expect("does not tell what its render saw of TAG#red");
}

TEST_F(CheckerTest, SeesABackoffThatLooksLikeALease) {
  acquire("first");
  commit(begin(Intent::back_off),
         {{"LOCK", with(with(lock("nobody's", now() + 3), "failures", 1), "backoff_token", "another")}});
  expect("does not tell a backoff from a lease");
}

}  // namespace
}  // namespace facetheory::simulation
