#include "facetheory/gateway/page_answer.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

constexpr std::int64_t kRequested = 1'700'000'000;

// A page that the origin answered with so, as it is read from the store again.
struct Stored {
  explicit Stored(const Headers& response)
      : decision(decide_store("GET", {}, 200, response,
                              {.requested_at = kRequested, .received_at = kRequested}, {})),
        page(Body{"", stored_metadata(decision, 200, {})}) {
    meta.generated_at = kRequested;
    meta.revalidate_seconds = std::max<std::int64_t>(decision.revalidate, 1);
  }

  Review review_after(std::int64_t seconds, const Headers& request = {}) const {
    const std::int64_t now = kRequested + seconds;
    return review_page(page, meta, judge(meta, now).state, read_rules("GET", request), now);
  }

  StoreDecision decision;
  PreparedPage page;
  MetaRow meta;
};

TEST(ReviewPage, IsStaleForAsLongAsItsAgeSays) {
  const Stored old(
      {{"Cache-Control", "max-age=10, stale-while-revalidate=60, stale-if-error=60"}, {"Age", "60"}});
  EXPECT_FALSE(old.review_after(0).fresh);
  EXPECT_TRUE(old.review_after(10).while_stale);
  EXPECT_FALSE(old.review_after(11).while_stale);
  EXPECT_TRUE(old.review_after(10).on_failure);
  EXPECT_FALSE(old.review_after(11).on_failure);
  EXPECT_EQ(age_of(old.page, old.meta, kRequested + 3).fresh_for, -53);
  EXPECT_TRUE(old.review_after(0, {{"Cache-Control", "max-stale=50"}}).while_stale);
  EXPECT_FALSE(old.review_after(0, {{"Cache-Control", "max-stale=49"}}).while_stale);
}

TEST(ReviewPage, ServesNothingStaleForNoSeconds) {
  const Stored page({{"Cache-Control", "max-age=10, stale-while-revalidate=0, stale-if-error=0"}});
  EXPECT_TRUE(page.review_after(9).fresh);
  EXPECT_TRUE(page.review_after(9).on_failure);
  EXPECT_FALSE(page.review_after(10).while_stale);
  EXPECT_FALSE(page.review_after(10).on_failure);
}

TEST(ReviewPage, ServesWhatIsStaleUpToAndIncludingTheLastSecond) {
  const Stored page({{"Cache-Control", "s-maxage=10, stale-while-revalidate=5"}});
  EXPECT_TRUE(page.review_after(15).while_stale);
  EXPECT_FALSE(page.review_after(16).while_stale);
  EXPECT_FALSE(page.review_after(10).on_failure);
}

}  // namespace
}  // namespace facetheory
