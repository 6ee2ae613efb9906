#include "facetheory/http/structured_fields.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

SfMember plain(SfBareItem value) {
  return SfItem{std::move(value), {}};
}

TEST(StructuredDictionary, ReadsEveryKindOfValue) {
  const auto parsed = parse_sf_dictionary(
      R"(a=1, b=-2.5, c="x\"y\\", d=tok/en:*, e=?0, f, g=:aGk=:, h=@1659578233, i=%"f%c3%bc", j=(1 "2");q)");
  ASSERT_TRUE(parsed);
  const SfDictionary expected{
      {"a", plain(std::int64_t{1})},
      {"b", plain(-2.5)},
      {"c", plain(std::string(R"(x"y\)"))},
      {"d", plain(SfToken{"tok/en:*"})},
      {"e", plain(false)},
      {"f", plain(true)},
      {"g", plain(SfBytes{"aGk="})},
      {"h", plain(SfDate{1'659'578'233})},
      {"i", plain(SfDisplayString{"f\xC3\xBC"})},
      {"j", SfInnerList{{{std::int64_t{1}, {}}, {std::string("2"), {}}}, {{"q", true}}}}};
  EXPECT_EQ(*parsed, expected);
}

TEST(StructuredDictionary, GivesARepeatedKeyItsLastValue) {
  EXPECT_EQ(parse_sf_dictionary("a=1,b=2,a=3"),
            (SfDictionary{{"b", plain(std::int64_t{2})}, {"a", plain(std::int64_t{3})}}));
}

TEST(StructuredDictionary, KeepsParametersOfValuesAndOfFlags) {
  EXPECT_EQ(parse_sf_dictionary("a=1;x;y=2;  x=3, b;z"),
            (SfDictionary{{"a", SfItem{std::int64_t{1}, {{"y", std::int64_t{2}}, {"x", std::int64_t{3}}}}},
                          {"b", SfItem{true, {{"z", true}}}}}));
}

TEST(StructuredDictionary, IsEmptyWhenTheTextIs) {
  EXPECT_EQ(parse_sf_dictionary(""), SfDictionary{});
  EXPECT_EQ(parse_sf_dictionary("   "), SfDictionary{});
}

TEST(StructuredDictionary, IsNothingAfterOneMistake) {
  for (const char* text : {"a=1,",
                           ",a=1",
                           "a=1,,b",
                           "A=1",
                           "a = 1",
                           "a= 1",
                           "a=",
                           "a=1 b",
                           "a=&",
                           "1=a",
                           "a=\"x",
                           "a=\"\\x\"",
                           "a=\"\x7F\"",
                           "a=?2",
                           "a=?",
                           "a=1.",
                           "a=.5",
                           "a=1.2345",
                           "a=1234567890123456",
                           "a=1234567890123.1",
                           "a=--1",
                           "a=-",
                           "a=(1",
                           "a=(1,2)",
                           "a=(1\"x\")",
                           "a=:x",
                           "a=:%:",
                           "a=@1.5",
                           "a=@",
                           "a=%x",
                           "a=%\"%C3\"",
                           "a=%\"%c\"",
                           "a;",
                           "a;=1",
                           "a;B",
                           "a=1\n",
                           "a='x'",
                           "a=1;;b",
                           "max-age=10000, &&&&&"})
    EXPECT_EQ(parse_sf_dictionary(text), std::nullopt) << text;
}

TEST(StructuredDictionary, HoldsAsManyMembersAsItMustAndNoMore) {
  std::string text = "k0";
  for (int i = 1; i < 1024; ++i)
    text += ",k" + std::to_string(i);
  EXPECT_EQ(parse_sf_dictionary(text).value_or(SfDictionary{}).size(), 1024U);
  EXPECT_EQ(parse_sf_dictionary(text + ",more"), std::nullopt);
}

TEST(StructuredNumber, GoesToFifteenDigits) {
  EXPECT_EQ(parse_sf_list("999999999999999, -999999999999999, 0042, 999999999999.25"),
            (SfList{plain(std::int64_t{999'999'999'999'999}), plain(std::int64_t{-999'999'999'999'999}),
                    plain(std::int64_t{42}), plain(999'999'999'999.25)}));
}

TEST(StructuredList, AllowsTabsAroundCommasAndAtTheEnd) {
  EXPECT_EQ(parse_sf_list("\"a\" \t,\t \"b\" \t"),
            (SfList{plain(std::string("a")), plain(std::string("b"))}));
  EXPECT_EQ(parse_sf_list("\t\"a\""), std::nullopt);
}

TEST(StructuredList, IsNothingAfterOneMistake) {
  for (const char* text : {"\"a\" \"b\"", "a,", "a b", "(a b", "\"a\xC3\xA9\""})
    EXPECT_EQ(parse_sf_list(text), std::nullopt) << text;
}

TEST(StructuredString, IsWrittenWithEscapesOrNotAtAll) {
  EXPECT_EQ(format_sf_string(R"(a"b\c)"), R"("a\"b\\c")");
  EXPECT_EQ(format_sf_string("a\nb"), std::nullopt);
  EXPECT_EQ(format_sf_string("\xC3\xA9"), std::nullopt);
}

TEST(StructuredToken, BeginsWithALetterOrAStar) {
  EXPECT_TRUE(is_sf_token("a1:/"));
  EXPECT_TRUE(is_sf_token("*"));
  for (const char* text : {"", "1a", "-a", "a b", "a\""})
    EXPECT_FALSE(is_sf_token(text)) << text;
}

}  // namespace
}  // namespace facetheory
