#include "facetheory/rules/request_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using testing::HasSubstr;

TEST(RequestTarget, OriginFormTakesTheHostField) {
  const auto read = read_target("/a%41?x=1", {{"Host", "Example.COM:8080"}}, false);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->scheme, "http");
  EXPECT_EQ(read->host, "example.com:8080");
  EXPECT_EQ(read->path, "/aA");
  EXPECT_EQ(read->query, "x=1");
  EXPECT_EQ(read->origin_form(), "/aA?x=1");
  EXPECT_EQ(read->origin(), "http://example.com:8080");
}

TEST(RequestTarget, AbsoluteFormOverrulesTheHostField) {
  const auto read = read_target("http://other.example?q", {{"Host", "example.com"}}, false);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->host, "other.example");
  EXPECT_EQ(read->origin_form(), "/?q");
}

TEST(RequestTarget, AStrangerCannotClaimTls) {
  const Headers claims{{"Host", "example.com"}, {"X-Forwarded-Proto", "https"}};
  EXPECT_EQ(read_target("/", claims, false)->scheme, "http");
  EXPECT_EQ(read_target("https://example.com/", claims, false)->scheme, "http");
  EXPECT_EQ(read_target("/", claims, true)->scheme, "https");
}

TEST(RequestTarget, TheNearestProxySaysTheScheme) {
  EXPECT_EQ(read_target("/", {{"Host", "a"}, {"X-Forwarded-Proto", "https, http"}}, true)->scheme, "http");
  const auto odd = read_target("/", {{"Host", "a"}, {"X-Forwarded-Proto", "gopher"}}, true);
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().message, HasSubstr("X-Forwarded-Proto"));
}

TEST(RequestTarget, TheSchemesOwnPortIsNotPartOfItsHost) {
  EXPECT_EQ(read_target("/", {{"Host", "a:00080"}}, false)->host, "a");
  EXPECT_EQ(read_target("http://a:80/", {{"Host", "b"}}, false)->host, "a");
  EXPECT_EQ(read_target("/", {{"Host", "[::1]:80"}}, false)->host, "[::1]");
  EXPECT_EQ(read_target("/", {{"Host", "a:8080"}}, false)->host, "a:8080");
  EXPECT_EQ(read_target("/", {{"Host", "a:80"}}, false)->origin(), "http://a");
  EXPECT_EQ(read_target("/", {{"Host", "a:443"}}, false)->origin(), "http://a:443");
  EXPECT_EQ(read_target("/", {{"Host", "a:443"}, {"X-Forwarded-Proto", "https"}}, true)->origin(),
            "https://a");
}

TEST(RequestTarget, RefusesWhatNamesNoPage) {
  for (const std::string_view target :
       {"*", "http", "https", "http:", "http:/", "http://", "", "example.com:443", "ftp://example.com/",
        "http://user@example.com/", "http:///x", "/a/../b", "/%00", "/a#b", "/a?b#c",
        "http://example.com?a#b"}) {
    EXPECT_FALSE(read_target(target, {{"Host", "example.com"}}, false)) << target;
  }
  EXPECT_FALSE(read_target("/", {}, false));
  EXPECT_FALSE(read_target("/", {{"Host", "a b"}}, false));
}

}  // namespace
}  // namespace facetheory
