#include "facetheory/http/normal_form.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using ::testing::HasSubstr;

std::string normal(std::string_view path) {
  const auto result = normalise_path(path);
  return result ? *result : "refused: " + result.error().message;
}

TEST(NormalisePath, DecodesWhatNeedsNoEncodingAndNothingElse) {
  EXPECT_EQ(normal("/%6eews/%7Euser"), "/news/~user");
  EXPECT_EQ(normal("/a%2fb"), "/a%2Fb");
  EXPECT_EQ(normal("/a%2Bb+c%26d"), "/a%2Bb+c%26d");
  EXPECT_EQ(normal("/%25%32%35"), "/%2525");
}

TEST(NormalisePath, EncodesBytesBeyondAscii) {
  EXPECT_EQ(normal("/caf\xC3\xA9"), "/caf%C3%A9");
  EXPECT_EQ(normal("/caf%c3%a9"), "/caf%C3%A9");
  EXPECT_EQ(normal("/\xE9"), "/%E9");
}

TEST(NormalisePath, IsTheSameWhenDoneTwice) {
  for (const char* path :
       {"/", "/a//b/", "/a%2fb", "/%41%2541", "/caf\xC3\xA9", "/a;b=c", "/x%3A:", "/%25"}) {
    EXPECT_EQ(normal(normal(path)), normal(path)) << path;
  }
}

TEST(NormalisePath, KeepsDoubleSlashesAndATrailingSlash) {
  EXPECT_EQ(normal("//a//b//"), "//a//b//");
}

TEST(NormalisePath, RefusesDotSegmentsHoweverTheyAreSpelt) {
  for (const char* path : {"/.", "/..", "/a/../b", "/a/./b", "/a/..", "/%2e%2E/b", "/a/.%2e", "/a%2f..%2fb",
                           "/a/..%2fb", "/a\\..\\b", "/a%5c..", "/a/..;x/b", "/a/.;/b", "/a/..%3bx/b"}) {
    EXPECT_THAT(normal(path), HasSubstr("refused: ")) << path;
  }
  EXPECT_EQ(normal("/a/...b/..c/.well-known"), "/a/...b/..c/.well-known");
}

TEST(NormalisePath, RefusesControlCharactersAlsoEncodedOnes) {
  for (const std::string_view path :
       {std::string_view("/a\0b", 4), std::string_view("/a%00"), std::string_view("/a%0a"),
        std::string_view("/a\tb"), std::string_view("/a b"), std::string_view("/%7f")}) {
    EXPECT_THAT(normal(path), HasSubstr("refused: ")) << path;
  }
}

TEST(NormalisePath, RefusesABrokenPercentAndWhatIsNoPath) {
  for (const char* path : {"/100%", "/%2", "/%zz", "", "news", "*", "/a?b", "/a#b", "http://x/"}) {
    EXPECT_THAT(normal(path), HasSubstr("refused: ")) << path;
  }
}

TEST(NormaliseQuery, KeepsALonePercentAndThePlus) {
  EXPECT_EQ(*normalise_query("q=100%&x=%41+%2b"), "q=100%&x=A+%2B");
  // A '%' that stands for itself does not become part of an encoding: that would be another query.
  EXPECT_EQ(*normalise_query("%%414"), "%%414");
  EXPECT_EQ(*normalise_query("%4%31"), "%4%31");
  EXPECT_EQ(*normalise_query("%%7a%4%7a"), "%z%4z");
  EXPECT_FALSE(normalise_query("a b"));
  EXPECT_FALSE(normalise_query("a#b"));
  EXPECT_FALSE(normalise_query("a\nb"));
}

TEST(DecodePercent, DecodesOnce) {
  EXPECT_EQ(decode_percent("a%2Fb"), "a/b");
  EXPECT_EQ(decode_percent("a%252Fb"), "a%2Fb");
  EXPECT_EQ(decode_percent("100%"), "100%");
  EXPECT_EQ(decode_percent("%4"), "%4");
}

std::string host(std::string_view text) {
  const auto result = normalise_host(text);
  return result ? *result : "refused";
}

TEST(NormaliseHost, IsLowerCaseWithoutAFinalDot) {
  EXPECT_EQ(host("Example.COM."), "example.com");
  EXPECT_EQ(host("Example.COM.:8080"), "example.com:8080");
  EXPECT_EQ(host("[0:0::1]:080"), "[::1]:80");
  EXPECT_EQ(host("example.com:"), "example.com");
}

TEST(NormaliseHost, RefusesWhatIsNoHost) {
  for (const char* text : {"", "a b", "a/b", "a@b", "a:b", "a:99999", "a:0", "::1", "[::1", "[x]", ".", "..",
                           "a..b", "a,b", "a#b", "a%41", ":80", "[::1]x"}) {
    EXPECT_EQ(host(text), "refused") << text;
  }
}

}  // namespace
}  // namespace facetheory
