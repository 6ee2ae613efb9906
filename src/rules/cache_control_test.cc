#include "facetheory/rules/cache_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CacheControl read_control(std::string_view value) {
  return parse_cache_control(value);
}

TEST(CacheControl, ReadsNumbersAndFlagsWhateverTheirCase) {
  const CacheControl read =
      read_control("MaX-aGe=60, PUBLIC,s-maxage=10 , must-revalidate,,proxy-revalidate");
  EXPECT_EQ(read.max_age, 60);
  EXPECT_EQ(read.s_maxage, 10);
  EXPECT_TRUE(read.is_public);
  EXPECT_TRUE(read.must_revalidate);
  EXPECT_TRUE(read.proxy_revalidate);
  EXPECT_FALSE(read.no_store);
}

TEST(CacheControl, ReadsAllFieldsOfThatName) {
  const CacheControl read =
      parse_cache_control({{"Cache-Control", "max-age=1"}, {"cache-control", "no-store"}});
  EXPECT_EQ(read.max_age, 1);
  EXPECT_TRUE(read.no_store);
}

TEST(CacheControl, IgnoresWhatItDoesNotKnow) {
  EXPECT_EQ(read_control("foo, bar=1, immutable, x=\"no-store, max-age=9\", max-ages=3"), CacheControl{});
  EXPECT_EQ(read_control("\"no-store\""), CacheControl{});
}

TEST(CacheControl, TakesTheFirstOfSeveralNumbers) {
  EXPECT_EQ(read_control("max-age=10, max-age=20").max_age, 10);
  EXPECT_EQ(read_control("max-age=x, max-age=20").max_age, 0);
  EXPECT_EQ(read_control("stale-while-revalidate=x, stale-while-revalidate=5").stale_while_revalidate,
            std::nullopt);
  EXPECT_EQ(parse_cache_control({{"Cache-Control", "max-age=10"}, {"Cache-Control", "max-age=20"}}).max_age,
            10);
}

TEST(CacheControl, AcceptsAQuotedNumber) {
  EXPECT_EQ(read_control("max-age=\"10\"").max_age, 10);
  EXPECT_EQ(read_control("max-age=\"1\\0\"").max_age, 10);
}

