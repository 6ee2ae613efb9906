#include "facetheory/rules/vary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

TEST(Vary, NamesAreLowerCaseSortedAndUnique) {
  EXPECT_THAT(vary_names({{"Vary", " Foo ,accept,, FOO"}, {"vary", "Bar"}}),
              Optional(ElementsAre("accept", "bar", "foo")));
  EXPECT_THAT(vary_names({}), Optional(ElementsAre()));
  EXPECT_THAT(vary_names({{"Vary", ""}}), Optional(ElementsAre()));
}

TEST(Vary, AStarAnywhereOrWhatIsNoNameLeavesNoKey) {
  for (const char* value : {"*", "*, Foo", "Foo , *", "a b", "\"x\"", "foo;bar"})
    EXPECT_EQ(vary_names({{"Vary", value}}), std::nullopt) << value;
  EXPECT_EQ(vary_names({{"Vary", "Foo"}, {"Vary", "*"}}), std::nullopt);
}

std::string key_of(std::vector<std::string> names, const Headers& request) {
  return variant_key(names, request);
}

TEST(VariantKey, DependsOnNamedFieldsOnlyInAnyOrder) {
  const Headers request{{"B", "2"}, {"A", "1"}, {"C", "3"}};
  EXPECT_EQ(key_of({"a", "b"}, request), "a=1&b=2");
  EXPECT_EQ(key_of({"B", "A", "b"}, request), "a=1&b=2");
  EXPECT_EQ(key_of({}, request), "");
}

TEST(VariantKey, TellsAbsentFromEmpty) {
  EXPECT_EQ(key_of({"a"}, {}), "a");
  EXPECT_EQ(key_of({"a"}, {{"A", ""}}), "a=");
}

TEST(VariantKey, DoesNotMindWhitespaceOrSeveralFields) {
  EXPECT_EQ(key_of({"foo"}, {{"Foo", "1, 2"}}), key_of({"foo"}, {{"Foo", " 1 ,,2"}}));
  EXPECT_EQ(key_of({"foo"}, {{"Foo", "1"}, {"foo", "2"}}), key_of({"foo"}, {{"Foo", "1,2"}}));
  EXPECT_NE(key_of({"foo"}, {{"Foo", "1,2"}}), key_of({"foo"}, {{"Foo", "2,1"}}));
  EXPECT_NE(key_of({"foo"}, {{"Foo", "a"}}), key_of({"foo"}, {{"Foo", "A"}}));
}

TEST(VariantKey, CannotBeForgedByAValue) {
  EXPECT_NE(key_of({"a", "b"}, {{"A", "1&b=2"}}), key_of({"a", "b"}, {{"A", "1"}, {"B", "2"}}));
  EXPECT_NE(key_of({"a"}, {{"A", "%26"}}), key_of({"a"}, {{"A", "&"}}));
  EXPECT_NE(key_of({"a"}, {{"A", "="}}), key_of({"a"}, {{"A", "%="}}));
  EXPECT_EQ(key_of({"a"}, {{"A", "\n\xFF"}}), "a=%0A%FF");
  // A value that looks like a digest is not taken for one.
  const std::string long_value(300, 'x');
  const std::string digest = key_of({"a"}, {{"A", long_value}});
  EXPECT_NE(key_of({"a"}, {{"A", digest.substr(2)}}), digest);
}

TEST(VariantKey, ShowsNoSecretsAndStaysShort) {
  const std::string key = key_of({"cookie", "authorization", "x"}, {{"Cookie", "session=topsecret"},
                                                                    {"Authorization", "Bearer topsecret"},
                                                                    {"X", std::string(10'000, 'y')}});
  EXPECT_THAT(key, Not(HasSubstr("topsecret")));
  EXPECT_LT(key.size(), 300U);
  EXPECT_NE(key_of({"cookie"}, {{"Cookie", "a=1"}}), key_of({"cookie"}, {{"Cookie", "a=2"}}));
}

TEST(VariantKey, ReadsAcceptLanguageBySenseNotBySpelling) {
  const std::string key = key_of({"accept-language"}, {{"Accept-Language", "en-US, de;q=0.5"}});
  EXPECT_EQ(key, "accept-language=en-us,de;q=500");
  for (const char* same : {"EN-us,de;q=0.50", "de;q=0.5 , en-us;q=1.0", "en-US;q=1 ,de ; Q=0.500"})
    EXPECT_EQ(key_of({"accept-language"}, {{"Accept-Language", same}}), key) << same;
  EXPECT_NE(key_of({"accept-language"}, {{"Accept-Language", "en, de"}}),
            key_of({"accept-language"}, {{"Accept-Language", "de, en"}}));
}

TEST(VariantKey, KeepsParametersOfAccept) {
  EXPECT_EQ(key_of({"accept"}, {{"Accept", "Text/HTML; level=\"a;q=0\" ;q=0.1, */*"}}),
            "accept=*/*,text/html;level=\"a;q=0\";q=100");
}

std::string encodings(const char* value) {
  return to_string(accepted_encodings({{"Accept-Encoding", value}}));
}

TEST(AcceptEncoding, IsReducedToTheKnownCodingsInOneOrder) {
  EXPECT_EQ(encodings("gzip, deflate, br"), "br,gzip");
  EXPECT_EQ(encodings("BR;q=0.1,x-gzip , zstd"), "br,zstd,gzip");
  EXPECT_EQ(encodings("deflate"), "identity");
  EXPECT_EQ(encodings(""), "identity");
  EXPECT_EQ(key_of({"accept-encoding"}, {{"Accept-Encoding", "gzip;q=0.9 ,br"}}), "accept-encoding=br,gzip");
}

TEST(AcceptEncoding, WeightZeroRefuses) {
  EXPECT_EQ(encodings("gzip;q=0, br"), "br");
  EXPECT_EQ(encodings("gzip; q=0.000"), "identity");
  EXPECT_EQ(encodings("identity;q=0, gzip"), "gzip,!identity");
  EXPECT_EQ(encodings("*;q=0"), "!identity");
  EXPECT_EQ(encodings("gzip, *;q=0"), "gzip,!identity");
  EXPECT_EQ(encodings("identity, *;q=0"), "identity");
}

TEST(AcceptEncoding, AStarStandsForAllThatAreNotNamed) {
  EXPECT_EQ(encodings("*"), "br,zstd,gzip");
  EXPECT_EQ(encodings("*, br;q=0"), "zstd,gzip");
}

TEST(AcceptEncoding, WithoutTheFieldOnlyIdentityIsSafe) {
  EXPECT_EQ(accepted_encodings({}), (AcceptedEncodings{.identity = true}));
}

}  // namespace
}  // namespace facetheory
