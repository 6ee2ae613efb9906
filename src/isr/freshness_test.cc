#include "facetheory/isr/freshness.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

MetaRow page(std::int64_t generated_at, std::int64_t revalidate) {
  MetaRow meta;
  meta.s3_key = "a/b.html";
  meta.generated_at = generated_at;
  meta.revalidate_seconds = revalidate;
  return meta;
}

PageState state(const MetaRow& meta, std::int64_t now) {
  return judge(meta, now).state;
}

TEST(Freshness, EndsExactlyWithTheWindow) {
  EXPECT_EQ(state(page(1000, 60), 1000), PageState::fresh);
  EXPECT_EQ(state(page(1000, 60), 1059), PageState::fresh);
  EXPECT_EQ(state(page(1000, 60), 1060), PageState::stale);
}

TEST(Freshness, IsNotDecidedByTtl) {
  MetaRow meta = page(1000, 60);
  meta.ttl = 1;
  EXPECT_EQ(state(meta, 1059), PageState::fresh);
  meta.ttl = 1'000'000;
  EXPECT_EQ(state(meta, 1060), PageState::stale);
}

TEST(Freshness, OfAPageWithoutMetaIsMissing) {
  EXPECT_EQ(judge(std::nullopt, 1000).state, PageState::missing);
}

TEST(Freshness, OfAnInvalidatedPageIsStaleAndSaysSo) {
  MetaRow meta = page(0, 0);
  meta.last_generated_at = 1000;
  EXPECT_EQ(state(meta, 1000), PageState::stale);
  EXPECT_THAT(judge(meta, 1000).reason, testing::HasSubstr("invalidated"));
}

TEST(Freshness, SaysHowLongAndSinceWhen) {
  EXPECT_THAT(judge(page(1000, 60), 1018).reason, testing::HasSubstr("42 s"));
  EXPECT_THAT(judge(page(1000, 60), 1063).reason, testing::HasSubstr("3 s ago"));
}

TEST(Freshness, SurvivesNumbersThatOverflow) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(state(page(kMax, kMax), 1000), PageState::fresh);
  EXPECT_EQ(state(page(kMin, kMin), 1000), PageState::stale);
  EXPECT_EQ(state(page(kMin, kMax), 1000), PageState::stale);
}

TEST(Freshness, OfARenderThatBeganAtOrBeforeTheMarkIsStale) {
  const std::vector<Mark> marks{{"news", {.invalidated_at = 1000}}};
  EXPECT_EQ(judge(page(999, 60), marks, 1001).state, PageState::stale);
  EXPECT_EQ(judge(page(1000, 60), marks, 1001).state, PageState::stale);
  EXPECT_EQ(judge(page(1001, 60), marks, 1001).state, PageState::fresh);
  EXPECT_THAT(judge(page(999, 60), marks, 1001).reason, testing::HasSubstr("news"));
}

TEST(Freshness, FollowsWhatTheRenderSawOfAMarkWhateverTheClocksShow) {
  MetaRow meta = page(1000, 60);
  meta.seen_marks = {{"news", {.invalidated_at = 5000, .invalidations = 2}}};
  const auto state = [&](TagRow row) { return judge(meta, {{"news", row}}, 1001).state; };
  EXPECT_EQ(state({.invalidated_at = 5000, .invalidations = 2}), PageState::fresh);
  EXPECT_EQ(state({.invalidated_at = 5000, .invalidations = 3}),
            PageState::stale);  // By a clock that is behind.
  EXPECT_EQ(state({.invalidated_at = 5001, .invalidations = 2}),
            PageState::stale);  // By somebody who does not count.
  EXPECT_EQ(state({.invalidated_at = 5001, .invalidations = 1}),
            PageState::stale);  // The row was deleted meanwhile.
  EXPECT_EQ(state({.invalidated_at = 4000, .invalidations = 1}), PageState::fresh);  // An eventual read.
  EXPECT_EQ(state({.invalidated_at = 5000, .purged_at = 1, .invalidations = 2, .purges = 1}),
            PageState::missing);
  EXPECT_EQ(state({.invalidated_at = 5000, .invalidations = 2, .purges = 1}), PageState::missing);
}

TEST(Freshness, OfATagThatTheRenderDidNotLookAtFollowsTheTime) {
  MetaRow meta = page(1000, 60);
  meta.seen_marks = {{"", {}}, {"news", {}}};
  EXPECT_EQ(judge(meta, {{"home", {.invalidated_at = 1000, .invalidations = 1}}}, 1001).state,
            PageState::stale);
  EXPECT_EQ(judge(meta, {{"home", {.invalidated_at = 999, .invalidations = 1}}}, 1001).state,
            PageState::fresh);
  EXPECT_EQ(judge(meta, {{"", {.invalidated_at = 900, .invalidations = 1}}}, 1001).state, PageState::stale);
}

