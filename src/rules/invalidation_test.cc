#include "facetheory/rules/invalidation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kSite = "https://example.com";

Invalidation after(const char* method, int status, const Headers& response = {}) {
  return invalidated_by(method, kSite, "/a/b?c=1", status, response);
}

TEST(Invalidation, FollowsASuccessfulUnsafeRequest) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "UNHEARDOF"}) {
    for (const int status : {200, 201, 204, 301, 303, 399})
      EXPECT_THAT(after(method, status).targets, ElementsAre("/a/b?c=1")) << method << status;
  }
}

TEST(Invalidation, DoesNotFollowAFailureOrASafeMethod) {
  for (const int status : {100, 400, 404, 500, 503})
    EXPECT_TRUE(after("POST", status, {{"Cache-Group-Invalidation", "\"g\""}}).empty()) << status;
  for (const char* method : {"GET", "HEAD", "OPTIONS", "TRACE"})
    EXPECT_TRUE(after(method, 200, {{"Cache-Group-Invalidation", "\"g\""}, {"Location", "/x"}}).empty())
        << method;
}

TEST(Invalidation, ReachesWhereLocationAndContentLocationLead) {
  EXPECT_THAT(after("POST", 201, {{"Location", "/new"}, {"Content-Location", "c?x"}}).targets,
              ElementsAre("/a/b?c=1", "/new", "/a/c?x"));
  EXPECT_THAT(after("POST", 200, {{"Location", "/a/b?c=1#top"}}).targets, ElementsAre("/a/b?c=1"));
}

TEST(Invalidation, NeverReachesAnotherOrigin) {
  for (const char* location :
       {"https://evil.com/x", "http://example.com/x", "//evil.com/x", "https://example.com:8443/x",
        "https://example.com.evil.com/", "https://example.com@evil.com/", "https://user@example.com/x",
        "mailto:x", "javascript:alert(1)", "https:/x", "https://example.com\\@evil.com/x", "/a b",
        "/a\\..\\b"})
    EXPECT_THAT(after("POST", 200, {{"Location", location}}).targets, ElementsAre("/a/b?c=1")) << location;
}

TEST(Invalidation, ReadsGroupsOfAWellFormedListOnly) {
  EXPECT_THAT(after("POST", 200, {{"Cache-Group-Invalidation", "\"a\", \"b c\";x, token"}}).groups,
              ElementsAre("a", "b c"));
  EXPECT_THAT(after("POST", 200, {{"Cache-Group-Invalidation", "\"a\", \"b"}}).groups, IsEmpty());
}

std::string resolved(const char* reference) {
  return target_on_origin(kSite, "/a/b/c?q", reference).value_or("elsewhere");
}

TEST(TargetOnOrigin, ResolvesReferencesAgainstTheRequest) {
  EXPECT_EQ(resolved("d"), "/a/b/d");
  EXPECT_EQ(resolved("./d"), "/a/b/d");
  EXPECT_EQ(resolved("../d"), "/a/d");
  EXPECT_EQ(resolved("../../../../d"), "/d");
  EXPECT_EQ(resolved(".."), "/a/");
  EXPECT_EQ(resolved("."), "/a/b/");
  EXPECT_EQ(resolved("?y"), "/a/b/c?y");
  EXPECT_EQ(resolved("#f"), "/a/b/c?q");
  EXPECT_EQ(resolved("/x/"), "/x/");
  EXPECT_EQ(resolved("/x//y"), "/x//y");
  EXPECT_EQ(resolved("/x/../../y/."), "/y/");
  EXPECT_EQ(resolved("/x?a=/../b"), "/x?a=/../b");
  EXPECT_EQ(resolved("/x:y"), "/x:y");
}

TEST(TargetOnOrigin, RecognisesItselfInAnySpelling) {
  EXPECT_EQ(resolved("https://example.com/x"), "/x");
  EXPECT_EQ(resolved("HTTPS://EXAMPLE.com:443/X"), "/X");
  EXPECT_EQ(resolved("https://example.com"), "/");
  EXPECT_EQ(resolved("https://example.com?y"), "/?y");
  EXPECT_EQ(resolved("//example.com/x"), "/x");
  EXPECT_EQ(resolved("https://example.com:80/x"), "elsewhere");
}

TEST(IsSameSite, IsWhatABrowserSays) {
  for (const char* site : {"same-origin", "same-site", "none"})
    EXPECT_TRUE(is_same_site({{"Sec-Fetch-Site", site}, {"Origin", "https://evil.example"}}, "example.com"))
        << site;
  for (const char* site : {"cross-site", "", "other", "same-origin, cross-site"})
    EXPECT_FALSE(is_same_site({{"Sec-Fetch-Site", site}, {"Origin", "https://example.com"}}, "example.com"))
        << site;
  EXPECT_FALSE(
      is_same_site({{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "cross-site"}}, "example.com"));
}

TEST(IsSameSite, OfAnOlderBrowserIsTheHostOfTheOrigin) {
  for (const char* origin : {"https://example.com", "http://example.com:8080", "https://EXAMPLE.com"})
    EXPECT_TRUE(is_same_site({{"Origin", origin}}, "example.com:8081")) << origin;
  for (const char* origin : {"null", "", "https://evil.example", "https://example.com.evil.example",
                             "https://www.example.com", "example.com", "https://", "https://example.com/"})
    EXPECT_FALSE(is_same_site({{"Origin", origin}}, "example.com")) << origin;
  EXPECT_FALSE(is_same_site({{"Origin", "https://example.com"}, {"Origin", "null"}}, "example.com"));
}

TEST(IsSameSite, AProgramSaysNothing) {
  EXPECT_TRUE(is_same_site({}, "example.com"));
  EXPECT_TRUE(is_same_site({{"Referer", "https://evil.example/"}}, "example.com"));
}

}  // namespace
}  // namespace facetheory
