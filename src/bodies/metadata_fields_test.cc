#include "facetheory/bodies/metadata_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(MetadataFields, AreThoseOfFaceTheoryWhereItHasOne) {
  BodyMetadata metadata;
  metadata.status = 404;
  metadata.content_type = "text/html";
  metadata.headers = {{"content-security-policy", "default-src 'self'"}};
  metadata.sha256 = "ab12";
  EXPECT_THAT(encode_metadata(metadata),
              ElementsAre(Pair("facetheory-status", "404"), Pair("facetheory-content-type", "text/html"),
                          Pair("facetheory-content-security-policy", "default-src 'self'"),
                          Pair("facetheory-sha256", "ab12")));
}

TEST(MetadataFields, HoldOtherHeadersAsJsonInAscii) {
  BodyMetadata metadata;
  metadata.headers = {{"link", "<\"a\">"}, {"content-security-policy", "x"}, {"x-odd", "\xE9  \t\x7F"}};
  EXPECT_THAT(
      encode_metadata(metadata),
      ElementsAre(
          Pair("facetheory-status", "200"), Pair("facetheory-content-security-policy", "x"),
          Pair("facetheory-headers",
               R"([["link","<\"a\">"],["content-security-policy"],["x-odd","\u00e9 \u0020\t\u007f"]])")));
}

TEST(MetadataFields, AreMeasuredWithTheirPrefix) {
  EXPECT_EQ(size_of({{"a", "1234"}, {"bc", ""}}), 2 * kMetadataFieldPrefix.size() + 1 + 4 + 2);
}

TEST(MetadataFields, OfAForeignWriterMayAllBeAbsent) {
  auto metadata = decode_metadata({}, "text/plain");
  ASSERT_TRUE(metadata);
  EXPECT_EQ(*metadata,
            (BodyMetadata{.status = 200, .content_type = "text/plain", .headers = {}, .sha256 = {}}));
}

TEST(MetadataFields, OfAForeignWriterPreferItsOwnContentType) {
  auto metadata = decode_metadata({{"facetheory-content-type", "text/html"}, {"other", "x"}}, "text/plain");
  ASSERT_TRUE(metadata);
  EXPECT_EQ(metadata->content_type, "text/html");
}

TEST(MetadataFields, ThatMakeNoSenseAreNamed) {
  for (const char* status : {"", "abc", "99", "1000", "200 ", "2e2"}) {
    auto metadata = decode_metadata({{"facetheory-status", status}}, "");
    ASSERT_FALSE(metadata) << status;
    EXPECT_EQ(metadata.error().code, ErrorCode::corrupt);
    EXPECT_THAT(metadata.error().message, HasSubstr("facetheory-status"));
  }
  for (const char* headers : {"", "{}", "[1]", "[[]]", R"([["a","b","c"]])", R"([["a",1]])", R"([["a"]])",
                              R"([["a","€"]])", R"([["content-security-policy"]])"}) {
    auto metadata = decode_metadata({{"facetheory-headers", headers}}, "");
    ASSERT_FALSE(metadata) << headers;
    EXPECT_THAT(metadata.error().message, HasSubstr("facetheory-headers"));
  }
}

TEST(MetadataFields, EscapeCharactersBeyondTheFirstPlaneAsSurrogates) {
  EXPECT_EQ(ascii_json("\"\xF0\x9F\x8C\x8D\xE2\x82\xAC\""), "\"\\ud83c\\udf0d\\u20ac\"");
}

}  // namespace
}  // namespace facetheory
