#include "facetheory/rules/request_rules.h"

#include <gtest/gtest.h>

#include "facetheory/rules/cache_control.h"

namespace facetheory {
namespace {

TEST(RequestKind, DependsOnTheMethodLetterByLetter) {
  EXPECT_EQ(kind_of("GET"), RequestKind::lookup);
  EXPECT_EQ(kind_of("HEAD"), RequestKind::lookup);
  EXPECT_EQ(kind_of("OPTIONS"), RequestKind::pass);
  EXPECT_EQ(kind_of("TRACE"), RequestKind::pass);
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "get", "FOO", ""})
    EXPECT_EQ(kind_of(method), RequestKind::invalidate) << method;
}

TEST(RequestRules, AreEmptyForAPlainRequest) {
  const RequestRules rules = read_rules("GET", {});
  EXPECT_EQ(rules.kind, RequestKind::lookup);
  EXPECT_FALSE(rules.head || rules.only_if_cached || rules.no_store || rules.no_cache || rules.for_origin ||
               rules.range || rules.authorization);
  EXPECT_EQ(rules.max_age, std::nullopt);
}

TEST(RequestRules, ReadTheDirectivesOfTheClient) {
  const RequestRules rules =
      read_rules("HEAD", {{"Cache-Control", "only-if-cached, no-store, max-age=5, min-fresh=6, max-stale"}});
  EXPECT_TRUE(rules.head);
  EXPECT_TRUE(rules.only_if_cached);
  EXPECT_TRUE(rules.no_store);
  EXPECT_EQ(rules.max_age, 5);
  EXPECT_EQ(rules.min_fresh, 6);
  EXPECT_EQ(rules.max_stale, kMaxDeltaSeconds);
}

TEST(RequestRules, ClientsDecideNothingAboutFreshnessWhereTheyAreNotAskedTo) {
  const RequestRules rules =
      read_rules("GET",
                 {{"Cache-Control", "no-cache, max-age=0, min-fresh=6, max-stale, only-if-cached, no-store"},
                  {"Pragma", "no-cache"}},
                 {.honour_client_freshness = false});
  EXPECT_FALSE(rules.no_cache);
  EXPECT_EQ(rules.max_age, std::nullopt);
  EXPECT_EQ(rules.min_fresh, std::nullopt);
  EXPECT_EQ(rules.max_stale, std::nullopt);
  EXPECT_TRUE(rules.only_if_cached);
  EXPECT_TRUE(rules.no_store);
}

TEST(RequestRules, PragmaCountsOnlyWithoutCacheControl) {
  EXPECT_TRUE(read_rules("GET", {{"Pragma", "foo, No-Cache"}}).no_cache);
  EXPECT_FALSE(read_rules("GET", {{"Pragma", "no-cache"}, {"Cache-Control", "max-age=60"}}).no_cache);
  EXPECT_FALSE(read_rules("GET", {{"Pragma", "foo"}}).no_cache);
}

TEST(RequestRules, NoCacheHoldsWithAnArgument) {
  EXPECT_TRUE(read_rules("GET", {{"Cache-Control", "no-cache=\"x\""}}).no_cache);
}

TEST(RequestRules, LeaveIfMatchAndIfUnmodifiedSinceToTheOrigin) {
  EXPECT_TRUE(read_rules("GET", {{"If-Match", "\"a\""}}).for_origin);
  EXPECT_TRUE(read_rules("GET", {{"If-Unmodified-Since", "x"}}).for_origin);
  EXPECT_FALSE(read_rules("GET", {{"If-None-Match", "\"a\""}}).for_origin);
}

TEST(RequestRules, SeeRangesOfGetOnly) {
  EXPECT_TRUE(read_rules("GET", {{"Range", "bytes=0-1"}}).range);
  EXPECT_FALSE(read_rules("HEAD", {{"Range", "bytes=0-1"}}).range);
}

bool accepts_page(const char* control, const PageAge& page) {
  return accepts(read_rules("GET", {{"Cache-Control", control}}), page);
}

constexpr PageAge kFresh{.age = 10, .fresh_for = 50};
constexpr PageAge kStale{.age = 70, .fresh_for = -10};
constexpr PageAge kStaleAllowed{.age = 70, .fresh_for = -10, .stale_allowed = true};
constexpr PageAge kStaleForbidden{.age = 70, .fresh_for = -10, .stale_forbidden = true};

TEST(Accepts, AFreshPageAndNoStaleOneUnlessAllowed) {
  EXPECT_TRUE(accepts_page("", kFresh));
  EXPECT_FALSE(accepts_page("", kStale));
  EXPECT_TRUE(accepts_page("", kStaleAllowed));
  EXPECT_FALSE(accepts_page("", {.age = 60, .fresh_for = 0}));
}

TEST(Accepts, NothingWithoutValidationAfterNoCache) {
  EXPECT_FALSE(accepts_page("no-cache", kFresh));
  EXPECT_FALSE(accepts_page("no-cache, max-stale", kFresh));
}

TEST(Accepts, NothingOlderThanMaxAge) {
  EXPECT_TRUE(accepts_page("max-age=10", kFresh));
  EXPECT_FALSE(accepts_page("max-age=9", kFresh));
  EXPECT_FALSE(accepts_page("max-age=0", kFresh));
  EXPECT_FALSE(accepts_page("max-age=junk", kFresh));
  EXPECT_FALSE(accepts_page("max-age=100", kStaleAllowed));
  EXPECT_TRUE(accepts_page("max-age=5, max-stale=10", kFresh));
}

TEST(Accepts, NothingThatIsNotFreshForLongEnough) {
  EXPECT_TRUE(accepts_page("min-fresh=50", kFresh));
  EXPECT_FALSE(accepts_page("min-fresh=51", kFresh));
  EXPECT_FALSE(accepts_page("min-fresh=1", kStaleAllowed));
}

TEST(Accepts, WhatIsStaleUpToMaxStale) {
  EXPECT_TRUE(accepts_page("max-stale", kStale));
  EXPECT_TRUE(accepts_page("max-stale=10", kStale));
  EXPECT_FALSE(accepts_page("max-stale=9", kStale));
  EXPECT_FALSE(accepts_page("max-stale=9", kStaleAllowed));
  EXPECT_TRUE(accepts_page("max-age=0, max-stale",
                           {.age = 2 * kMaxDeltaSeconds, .fresh_for = -2 * kMaxDeltaSeconds}));
  EXPECT_FALSE(accepts_page("max-stale", kStaleForbidden));
}

}  // namespace
}  // namespace facetheory
