#include "facetheory/rules/preconditions.h"

#include <gtest/gtest.h>

#include "facetheory/http/http_date.h"

namespace facetheory {
namespace {

constexpr std::int64_t kAt = 1'790'000'000;
using Kind = PageAnswer::Kind;

std::string http_date(std::int64_t offset) {
  return format_http_date(kAt + offset);
}

PageValidators page_of_ten() {
  return {.status = 200, .size = 10, .etag = "\"v1\"", .last_modified = kAt - 100, .date = kAt - 50};
}

Kind answer_to(const Headers& request, const PageValidators& page = page_of_ten(),
               const char* method = "GET") {
  return evaluate(method, request, page, kAt).kind;
}

TEST(IfNoneMatch, ComparesWeakly) {
  EXPECT_EQ(answer_to({{"If-None-Match", "\"v1\""}}), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-None-Match", "W/\"v1\""}}), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-None-Match", "\"v2\""}}), Kind::full);
  PageValidators weak = page_of_ten();
  weak.etag = "W/\"v1\"";
  EXPECT_EQ(answer_to({{"If-None-Match", "\"v1\""}}, weak), Kind::not_modified);
}

TEST(IfNoneMatch, FindsTheTagAnywhereInTheList) {
  EXPECT_EQ(answer_to({{"If-None-Match", "\"a\", W/\"b\" ,\"v1\""}}), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-None-Match", "\"a\""}, {"If-None-Match", "\"v1\""}}), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-None-Match", "\"a\",, \"b\""}}), Kind::full);
}

TEST(IfNoneMatch, TakesABackslashInATagForItself) {
  PageValidators page = page_of_ten();
  page.etag = "\"a,b\\\"";
  EXPECT_EQ(answer_to({{"If-None-Match", "\"a,b\\\""}}, page), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-None-Match", "\"x\\\", \"a,b\\\", \"y\""}}, page), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-None-Match", "\"a, \"v1\""}}), Kind::full);
}

TEST(IfNoneMatch, DoesNotSplitATagAtItsComma) {
  PageValidators page = page_of_ten();
  page.etag = "\"a,b\"";
  EXPECT_EQ(answer_to({{"If-None-Match", "\"x\", \"a,b\""}}, page), Kind::not_modified);
  page.etag = "\"b\"";
  EXPECT_EQ(answer_to({{"If-None-Match", "\"a,\"b\",c\""}}, page), Kind::full);
}

TEST(IfNoneMatch, AStarMatchesAnyPageButStandsAlone) {
  EXPECT_EQ(answer_to({{"If-None-Match", "*"}}), Kind::not_modified);
  PageValidators bare = page_of_ten();
  bare.etag = {};
  EXPECT_EQ(answer_to({{"If-None-Match", " * "}}, bare), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-None-Match", "*, \"x\""}}), Kind::full);
  EXPECT_EQ(answer_to({{"If-None-Match", "\"*\""}}), Kind::full);
}

TEST(IfNoneMatch, IgnoresWhatIsNoTag) {
  for (const char* value : {"v1", "", "\"v1", "w/\"v1\"", "'v1'"})
    EXPECT_EQ(answer_to({{"If-None-Match", value}}), Kind::full) << value;
}

TEST(IfNoneMatch, OverrulesIfModifiedSince) {
  EXPECT_EQ(answer_to({{"If-None-Match", "\"v2\""}, {"If-Modified-Since", http_date(0)}}), Kind::full);
  EXPECT_EQ(answer_to({{"If-None-Match", "\"v1\""}, {"If-Modified-Since", http_date(-1000)}}),
            Kind::not_modified);
}

TEST(IfModifiedSince, ComparesWithLastModified) {
  EXPECT_EQ(answer_to({{"If-Modified-Since", http_date(-100)}}), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-Modified-Since", http_date(-99)}}), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-Modified-Since", http_date(-101)}}), Kind::full);
}

