#include "facetheory/gateway/page_answer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

constexpr std::int64_t kRequested = 1'700'000'000;

StorePolicy with_window(int revalidate) {
  StorePolicy policy;
  policy.revalidate = std::chrono::seconds(revalidate);
  return policy;
}

// A page that the origin answered with so, as it is read from the store again. The route's window is 10 s.
struct Stored {
  explicit Stored(const Headers& response)
      : decision(decide_store("GET", {}, 200, response,
                              {.requested_at = kRequested, .received_at = kRequested}, with_window(10))),
        page(Body{"", stored_metadata(decision, 200, {})}) {
    meta.generated_at = kRequested;
    meta.revalidate_seconds = std::max<std::int64_t>(decision.revalidate, 1);
  }

  Review review_after(std::int64_t seconds, const Headers& request = {}) const {
    const std::int64_t now = kRequested + seconds;
    return review_page(page, meta, judge(meta, now).state, read_rules("GET", request), now);
  }

  // As isr/invalidate.cc does it.
  void invalidate() {
    meta.last_generated_at = meta.generated_at;
    meta.generated_at = meta.revalidate_seconds = 0;
  }

  StoreDecision decision;
  PreparedPage page;
  MetaRow meta;
};

Stored stored_with(const char* control) {
  return Stored(*control != 0 ? Headers{{"Cache-Control", control}} : Headers{});
}

TEST(ReviewPage, AfterALifetimeOfTheOriginsNothingIsServedThatTheOriginDoesNotAllow) {
  for (const char* control : {"max-age=10", "max-age=10, public", "max-age=10, stale-if-error=60",
                              "max-age=0", "max-age=10, stale-while-revalidate=soon"}) {
    const Stored page = stored_with(control);
    EXPECT_FALSE(page.review_after(10).while_stale) << control;
    EXPECT_FALSE(page.review_after(10).in_any_mode) << control;
    EXPECT_TRUE(page.review_after(10).on_failure) << control;
  }
  const Stored expires({{"Expires", "Tue, 14 Nov 2023 22:13:20 GMT"}});
  EXPECT_FALSE(expires.review_after(0).fresh);
  EXPECT_FALSE(expires.review_after(0).while_stale);
  const Stored targeted(
      {{"CDN-Cache-Control", "max-age=10"}, {"Cache-Control", "stale-while-revalidate=60"}});
  EXPECT_FALSE(targeted.review_after(10).while_stale);
}

TEST(ReviewPage, AfterTheRoutesWindowTheRouteDecides) {
  for (const char* control : {"", "public", "stale-if-error=5"}) {
    const Stored page = stored_with(control);
    EXPECT_TRUE(page.review_after(1000).while_stale) << control;
    EXPECT_FALSE(page.review_after(1000).in_any_mode) << control;
  }
  EXPECT_FALSE(stored_with("must-revalidate").review_after(10).while_stale);
}

TEST(ReviewPage, WhatTheOriginAllowsHoldsInAnyMode) {
  for (const char* control : {"max-age=10, stale-while-revalidate=5", "stale-while-revalidate=5",
                              "s-maxage=10, stale-while-revalidate=5"}) {
    const Stored page = stored_with(control);
    EXPECT_TRUE(page.review_after(15).in_any_mode) << control;
    EXPECT_FALSE(page.review_after(16).in_any_mode) << control;
    EXPECT_FALSE(page.review_after(16).while_stale) << control;
  }
  const Stored page = stored_with("max-age=10, stale-while-revalidate=5");
  EXPECT_FALSE(page.review_after(15, {{"Cache-Control", "no-cache"}}).in_any_mode);
}

// By marks, too, which leave META as it is.
TEST(ReviewPage, OfAPageThatWasInvalidatedTheLifetimeStillEndsWhenTheOriginSaid) {
  for (const bool marked : {false, true}) {
    const auto review = [&](const char* control, std::int64_t after) {
      Stored page = stored_with(control);
      if (!marked) page.invalidate();
      return review_page(page.page, page.meta, PageState::stale, read_rules("GET", {}), kRequested + after);
    };
    EXPECT_FALSE(review("max-age=10", 0).fresh);
    EXPECT_TRUE(review("max-age=10", 9).while_stale);
    EXPECT_FALSE(review("max-age=10", 10).while_stale);
    EXPECT_TRUE(review("max-age=10, stale-while-revalidate=5", 15).while_stale);
    EXPECT_FALSE(review("max-age=10, stale-while-revalidate=5", 16).while_stale);
    EXPECT_FALSE(review("max-age=0", 0).while_stale);
    EXPECT_FALSE(review("s-maxage=10", 0).while_stale);
    EXPECT_FALSE(review("max-age=10, must-revalidate", 0).while_stale);
    EXPECT_FALSE(review("max-age=10, stale-if-error=5", 16).on_failure);
    EXPECT_TRUE(review("", 0).while_stale);
    EXPECT_TRUE(review("", 1000).while_stale);
  }
}

TEST(ReviewPage, OfWhatIsStaleFromTheBeginningSaysThatItIsForOneRequestOnly) {
  for (const char* control : {"no-cache", "max-age=0", "max-age=10, no-cache", "max-age=0, must-revalidate"})
    EXPECT_FALSE(stored_with(control).review_after(0).shared) << control;
  EXPECT_FALSE(Stored({{"Cache-Control", "max-age=10"}, {"Age", "10"}}).review_after(0).shared);
  // A render that takes longer than the lifetime is for all who waited for it.
  for (const char* control : {"", "max-age=10", "max-age=0, stale-while-revalidate=5"})
    EXPECT_TRUE(stored_with(control).review_after(1).shared) << control;
  EXPECT_TRUE(stored_with("max-age=10").review_after(60).shared);
}

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
        "max-age=10, proxy-revalidate", "max-age=10, stale-if-error=5", "max-age=10, no-cache", "",
        "stale-while-revalidate=0", "stale-while-revalidate=5", "stale-while-revalidate=30",
        "must-revalidate"}) {
    const Stored stored = stored_with(control);
    for (const std::optional<int> stale_for : {std::optional<int>(), std::optional(0), std::optional(20)}) {
      for (const ServeMode mode : {ServeMode::swr, ServeMode::blocking}) {
        PagePolicy policy;
        policy.mode = mode;
        if (stale_for) policy.stale_for = std::chrono::seconds(*stale_for);
        const std::int64_t until = served_stale_until(stored.page, stored.meta, policy);
        for (std::int64_t after = 10; after < 60; ++after) {
          const bool too_old = stale_for && after >= 10 + *stale_for;
          const Review review = stored.review_after(after);
          const bool served =
              !too_old && review.while_stale && (mode == ServeMode::swr || review.in_any_mode);
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
