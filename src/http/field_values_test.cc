#include "facetheory/http/field_values.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> elements_of(std::string_view list) {
  std::vector<std::string> all;
  ListElements elements(list);
  while (const auto element = elements.next())
    all.emplace_back(*element);
  return all;
}

TEST(ListElements, TrimsElementsAndLeavesOutEmptyOnes) {
  EXPECT_THAT(elements_of(" a ,\t b,, ,c d ,"), ElementsAre("a", "b", "c d"));
  EXPECT_THAT(elements_of(""), ElementsAre());
  EXPECT_THAT(elements_of(" , ,"), ElementsAre());
}

TEST(ListElements, DoNotSplitInsideQuotedStrings) {
  EXPECT_THAT(elements_of(R"("a,b", x="c,\",d", e)"), ElementsAre(R"("a,b")", R"(x="c,\",d")", "e"));
}

TEST(ListElements, AQuoteThatNothingClosesHidesNothingBehindIt) {
  EXPECT_THAT(elements_of(R"(a="b, no-store)"), ElementsAre(R"(a="b)", "no-store"));
  EXPECT_THAT(elements_of(R"(a="b\", no-store)"), ElementsAre(R"(a="b\")", "no-store"));
  EXPECT_THAT(elements_of(R"("x,y", a=", c)"), ElementsAre(R"("x,y")", "a=\"", "c"));
}

TEST(ListElements, ManyOpenQuotesTakeLinearTime) {
  std::string list = "\"";
  for (int i = 0; i < 500'000; ++i)
    list += "\\\",";
  EXPECT_EQ(elements_of(list).size(), 500'000U);
}

TEST(FieldValues, CombineFieldsOfOneNameInOrder) {
  const Headers headers{{"Vary", "a "}, {"X", "y"}, {"vary", " b"}};
  EXPECT_EQ(combined(headers, "VARY"), "a, b");
  EXPECT_EQ(combined(headers, "Z"), std::nullopt);
  EXPECT_EQ(count_of(headers, "vary"), 2U);
}

TEST(FieldValues, OnlyValueRefusesARepeatedField) {
  EXPECT_EQ(only_value({{"A", " 1 "}}, "a"), "1");
  EXPECT_EQ(only_value({{"A", "1"}, {"a", "1"}}, "a"), std::nullopt);
  EXPECT_EQ(only_value({}, "a"), std::nullopt);
}

TEST(FieldValues, UnquotesExactlyOneQuotedString) {
  EXPECT_EQ(unquoted(R"("a\"b\\")"), R"(a"b\)");
  EXPECT_EQ(unquoted(R"("")"), "");
  EXPECT_EQ(unquoted(R"("a"b")"), std::nullopt);
  EXPECT_EQ(unquoted(R"("a)"), std::nullopt);
  EXPECT_EQ(unquoted(R"("a\")"), std::nullopt);
  EXPECT_EQ(unquoted("\""), std::nullopt);
  EXPECT_EQ(unquoted("a"), std::nullopt);
}

TEST(FieldValues, DigitsSaturateAndNothingElseIsANumber) {
  EXPECT_EQ(parse_digits("007"), 7U);
  EXPECT_EQ(parse_digits("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_digits("18446744073709551616"), UINT64_MAX);
  EXPECT_EQ(parse_digits("99999999999999999999999999", 5), 5U);
  EXPECT_EQ(parse_digits("6", 5), 5U);
  for (const char* text : {"", "-1", "+1", "1.0", " 1", "1 ", "0x1", "1e3"})
    EXPECT_EQ(parse_digits(text), std::nullopt) << text;
  EXPECT_EQ(parse_digits("99999999999999999999999999x"), std::nullopt);
}

TEST(EntityTag, IsQuotedWithAnUpperCaseWeaknessMark) {
  for (const char* tag : {R"("")", R"("a")", R"(W/"a,b")", "\"\xC3\xA9\""})
    EXPECT_TRUE(is_entity_tag(tag)) << tag;
  for (const char* tag : {"", "a", "W/", "W/a", R"(w/"a")", R"("a)", R"("a"b")", R"("a b")", "\""})
    EXPECT_FALSE(is_entity_tag(tag)) << tag;
}

TEST(EntityTag, StrongComparisonRefusesWeakTagsEvenOfEqualText) {
  EXPECT_TRUE(strongly_equal(R"("1")", R"("1")"));
  EXPECT_FALSE(strongly_equal(R"(W/"1")", R"(W/"1")"));
  EXPECT_FALSE(strongly_equal(R"(W/"1")", R"("1")"));
  EXPECT_FALSE(strongly_equal(R"("1")", R"(W/"1")"));
  EXPECT_TRUE(weakly_equal(R"(W/"1")", R"("1")"));
  EXPECT_TRUE(weakly_equal(R"(W/"1")", R"(W/"1")"));
  EXPECT_FALSE(weakly_equal(R"("1")", R"("2")"));
  EXPECT_FALSE(weakly_equal("1", "1"));
}

TEST(EventStream, IsTheOneTypeThatIsNamed) {
  for (const char* text : {"text/event-stream", " TEXT/event-stream ;charset=utf-8", "text/event-stream;q=1"})
    EXPECT_TRUE(is_event_stream(text)) << text;
  for (const char* text :
       {"", "text/html", "text/event-stream, text/html", "text/event-stream;q=1, */*", "*/*"})
    EXPECT_FALSE(is_event_stream(text)) << text;
}

TEST(Token, IsMadeOfItsCharactersOnly) {
  EXPECT_TRUE(is_token("x-a!#$%&'*+-.^_`|~09"));
  for (const char* text : {"", "a b", "a;", "a=", "\"a\"", "a\x80", "a:"})
    EXPECT_FALSE(is_token(text)) << text;
}

}  // namespace
}  // namespace facetheory