TEST(IfModifiedSince, ComparesWithTheDateOfAPageWithoutLastModified) {
  PageValidators page = page_of_ten();
  page.last_modified = {};
  EXPECT_EQ(answer_to({{"If-Modified-Since", http_date(-50)}}, page), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-Modified-Since", http_date(-51)}}, page), Kind::full);
}

TEST(IfModifiedSince, IgnoresWhatIsNoDateOrSeveral) {
  EXPECT_EQ(answer_to({{"If-Modified-Since", "yesterday"}}), Kind::full);
  EXPECT_EQ(answer_to({{"If-Modified-Since", http_date(0)}, {"If-Modified-Since", http_date(0)}}),
            Kind::full);
}

TEST(Preconditions, HoldForHeadAndForNoOtherMethod) {
  EXPECT_EQ(answer_to({{"If-None-Match", "*"}}, page_of_ten(), "HEAD"), Kind::not_modified);
  EXPECT_EQ(answer_to({{"If-None-Match", "*"}}, page_of_ten(), "POST"), Kind::full);
}

TEST(Preconditions, AreIgnoredOnPagesThatAreNoSuccess) {
  for (const int status : {301, 404, 410}) {
    PageValidators page = page_of_ten();
    page.status = status;
    EXPECT_EQ(answer_to({{"If-None-Match", "\"v1\""}}, page), Kind::full) << status;
    EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}}, page), Kind::full) << status;
  }
}

TEST(Range, ResolvesEveryFormOfASingleRange) {
  EXPECT_EQ(resolve_range("bytes=0-4", 10), (PageAnswer{Kind::partial, 0, 4}));
  EXPECT_EQ(resolve_range("bytes=4-", 10), (PageAnswer{Kind::partial, 4, 9}));
  EXPECT_EQ(resolve_range("bytes=-3", 10), (PageAnswer{Kind::partial, 7, 9}));
  EXPECT_EQ(resolve_range("bytes=0-0", 10), (PageAnswer{Kind::partial, 0, 0}));
  EXPECT_EQ(resolve_range("bytes=0-9", 10), (PageAnswer{Kind::partial, 0, 9}));
  EXPECT_EQ(resolve_range("Bytes=9-9", 10), (PageAnswer{Kind::partial, 9, 9}));
  EXPECT_EQ(resolve_range("bytes=,1-2 ,", 10), (PageAnswer{Kind::partial, 1, 2}));
}

TEST(Range, EndsWhereThePageEnds) {
  EXPECT_EQ(resolve_range("bytes=5-100", 10), (PageAnswer{Kind::partial, 5, 9}));
  EXPECT_EQ(resolve_range("bytes=-100", 10), (PageAnswer{Kind::partial, 0, 9}));
  EXPECT_EQ(resolve_range("bytes=5-99999999999999999999999", 10), (PageAnswer{Kind::partial, 5, 9}));
  EXPECT_EQ(resolve_range("bytes=-99999999999999999999999", 10), (PageAnswer{Kind::partial, 0, 9}));
}

TEST(Range, ThatBeginsBehindTheEndCannotBeSatisfied) {
  EXPECT_EQ(resolve_range("bytes=10-", 10).kind, Kind::unsatisfiable);
  EXPECT_EQ(resolve_range("bytes=10-20", 10).kind, Kind::unsatisfiable);
  EXPECT_EQ(resolve_range("bytes=99999999999999999999999-", 10).kind, Kind::unsatisfiable);
  EXPECT_EQ(resolve_range("bytes=-0", 10).kind, Kind::unsatisfiable);
}

TEST(Range, OfAnEmptyPage) {
  EXPECT_EQ(resolve_range("bytes=0-", 0).kind, Kind::unsatisfiable);
  EXPECT_EQ(resolve_range("bytes=0-0", 0).kind, Kind::unsatisfiable);
  EXPECT_EQ(resolve_range("bytes=-0", 0).kind, Kind::unsatisfiable);
  EXPECT_EQ(resolve_range("bytes=-5", 0).kind, Kind::full);
}