TEST(Freshness, TellsWhatWasInvalidatedFromWhatHasOnlyExpired) {
  const std::vector<Mark> marks{{"news", {.invalidated_at = 1000}}};
  EXPECT_TRUE(judge(page(999, 60), marks, 1001).invalidated);
  EXPECT_TRUE(judge(page(999, 60), marks, 2000).invalidated);
  EXPECT_TRUE(judge(page(0, 0), 1001).invalidated);
  EXPECT_FALSE(judge(page(999, 60), 2000).invalidated);
  EXPECT_FALSE(judge(page(1001, 60), marks, 2000).invalidated);
}

TEST(Freshness, OfARenderThatBeganAtOrBeforeAPurgeIsMissing) {
  const std::vector<Mark> marks{{"", {.purged_at = 1000}}};
  EXPECT_EQ(judge(page(1000, 60), marks, 1001).state, PageState::missing);
  EXPECT_EQ(judge(page(1001, 60), marks, 1001).state, PageState::fresh);
}

TEST(Freshness, OfATimeThatHasNotComeByAnyClockEveryMarkCounts) {
  const std::vector<Mark> purged{{"", {.purged_at = 900}}};
  const std::vector<Mark> invalidated{{"", {.invalidated_at = 900}}};
  const std::chrono::seconds skew(2);
  EXPECT_EQ(judge(page(1002, 60), purged, 1000, skew).state, PageState::fresh);  // By a clock that is ahead.
  EXPECT_EQ(judge(page(1003, 60), purged, 1000, skew).state, PageState::missing);
  EXPECT_EQ(judge(page(1002, 60), invalidated, 1000, skew).state, PageState::fresh);
  EXPECT_EQ(judge(page(1003, 60), invalidated, 1000, skew).state, PageState::stale);
  // What was seen needs no time.
  MetaRow seen = page(1003, 60);
  seen.seen_marks = {{"", {.purged_at = 900}}};
  EXPECT_EQ(judge(seen, purged, 1000, skew).state, PageState::fresh);
}

TEST(Freshness, TellsWhetherAMarkWillStillCountWhenAClaimedTimeHasCome) {
  MetaRow meta = page(5000, 3600);
  meta.tags = {"news"};
  const auto told = [&](const TagRow& row) {
    const Freshness freshness = judge(meta, {{"news", row}}, 1000);
    EXPECT_NE(freshness.state, PageState::fresh);
    return freshness.while_ahead;
  };
  TagRow purged;
  purged.purges = 1;
  purged.purged_at = 1002;
  TagRow invalidated;
  invalidated.invalidations = 1;
  invalidated.invalidated_at = 1002;
  EXPECT_TRUE(told(purged));
  EXPECT_TRUE(told(invalidated));
  // Of a clock that is ahead as well.
  purged.purged_at = invalidated.invalidated_at = 5002;
  EXPECT_FALSE(told(purged));
  EXPECT_FALSE(told(invalidated));
  purged.purged_at = invalidated.invalidated_at = 1002;
  meta.seen_marks = {{"news", {}}};
  EXPECT_FALSE(told(purged));
  EXPECT_FALSE(told(invalidated));
  // One that will count is enough, whichever is named.
  meta.tags.emplace_back("sport");
  const Freshness both = judge(meta, {{"sport", purged}, {"news", purged}}, 1000);
  EXPECT_EQ(both.state, PageState::missing);
  EXPECT_FALSE(both.while_ahead);
}

TEST(Freshness, OfAnInvalidatedPageFollowsAPurgeByWhenItsRenderReallyBegan) {
  MetaRow meta = page(0, 0);
  meta.last_generated_at = 1005;
  EXPECT_EQ(judge(meta, {{"t", {.purged_at = 1000}}}, 1010).state, PageState::stale);
  EXPECT_EQ(judge(meta, {{"t", {.purged_at = 1005}}}, 1010).state, PageState::missing);
}

TEST(Freshness, OfAPinnedPageIgnoresTagsButNotAPurge) {
  MetaRow meta = page(1000, 60);
  meta.pinned = true;
  EXPECT_EQ(judge(meta, {{"t", {.invalidated_at = 2000}}}, 5000).state, PageState::fresh);
  EXPECT_EQ(judge(meta, {{"t", {.purged_at = 2000}}}, 5000).state, PageState::missing);
}

}  // namespace
}  // namespace facetheory