TEST(CacheControl, StopsNumbersAtTwoToThe31) {
  EXPECT_EQ(read_control("max-age=2147483647").max_age, 2'147'483'647);
  EXPECT_EQ(read_control("max-age=2147483648").max_age, kMaxDeltaSeconds);
  EXPECT_EQ(read_control("max-age=99999999999999999999999").max_age, kMaxDeltaSeconds);
}

TEST(CacheControl, AFreshnessThatMakesNoSenseIsNone) {
  for (const char* value :
       {"max-age", "max-age=", "max-age=-1", "max-age=1.5", "max-age=+1", "max-age='10'", "max-age=10s",
        "max-age=1 0", "max-age =10", "max-age= 10", "max-age=10;public", "max-age=\"10", "max-age=\"10\"x",
        "max-age=0x10", "max-age=\" 10\"", "max-age; x=1"})
    EXPECT_EQ(read_control(value).max_age, 0) << value;
  EXPECT_EQ(read_control("s-maxage=x").s_maxage, 0);
}

TEST(CacheControl, AConcessionThatMakesNoSenseIsNotMade) {
  const CacheControl read = read_control(
      "stale-while-revalidate=x, stale-if-error=-1, max-stale=x, min-fresh=y, public=1, "
      "must-understand=\"a\", only-if-cached=1");
  EXPECT_EQ(read, CacheControl{});
}

TEST(CacheControl, ARestrictionHoldsWhateverItsArgument) {
  EXPECT_TRUE(read_control("no-store=0").no_store);
  EXPECT_TRUE(read_control("no-store; private").no_store);
  EXPECT_TRUE(read_control("private;max-age=60").is_private);
  EXPECT_TRUE(read_control("must-revalidate=\"\"").must_revalidate);
  EXPECT_TRUE(read_control("x=\"unclosed, no-store").no_store);
}

TEST(CacheControl, ReadsStaleExtensions) {
  const CacheControl read = read_control("stale-while-revalidate=30, stale-if-error=\"86400\"");
  EXPECT_EQ(read.stale_while_revalidate, 30);
  EXPECT_EQ(read.stale_if_error, 86'400);
  EXPECT_FALSE(read.bare_stale_while_revalidate);
}

TEST(CacheControl, TellsABareStaleWhileRevalidateApart) {
  const CacheControl read = read_control("s-maxage=60, stale-while-revalidate");
  EXPECT_EQ(read.stale_while_revalidate, std::nullopt);
  EXPECT_TRUE(read.bare_stale_while_revalidate);
}

TEST(CacheControl, MaxStaleWithoutANumberMeansAnyAge) {
  EXPECT_EQ(read_control("max-stale").max_stale, kMaxDeltaSeconds);
  EXPECT_EQ(read_control("max-stale=5").max_stale, 5);
}

TEST(CacheControl, QualifiedFormsConcernOnlyTheFieldsTheyName) {
  const CacheControl read =
      read_control("private=\"X-User, Set-Cookie\", no-cache=x-token, no-cache=\"X-Token\"");
  EXPECT_FALSE(read.is_private);
  EXPECT_FALSE(read.no_cache);
  EXPECT_THAT(read.private_fields, ElementsAre("x-user", "set-cookie"));
  EXPECT_THAT(read.no_cache_fields, ElementsAre("x-token"));
}

TEST(CacheControl, AQualifiedFormWithoutNamesConcernsTheWholeResponse) {
  for (const char* value : {"private=\"\"", "private=", "private=\" , \"", "private=\"a b\"", "private = x",
                            "private= x", "private"}) {
    EXPECT_TRUE(read_control(value).is_private) << value;
    EXPECT_THAT(read_control(value).private_fields, IsEmpty()) << value;
  }
  const CacheControl both = read_control("no-cache=\"x\", no-cache");
  EXPECT_TRUE(both.no_cache);
}

std::optional<CacheControl> read_targeted(std::string value) {
  return parse_targeted_cache_control({{"CDN-Cache-Control", std::move(value)}}, "cdn-cache-control");
}

TEST(TargetedCacheControl, IsADictionary) {
  const auto read = read_targeted("max-age=60, no-cache=\"X-A, X-B\", public, stale-if-error=5;x=1");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->max_age, 60);
  EXPECT_THAT(read->no_cache_fields, ElementsAre("x-a", "x-b"));
  EXPECT_TRUE(read->is_public);
  EXPECT_EQ(read->stale_if_error, 5);
}

TEST(TargetedCacheControl, CountsForNothingWhenEmptyOrNotWellFormed) {
  EXPECT_EQ(parse_targeted_cache_control({}, "CDN-Cache-Control"), std::nullopt);
  for (const char* value :
       {"", "  ", "max-age=10000, &&&&&", "Max-Age=10", "max-age=10,", "no-store max-age=10"})
    EXPECT_EQ(read_targeted(value), std::nullopt) << value;
}

TEST(TargetedCacheControl, CountsEvenWithoutAKnownDirective) {
  EXPECT_EQ(read_targeted("none"), CacheControl{});
}

TEST(TargetedCacheControl, TheLastOfARepeatedDirectiveCounts) {
  EXPECT_EQ(read_targeted("max-age=10, max-age=20")->max_age, 20);
}

TEST(TargetedCacheControl, AValueOfTheWrongTypeIsNoFreshness) {
  for (const char* value : {"max-age=\"10\"", "max-age=10.5", "max-age=-1", "max-age=abc", "max-age",
                            "max-age=?0", "max-age=(10)"})
    EXPECT_EQ(read_targeted(value)->max_age, 0) << value;
  EXPECT_EQ(read_targeted("stale-while-revalidate=\"5\"")->stale_while_revalidate, std::nullopt);
}

TEST(TargetedCacheControl, FalseTakesADirectiveBackAndAnythingElseHolds) {
  EXPECT_FALSE(read_targeted("no-store=?0")->no_store);
  EXPECT_FALSE(read_targeted("private=?0")->is_private);
  EXPECT_TRUE(read_targeted("no-store=5")->no_store);
  EXPECT_TRUE(read_targeted("private=5")->is_private);
  EXPECT_FALSE(read_targeted("public=5")->is_public);
}

}  // namespace
}  // namespace facetheory