TEST(Range, ThatIsNotASingleRangeOfBytesIsIgnored) {
  for (const char* range :
       {"", "bytes", "bytes=", "bytes=-", "bytes=4-3", "bytes=a-b", "bytes=1", "bytes=1-2-3", "bytes=0-1,3-4",
        "bytes=0x1-2", "bytes=+1-2", "bytes=1 - 2", "items=0-1", "bytes 0-1", "bytes=--1", "bytes =0-1"})
    EXPECT_EQ(resolve_range(range, 10).kind, Kind::full) << range;
}

TEST(Range, IsAnsweredToGetOnlyAndOnlyOnce) {
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}}), Kind::partial);
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}}, page_of_ten(), "HEAD"), Kind::full);
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"Range", "bytes=2-3"}}), Kind::full);
}

TEST(Range, ComesAfterTheOtherConditions) {
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-None-Match", "\"v1\""}}), Kind::not_modified);
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-None-Match", "\"v2\""}}), Kind::partial);
}

TEST(IfRange, ComparesTagsStrongly) {
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-Range", "\"v1\""}}), Kind::partial);
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-Range", "\"v2\""}}), Kind::full);
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-Range", "W/\"v1\""}}), Kind::full);
  PageValidators weak = page_of_ten();
  weak.etag = "W/\"v1\"";
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-Range", "W/\"v1\""}}, weak), Kind::full);
}

TEST(IfRange, ThatFailsMakesAnImpossibleRangeAFullAnswer) {
  EXPECT_EQ(answer_to({{"Range", "bytes=50-"}, {"If-Range", "\"v2\""}}), Kind::full);
  EXPECT_EQ(answer_to({{"Range", "bytes=50-"}, {"If-Range", "\"v1\""}}), Kind::unsatisfiable);
}

TEST(IfRange, TakesADateOnlyWhenItIsExactlyThePagesAndStrong) {
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-Range", http_date(-100)}}), Kind::partial);
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-Range", http_date(-99)}}), Kind::full);
  PageValidators just_made = page_of_ten();
  just_made.date = *just_made.last_modified;
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-Range", http_date(-100)}}, just_made), Kind::full);
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-Range", "junk"}}), Kind::full);
  EXPECT_EQ(answer_to({{"Range", "bytes=0-1"}, {"If-Range", ""}}), Kind::full);
}

TEST(ContentRange, NamesTheBytesOrOnlyTheSize) {
  EXPECT_EQ(content_range({Kind::partial, 2, 4}, 10), "bytes 2-4/10");
  EXPECT_EQ(content_range({Kind::unsatisfiable}, 10), "bytes */10");
  EXPECT_EQ(content_range({Kind::unsatisfiable}, 0), "bytes */0");
}

TEST(Validation, AsksWithWhatThePageHas) {
  EXPECT_EQ(validation_fields(page_of_ten()),
            (Headers{{"If-None-Match", "\"v1\""}, {"If-Modified-Since", http_date(-100)}}));
  EXPECT_TRUE(validation_fields({.etag = "junk"}).empty());
}

TEST(Validation, A304IsAboutThePageWhoseValidatorsItCarries) {
  const PageValidators page = page_of_ten();
  EXPECT_TRUE(confirms({}, page, kAt));
  EXPECT_TRUE(confirms({{"ETag", "\"v1\""}}, page, kAt));
  EXPECT_TRUE(confirms({{"ETag", "W/\"v1\""}}, page, kAt));
  EXPECT_FALSE(confirms({{"ETag", "\"v2\""}}, page, kAt));
  EXPECT_FALSE(confirms({{"ETag", "\"v2\""}, {"Last-Modified", http_date(-100)}}, page, kAt));
  EXPECT_TRUE(confirms({{"Last-Modified", http_date(-100)}}, page, kAt));
  EXPECT_FALSE(confirms({{"Last-Modified", http_date(-5)}}, page, kAt));
  PageValidators weak = page;
  weak.etag = "W/\"v1\"";
  EXPECT_TRUE(confirms({{"ETag", "W/\"v1\""}}, weak, kAt));
  EXPECT_FALSE(confirms({{"ETag", "\"v1\""}}, weak, kAt));
}

}  // namespace
}  // namespace facetheory
