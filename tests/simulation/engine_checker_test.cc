// The checker of engines itself: lives of a page, made by hand, each with one answer or render in it that must not be.
#include "tests/simulation/engine_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory::simulation {
namespace {

// One page with a window of 60 s, one node that reads its pointer on every request, and one whose clock is 2 s ahead
// and that trusts a pointer for 5 s.
class EngineCheckerTest : public testing::Test {
 protected:
  using Kind = Answer::Kind;
  static constexpr std::int64_t kStart = 1'700'000'000;
  static constexpr PartyId kNode = 1;
  inline static const std::string kPk = "CACHE#abc";

  EngineCheckerTest() {
    engines_.node_began(kNode, {}, 0, now_);
    engines_.node_began(2, {.pointer_ttl = 5000}, 2000, now_);
    for (const char* key : {"body-1", "body-2"})
      engines_.body_written(key, std::string("<p>") + key, false);
  }

  std::int64_t seconds() const { return now_ / 1000; }
  void pass(Millis millis) { now_ += millis; }

  void set(const std::string& pk, const std::string& sk, std::optional<Attributes> after) {
    Commit commit;
    commit.changes.push_back(Change{{pk, sk}, rows_[pk + sk], after});
    rows_[pk + sk] = std::move(after);
    engines_.committed(commit, now_);
  }
  void meta(const std::string& s3_key, std::int64_t generated_at, std::int64_t window = 60) {
    set(kPk, "META",
        Attributes{{"s3_key", s3_key},
                   {"generated_at", generated_at},
                   {"revalidate_seconds", window},
                   {"tags", StringSet{"red"}}});
  }
  void lease(const std::string& token) { set(kPk, "LOCK", Attributes{{"lease_token", token}}); }
  void publish(const std::string& token, const std::string& s3_key) {
    Commit commit;
    commit.changes.push_back(Change{{kPk, "LOCK"}, Attributes{{"lease_token", token}}, {}});
    rows_[kPk + "META"] = Attributes{{"s3_key", s3_key},
                                     {"generated_at", seconds()},
                                     {"revalidate_seconds", 60},
                                     {"tags", StringSet{"red"}}};
    commit.changes.push_back(Change{{kPk, "META"}, {}, rows_[kPk + "META"]});
    engines_.committed(commit, now_);
  }
  // The page, and a while later.
  void page() {
    meta("body-1", seconds());
    pass(10'000);
  }
  void invalidate() {
    set(kPk, "META",
        Attributes{{"s3_key", "body-1"},
                   {"generated_at", 0},
                   {"revalidate_seconds", 0},
                   {"last_generated_at", kStart}});
  }

  std::uint64_t ask(PartyId node = kNode, std::optional<std::int64_t> stale_for = {}) {
    return engines_.asked(
        {.node = node, .pk = kPk, .wait_limit = 10'000, .stale_for = stale_for, .request_id = {}}, moment());
  }
  void answer(std::uint64_t request, Kind kind, const std::string& s3_key = "body-1", std::string bytes = "?",
              bool troubled = true) {
    if (bytes == "?") bytes = "<p>" + s3_key;
    engines_.answered(
        request,
        {.kind = kind, .s3_key = s3_key, .bytes = std::move(bytes), .troubled = troubled, .detail = {}},
        moment());
  }
  Moment moment() const { return {now_, stood_still_}; }

  std::uint64_t render(const std::string& token, PartyId node = kNode) {
    return engines_.render_began({.node = node, .pk = kPk, .request_id = {}, .token = token}, now_);
  }

  void expect_clean() const { EXPECT_EQ(checker_.violation(), std::nullopt); }
  void expect(const std::string& violation) const {
    ASSERT_TRUE(checker_.violation()) << "nothing was found";
    EXPECT_THAT(*checker_.violation(), testing::HasSubstr(violation));
  }

  Millis now_ = kStart * 1000;
  Millis stood_still_ = 0;
  std::map<std::string, std::optional<Attributes>> rows_;
  Checker checker_;
  EngineChecker engines_{checker_};
};

TEST_F(EngineCheckerTest, FindsNothingInAnOrderlyLife) {
  const auto first = ask();
  lease("t1");
  const auto rendering = render("t1");
  pass(500);
  engines_.render_ended(rendering, "<p>body-1", RenderEnd::succeeded, now_);
  meta("body-1", seconds());
  answer(first, Kind::miss);
  answer(ask(), Kind::hit);
  answer(ask(2), Kind::hit);
  pass(60'000);
  answer(ask(kNode, 5), Kind::stale);
  answer(ask(), Kind::stale_metadata_error);
  answer(ask(), Kind::failed);
  const auto uncached = ask();
  const auto without_lease = render("");
  engines_.render_ended(without_lease, "<p>x", RenderEnd::succeeded, now_);
  answer(uncached, Kind::uncached, "", "<p>x");
  engines_.check_waiting(moment());
  expect_clean();
}

TEST_F(EngineCheckerTest, JudgesAPageOfAForeignWriterByTheTagsOfItsRoute) {
  engines_.route_gives(kPk, {"red"});
  set(kPk, "META", Attributes{{"s3_key", "body-1"}, {"generated_at", seconds()}, {"revalidate_seconds", 60}});
  pass(10'000);
  answer(ask(), Kind::hit);
  expect_clean();
  set("TAG#red", "META", Attributes{{"invalidated_at", seconds()}, {"invalidations", 1}});
  pass(10'000);
  answer(ask(), Kind::hit);
  expect("and was not fresh");
}

// --- answered

TEST_F(EngineCheckerTest, SeesARequestThatIsNeverAnswered) {
  ask();
  pass(10'000 + kAllowance);
  engines_.check_waiting(moment());
  expect_clean();
  pass(1);
  engines_.check_waiting(moment());
  expect("answered: ");
}

TEST_F(EngineCheckerTest, SeesAnAnswerThatComesTooLate) {
  const auto request = ask();
  pass(10'000 + kAllowance + 1);
  answer(request, Kind::failed);
  expect("answered: ");
}

TEST_F(EngineCheckerTest, AllowsForTheTimeInWhichANodeCouldNotRun) {
  ask();
  pass(10'000 + kAllowance + 5000);
  stood_still_ += 2000;
  engines_.node_paused(kNode, 3000);
  engines_.check_waiting(moment());
  expect_clean();
}

TEST_F(EngineCheckerTest, ExpectsNoAnswersForThoseWhoAreGone) {
  const auto left = ask();
  ask(2);
  engines_.client_left(left);
  engines_.node_crashed(2);
  pass(1'000'000);
  engines_.check_waiting(moment());
  expect_clean();
}

// --- hit

TEST_F(EngineCheckerTest, SeesAHitAfterItsWindow) {
  page();
  pass(50'000);
  answer(ask(), Kind::hit);
  expect("hit: ");
}

TEST_F(EngineCheckerTest, JudgesAHitByTheClockOfItsNode) {
  page();
  pass(48'500);
  answer(ask(), Kind::hit);
  expect_clean();
  answer(ask(2), Kind::hit);
  expect("hit: ");
}

TEST_F(EngineCheckerTest, AllowsAHitWhoseWindowEndedDuringTheRequest) {
  page();
  pass(49'900);
  const auto request = ask();
  pass(200);
  answer(request, Kind::hit);
  expect_clean();
}

TEST_F(EngineCheckerTest, SeesAHitAfterAnInvalidation) {
  page();
  invalidate();
  pass(1);
  answer(ask(), Kind::hit);
  expect("hit: ");
}

TEST_F(EngineCheckerTest, AllowsAHitOfAnInvalidationThatCameDuringTheRequest) {
  page();
  const auto request = ask();
  pass(1);
  invalidate();
  pass(1);
  answer(request, Kind::hit);
  expect_clean();
}

TEST_F(EngineCheckerTest, SeesAHitOfAPageThatWasReplaced) {
  page();
  meta("body-2", seconds());
  pass(1);
  answer(ask(), Kind::hit);
  expect("did not name any more");
}

TEST_F(EngineCheckerTest, AllowsAPointerToBeTrustedForItsTimeAndNoLonger) {
  page();
  set(kPk, "META", std::nullopt);
  pass(5000);
  answer(ask(2), Kind::hit);
  expect_clean();
  pass(1);
  answer(ask(2), Kind::hit);
  expect("hit: ");
}

TEST_F(EngineCheckerTest, SeesAHitAfterItsTagWasMarked) {
  page();
  set("TAG#red", "META", Attributes{{"invalidated_at", seconds()}});
  pass(1);
  answer(ask(), Kind::hit);
  expect("hit: ");
}

TEST_F(EngineCheckerTest, SeesAHitAfterItsTenantWasPurged) {
  page();
  set("TAG#", "META", Attributes{{"purged_at", seconds()}});
  pass(1);
  answer(ask(), Kind::hit);
  expect("hit: ");
}

// --- waited

TEST_F(EngineCheckerTest, SeesARequestThatGetsWhatWasInvalidatedBeforeIt) {
  page();
  invalidate();
  pass(1);
  answer(ask(), Kind::miss);
  expect("waited: ");
}

TEST_F(EngineCheckerTest, SeesARequestThatGetsWhatWasPurgedBeforeIt) {
  page();
  set(kPk, "META", std::nullopt);
  pass(1);
  answer(ask(2), Kind::wait_hit);  // Whoever waits is not told what a pointer in memory says.
  expect("waited: ");
}

TEST_F(EngineCheckerTest, AllowsARenderThatBeganAfterAMarkThatReachesIntoTheFuture) {
  set("TAG#red", "META", Attributes{{"invalidated_at", seconds() + 2}});
  pass(1);
  const auto request = ask();
  lease("t1");
  publish("t1", "body-1");
  answer(request, Kind::miss);
  expect_clean();
}

TEST_F(EngineCheckerTest, SeesARequestThatGetsARenderOlderThanAMarkBeforeIt) {
  lease("t1");
  pass(1);
  set("TAG#red", "META", Attributes{{"invalidated_at", seconds() + 2}});
  pass(1);
  const auto request = ask();
  publish("t1", "body-1");
  answer(request, Kind::miss);
  expect("waited: ");
}

// --- stale

TEST_F(EngineCheckerTest, SeesAStalePageBeyondWhatIsAllowed) {
  page();
  pass(55'000);
  answer(ask(kNode, 5), Kind::stale);
  expect_clean();
  pass(5000);
  answer(ask(kNode, 5), Kind::stale);
  expect("stale: ");
}

TEST_F(EngineCheckerTest, SeesAStalePageThatBecameTooOldWhileTheRequestWaited) {
  page();
  pass(52'000);
  const auto request = ask(kNode, 5);
  pass(9000);
  answer(request, Kind::stale);
  expect("stale: ");
}

TEST_F(EngineCheckerTest, SeesAStalePageAfterAPurge) {
  page();
  set(kPk, "META", std::nullopt);
  pass(1);
  answer(ask(), Kind::stale_metadata_error);
  expect_clean();
  answer(ask(), Kind::stale);
  expect("stale: ");
}

TEST_F(EngineCheckerTest, SeesAStalePageAfterItsTagWasPurged) {
  page();
  set("TAG#red", "META", Attributes{{"purged_at", seconds()}});
  pass(1);
  answer(ask(), Kind::stale);
  expect("stale: ");
}

// --- fresh

TEST_F(EngineCheckerTest, SeesAFreshPageThatIsNotAHit) {
  page();
  answer(ask(), Kind::failed, "", "", true);
  expect_clean();
  answer(ask(), Kind::failed, "", "", false);
  expect("fresh: ");
}

// --- flight

TEST_F(EngineCheckerTest, SeesTwoRendersAtOnceInOneNode) {
  lease("t1");
  render("t1");
  lease("t2");
  render("t2", 2);
  expect_clean();
  lease("t3");
  render("t3");
  expect("twice at once");
}

TEST_F(EngineCheckerTest, SeesTwoRendersUnderOneLease) {
  lease("t1");
  engines_.render_ended(render("t1"), "<p>1", RenderEnd::succeeded, now_);
  render("t1", 2);
  expect("twice under one lease");
}

TEST_F(EngineCheckerTest, SeesARenderWithoutALease) {
  render("t1");
  expect("that nobody acquired");
}

TEST_F(EngineCheckerTest, SeesARenderOfAPageThatStaysFresh) {
  page();
  lease("t1");
  pass(100);
  render("t1");
  expect("although it was fresh");
}

TEST_F(EngineCheckerTest, SeesARenderOfAPageThatIsAsFarAheadAsClocksMayBe) {
  set("TAG#red", "META", Attributes{{"invalidated_at", seconds() - 100}, {"invalidations", 1}});
  meta("body-1", seconds() + kAllowedSkew);
  pass(1);
  lease("t1");
  render("t1", 2);
  expect("although it was fresh");
}

TEST_F(EngineCheckerTest, AllowsARenderOfAPageFromTheFutureOnlyWhereTimesDecide) {
  set("TAG#red", "META", Attributes{{"invalidated_at", seconds() - 100}, {"invalidations", 1}});
  meta("body-1", seconds() + kAllowedSkew + 1);
  pass(1);
  lease("t1");
  render("t1");
  expect_clean();  // Nobody can tell, by times.
  Attributes row = *rows_[kPk + "META"];
  row.set("seen_marks", StringSet{"1 " + std::to_string(seconds() - 100) + " 0 0 red"});
  set(kPk, "META", row);
  pass(1);
  lease("t2");
  render("t2", 2);
  expect("although it was fresh");
}

TEST_F(EngineCheckerTest, AllowsARenderOfAPageWhoseWindowHasEndedOrWhoseBodyIsGone) {
  page();
  lease("t1");
  pass(50'000);
  engines_.render_ended(render("t1"), "<p>1", RenderEnd::succeeded, now_);
  meta("body-2", seconds());
  engines_.body_removed("body-2");
  pass(1);
  lease("t2");
  render("t2");
  expect_clean();
}

TEST_F(EngineCheckerTest, SeesMoreRendersWithoutATableThanAllowed) {
  render("");
  expect_clean();
  render("");
  expect("more without a lease than it may");
}

// --- bytes

TEST_F(EngineCheckerTest, SeesOtherBytesThanWereStored) {
  page();
  answer(ask(), Kind::hit, "body-1", "<p>tampered");
  expect("not what was stored");
}

TEST_F(EngineCheckerTest, SeesABodyThatWasNeverStored) {
  meta("body-9", seconds());
  answer(ask(), Kind::hit, "body-9");
  expect("never written");
}

TEST_F(EngineCheckerTest, SeesTheBytesOfARenderThatFailedServed) {
  page();
  lease("t1");
  pass(60'000);
  engines_.render_ended(render("t1"), "<p>body-1", RenderEnd::failed, now_);
  answer(ask(), Kind::stale);
  expect("of a render that failed");
}

TEST_F(EngineCheckerTest, SeesTheBytesOfARenderThatFailedStored) {
  lease("t1");
  engines_.render_ended(render("t1"), "<p>broken", RenderEnd::failed, now_);
  engines_.body_written("body-3", "<p>broken", false);
  expect("was stored");
}

TEST_F(EngineCheckerTest, SeesABodyWrittenTwice) {
  engines_.body_written("body-1", "<p>other", false);
  expect("written twice");
}

TEST_F(EngineCheckerTest, SeesTheBytesOfAnotherPage) {
  page();
  const auto other =
      engines_.render_began({.node = kNode, .pk = "CACHE#other", .request_id = {}, .token = {}}, now_);
  engines_.render_ended(other, "<p>body-1", RenderEnd::succeeded, now_);
  answer(ask(), Kind::hit);
  expect("with the bytes of CACHE#other");
}

TEST_F(EngineCheckerTest, SeesWhatWasNotRenderedForTheRequest) {
  engines_.render_ended(render(""), "<p>x", RenderEnd::succeeded, now_);
  pass(1);
  answer(ask(), Kind::uncached, "", "<p>x");
  expect("was not rendered for it");
}

// --- private

TEST_F(EngineCheckerTest, SeesAPrivatePageServedTwice) {
  const auto first = ask();
  const auto second = ask();
  lease("t1");
  engines_.render_ended(render("t1"), "<p>private", RenderEnd::not_to_be_stored, now_);
  answer(first, Kind::uncached, "", "<p>private");
  answer(second, Kind::pass, "", "");
  expect_clean();
  const auto third = ask();
  answer(third, Kind::uncached, "", "<p>private");
  expect("private: ");
}

TEST_F(EngineCheckerTest, SeesAPrivatePageStored) {
  lease("t1");
  engines_.render_ended(render("t1"), "<p>private", RenderEnd::not_to_be_stored, now_);
  engines_.body_written("body-3", "<p>private", false);
  expect("private: ");
}

TEST_F(EngineCheckerTest, SeesAPassWithoutAPrivatePage) {
  answer(ask(), Kind::pass, "", "");
  expect("private: ");
}

TEST_F(EngineCheckerTest, SeesAnApologyThatIsNone) {
  page();
  pass(60'000);
  lease("t1");
  engines_.render_ended(render("t1"), "<p>sorry", RenderEnd::failed, now_);
  answer(ask(), Kind::apology, "", "<p>sorry");
  expect_clean();
  answer(ask(), Kind::apology);
  expect("did not fail");
}

// --- review

TEST_F(EngineCheckerTest, SeesWhatAReviewRefuses) {
  struct Case {
    Question question;
    Kind kind;
    bool refused;
  };
  const auto reviewed = [](Reviewing review) {
    return Question{.node = kNode, .pk = kPk, .wait_limit = 10'000, .review = review};
  };
  const Question only_if_cached{.node = kNode, .pk = kPk, .wait_limit = 10'000, .only_if_cached = true};
  const Case cases[] = {
      {reviewed({}), Kind::other, true},
      {reviewed({}), Kind::absent, true},
      {reviewed({.suits = false}), Kind::other, false},
      {reviewed({.suits = false}), Kind::hit, true},
      {reviewed({.suits = false}), Kind::stale_metadata_error, true},
      {reviewed({.fresh = false}), Kind::hit, true},
      {reviewed({.while_stale = false, .on_failure = false}), Kind::stale, true},
      {reviewed({.while_stale = false}), Kind::stale, false},
      {reviewed({.even_uncertain = false}), Kind::stale_metadata_error, true},
      {only_if_cached, Kind::hit, false},
      {only_if_cached, Kind::absent, false},
      {only_if_cached, Kind::miss, true},
  };
  for (const Case& each : cases) {
    Checker checker;
    EngineChecker engines(checker);
    engines.node_began(kNode, {}, 0, now_);
    engines.body_written("body-1", "<p>body-1", false);
    Commit commit{
        .changes = {
            {{kPk, "META"},
             {},
             Attributes{{"s3_key", "body-1"}, {"generated_at", seconds()}, {"revalidate_seconds", 60}}}}};
    engines.committed(commit, now_);
    const auto number = engines.asked(each.question, moment());
    engines.answered(number, {.kind = each.kind, .s3_key = "body-1", .bytes = "<p>body-1"}, moment());
    EXPECT_EQ(checker.violation().has_value(), each.refused)
        << name(each.kind) << ": " << checker.violation().value_or("nothing was found");
    if (each.refused && checker.violation()) {
      EXPECT_THAT(*checker.violation(), testing::HasSubstr("review: "));
    }
  }
}

// --- mismatch

TEST_F(EngineCheckerTest, SeesARequestIdRefusedWithoutReason) {
  const Question question{
      .node = kNode, .pk = kPk, .wait_limit = 0, .stale_for = {}, .request_id = "r", .request_hash = "h1"};
  set(kPk, "REQ#r", Attributes{{"request_hash", "h2"}});
  answer(engines_.asked(question, moment()), Kind::refused);
  expect_clean();
  Question another = question;
  another.request_hash = "h2";
  answer(engines_.asked(another, moment()), Kind::refused);
  expect("mismatch: ");
}

}  // namespace
}  // namespace facetheory::simulation
