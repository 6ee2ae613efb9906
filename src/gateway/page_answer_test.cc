#include "facetheory/gateway/page_answer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

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

// What is foretold of a page while it is fresh must be what is said of it when the time has come.
TEST(ServedStaleUntil, IsWhatTheReviewAndTheRouteWillSay) {
  for (const char* control :
       {"max-age=10", "max-age=10, stale-while-revalidate=0", "max-age=10, stale-while-revalidate=5",
        "max-age=10, stale-while-revalidate=30", "max-age=10, must-revalidate", "s-maxage=10",
        "max-age=10, proxy-revalidate", "max-age=10, stale-if-error=5", "max-age=10, no-cache"}) {
    const Stored stored({{"Cache-Control", control}});
    for (const std::optional<int> stale_for : {std::optional<int>(), std::optional(0), std::optional(20)}) {
      for (const ServeMode mode : {ServeMode::swr, ServeMode::blocking}) {
        PagePolicy policy;
        policy.mode = mode;
        if (stale_for) policy.stale_for = std::chrono::seconds(*stale_for);
        const std::int64_t until = served_stale_until(stored.page, stored.meta, policy);
        for (std::int64_t after = 10; after < 60; ++after) {
          const bool too_old = stale_for && after >= 10 + *stale_for;
          const bool served = mode == ServeMode::swr && !too_old && stored.review_after(after).while_stale;
          // To say no is always right: the long way decides then.
          if (kRequested + after < until) {
            EXPECT_TRUE(served) << control << " after " << after;
          }
          if (std::string_view(control).find("no-cache") == std::string_view::npos) {
            EXPECT_EQ(kRequested + after < until, served) << control << " after " << after;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace facetheory
