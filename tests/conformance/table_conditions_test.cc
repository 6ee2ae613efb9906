#include <gmock/gmock.h>

#include "tests/conformance/table_suite.h"

namespace facetheory::test {
namespace {

using std::string_literals::operator""s;

class TableConditions : public TableSuite {};
INSTANTIATE_TEST_SUITE_P(Tables, TableConditions, testing::ValuesIn(backends()), backend_name);

TEST_P(TableConditions, StringsAreEqualByteForByte) {
  EXPECT_TRUE(holds({{"a", "x"}}, attr("a") == "x"));
  EXPECT_FALSE(holds({{"a", "x"}}, attr("a") == "X"));
  EXPECT_FALSE(holds({{"a", "\u00e9"}}, attr("a") == "e\u0301"));
}
TEST_P(TableConditions, StringsAreOrderedByTheirBytes) {
  EXPECT_TRUE(holds({{"a", "Z"}}, attr("a") < "a"));
  EXPECT_TRUE(holds({{"a", "a"}}, attr("a") < "ab"));
  EXPECT_TRUE(holds({{"a", ""}}, attr("a") < "a"));
  EXPECT_TRUE(holds({{"a", "z"}}, attr("a") < "é"));
}
TEST_P(TableConditions, StringsAreNotOrderedAsUtf16Would) {
  EXPECT_TRUE(holds({{"a", "\uff61"}}, attr("a") < "\U00010000"));
  EXPECT_FALSE(holds({{"a", "\uff61"}}, attr("a") > "\U00010000"));
}
TEST_P(TableConditions, BinariesAreOrderedByUnsignedBytes) {
  EXPECT_TRUE(holds({{"a", Binary{"\x7f"}}}, attr("a") < Binary{"\x80"}));
  EXPECT_TRUE(holds({{"a", Binary{"a"}}}, attr("a") < Binary{"a\0"s}));
}
TEST_P(TableConditions, NumbersAreEqualByValueHoweverWritten) {
  EXPECT_TRUE(holds({{"a", number("1.0")}}, attr("a") == 1));
  EXPECT_TRUE(holds({{"a", number("1e2")}}, attr("a") == 100));
  EXPECT_TRUE(holds({{"a", number("-0")}}, attr("a") == 0));
  EXPECT_FALSE(holds({{"a", number("1.0")}}, attr("a") != 1));
}
TEST_P(TableConditions, NumbersAreOrderedAsNumbersNotAsText) {
  EXPECT_TRUE(holds({{"a", 9}}, attr("a") < 10));
  EXPECT_TRUE(holds({{"a", -10}}, attr("a") < -9));
  EXPECT_TRUE(holds({{"a", number("0.5")}}, attr("a") < 1));
  EXPECT_TRUE(holds({{"a", -1}}, attr("a") < number("1e-130")));
}
TEST_P(TableConditions, NumbersThatDifferInThe38thDigitAreDifferent) {
  const Number lower = number("12345678901234567890123456789012345677");
  const Number higher = number("12345678901234567890123456789012345678");
  EXPECT_TRUE(holds({{"a", lower}}, attr("a") < higher));
  EXPECT_FALSE(holds({{"a", lower}}, attr("a") == higher));
}
TEST_P(TableConditions, LessIsStrictAndLessOrEqualIsNot) {
  EXPECT_FALSE(holds({{"a", 5}}, attr("a") < 5));
  EXPECT_TRUE(holds({{"a", 5}}, attr("a") <= 5));
  EXPECT_TRUE(holds({{"a", 4}}, attr("a") <= 5));
  EXPECT_FALSE(holds({{"a", 6}}, attr("a") <= 5));
}
TEST_P(TableConditions, GreaterIsStrictAndGreaterOrEqualIsNot) {
  EXPECT_FALSE(holds({{"a", 5}}, attr("a") > 5));
  EXPECT_TRUE(holds({{"a", 5}}, attr("a") >= 5));
  EXPECT_TRUE(holds({{"a", 6}}, attr("a") > 5));
  EXPECT_FALSE(holds({{"a", 4}}, attr("a") >= 5));
}
TEST_P(TableConditions, BooleansAndNullsCanBeEqual) {
  EXPECT_TRUE(holds({{"a", true}}, attr("a") == true));
  EXPECT_FALSE(holds({{"a", true}}, attr("a") == false));
  EXPECT_TRUE(holds({{"a", Null{}}}, attr("a") == Null{}));
}
TEST_P(TableConditions, ListsAreEqualInOrder) {
  EXPECT_TRUE(holds({{"a", List{1, "x"}}}, attr("a") == List{number("1.0"), "x"}));
  EXPECT_FALSE(holds({{"a", List{1, 2}}}, attr("a") == List{2, 1}));
  EXPECT_TRUE(holds({{"a", List{}}}, attr("a") == List{}));
}
TEST_P(TableConditions, MapsAreEqualByContent) {
  EXPECT_TRUE(holds({{"a", Attributes{{"x", 1}, {"y", 2}}}},
                    attr("a") == Attributes{{"y", 2}, {"x", number("1.00")}}));
  EXPECT_FALSE(holds({{"a", Attributes{{"x", 1}}}}, attr("a") == Attributes{{"x", 1}, {"y", 2}}));
}
TEST_P(TableConditions, SetsAreEqualWithoutRegardToOrder) {
  EXPECT_TRUE(holds({{"a", StringSet{"x", "y"}}}, attr("a") == StringSet{"y", "x"}));
  EXPECT_TRUE(holds({{"a", NumberSet{1, 2}}}, attr("a") == NumberSet{number("2.0"), number("1e0")}));
  EXPECT_TRUE(
      holds({{"a", BinarySet{Binary{"x"}, Binary{"y"}}}}, attr("a") == BinarySet{Binary{"y"}, Binary{"x"}}));
  EXPECT_FALSE(holds({{"a", NumberSet{1, 2}}}, attr("a") == NumberSet{1}));
}
TEST_P(TableConditions, ValuesOfDifferentTypesAreNotEqual) {
  EXPECT_FALSE(holds({{"a", "1"}}, attr("a") == 1));
  EXPECT_FALSE(holds({{"a", "x"}}, attr("a") == Binary{"x"}));
  EXPECT_FALSE(holds({{"a", StringSet{"x"}}}, attr("a") == "x"));
  EXPECT_TRUE(holds({{"a", "1"}}, attr("a") != 1));
}
TEST_P(TableConditions, NoOrderHoldsBetweenValuesOfDifferentTypes) {
  EXPECT_FALSE(holds({{"a", "1"}}, attr("a") < 2));
  EXPECT_FALSE(holds({{"a", "1"}}, attr("a") >= 2));
  EXPECT_FALSE(holds({{"a", true}}, attr("a") > 0));
  EXPECT_FALSE(holds({{"a", List{1}}}, attr("a") <= "x"));
}
TEST_P(TableConditions, AnAbsentAttributeFailsEveryComparisonButNotEqual) {
  EXPECT_FALSE(holds({}, attr("a") == 1));
  EXPECT_FALSE(holds({}, attr("a") < 1));
  EXPECT_FALSE(holds({}, attr("a") <= 1));
  EXPECT_FALSE(holds({}, attr("a") > 1));
  EXPECT_FALSE(holds({}, attr("a") >= 1));
  EXPECT_TRUE(holds({}, attr("a") != 1));
}
TEST_P(TableConditions, AnAbsentItemFailsEveryComparisonButNotEqual) {
  EXPECT_FALSE(holds_of_absent(attr("a") == 1));
  EXPECT_FALSE(holds_of_absent(attr("a") <= 1));
  EXPECT_TRUE(holds_of_absent(attr("a") != 1));
  EXPECT_TRUE(holds_of_absent(attr("a") != Null{}));
}
TEST_P(TableConditions, TheNegationOfAComparisonWithAnAbsentAttributeHolds) {
  EXPECT_TRUE(holds({}, !(attr("a") < 1)));
  EXPECT_TRUE(holds({{"a", "text"}}, !(attr("a") < 1)));
  EXPECT_FALSE(holds({}, !(attr("a") != 1)));
}

TEST_P(TableConditions, ExistsMeansThatTheAttributeIsThere) {
  EXPECT_TRUE(holds({{"a", ""}}, attr("a").exists()));
  EXPECT_FALSE(holds({{"b", 1}}, attr("a").exists()));
  EXPECT_FALSE(holds_of_absent(attr("a").exists()));
}
TEST_P(TableConditions, NotExistsMeansThatItIsNot) {
  EXPECT_FALSE(holds({{"a", 1}}, attr("a").not_exists()));
  EXPECT_TRUE(holds({{"b", 1}}, attr("a").not_exists()));
  EXPECT_TRUE(holds_of_absent(attr("a").not_exists()));
}
TEST_P(TableConditions, AnAttributeThatIsNullExists) {
  EXPECT_TRUE(holds({{"a", Null{}}}, attr("a").exists()));
  EXPECT_FALSE(holds({{"a", Null{}}}, attr("a").not_exists()));
}
TEST_P(TableConditions, PkAndSkExistExactlyWhenTheItemDoes) {
  EXPECT_TRUE(holds({}, attr("pk").exists() && attr("sk").exists()));
  EXPECT_TRUE(holds_of_absent(attr("pk").not_exists() && attr("sk").not_exists()));
}
TEST_P(TableConditions, PkAndSkCompareAsStrings) {
  put({}, "k");
  EXPECT_TRUE(
      std::holds_alternative<Written>(write(Put{item({}, "k"), attr("sk") == "k" && attr("pk") == pk()})));
  EXPECT_TRUE(std::holds_alternative<Written>(write(Put{item({}, "k"), attr("sk").begins_with("k")})));
  EXPECT_TRUE(std::holds_alternative<ConditionFailed>(write(Put{item({}, "k"), attr("sk") > "k"})));
  EXPECT_FALSE(holds_of_absent(attr("pk") == pk()));
  EXPECT_TRUE(holds_of_absent(attr("pk") != pk()));
}
TEST_P(TableConditions, ATypeCanBeAskedFor) {
  EXPECT_TRUE(holds({{"a", "x"}}, attr("a").has_type(Type::string)));
  EXPECT_FALSE(holds({{"a", "1"}}, attr("a").has_type(Type::number)));
  EXPECT_FALSE(holds({}, attr("a").has_type(Type::string)));
}
TEST_P(TableConditions, EveryTypeCanBeAskedFor) {
  const std::vector<Value> values{"s",          1,
                                  Binary{"b"},  true,
                                  Null{},       List{},
                                  Attributes{}, StringSet{"s"},
                                  NumberSet{1}, BinarySet{Binary{"b"}}};
  for (const Value& value : values) {
    EXPECT_TRUE(holds({{"a", value}}, attr("a").has_type(value.type()))) << to_string(value);
    const Type other = value.type() == Type::map ? Type::list : Type::map;
    EXPECT_FALSE(holds({{"a", value}}, attr("a").has_type(other))) << to_string(value);
  }
}

TEST_P(TableConditions, BetweenIncludesItsBounds) {
  EXPECT_TRUE(holds({{"a", 1}}, attr("a").between(1, 10)));
  EXPECT_TRUE(holds({{"a", 10}}, attr("a").between(1, 10)));
  EXPECT_TRUE(holds({{"a", 5}}, attr("a").between(5, number("5.0"))));
  EXPECT_FALSE(holds({{"a", 11}}, attr("a").between(1, 10)));
  EXPECT_FALSE(holds({{"a", 0}}, attr("a").between(1, 10)));
}
TEST_P(TableConditions, BetweenWorksForStringsAndBinaries) {
  EXPECT_TRUE(holds({{"a", "bb"}}, attr("a").between("b", "c")));
  EXPECT_FALSE(holds({{"a", "ca"}}, attr("a").between("b", "c")));
  EXPECT_TRUE(holds({{"a", Binary{"\x80"}}}, attr("a").between(Binary{"\x7f"}, Binary{"\xff"})));
}
TEST_P(TableConditions, BetweenIsFalseForAnotherTypeOrNone) {
  EXPECT_FALSE(holds({{"a", "5"}}, attr("a").between(1, 10)));
  EXPECT_FALSE(holds({}, attr("a").between(1, 10)));
  EXPECT_TRUE(holds({}, !attr("a").between(1, 10)));
}
TEST_P(TableConditions, BetweenMayStandBesideOtherConditions) {
  EXPECT_TRUE(holds({{"a", 5}, {"b", 1}}, attr("a").between(1, 10) && attr("b") == 1));
  EXPECT_TRUE(holds({{"a", 50}, {"b", 1}}, attr("a").between(1, 10) || attr("b") == 1));
}

TEST_P(TableConditions, InHoldsForOneOfItsValues) {
  EXPECT_TRUE(holds({{"a", 2}}, attr("a").in({1, 2, 3})));
  EXPECT_FALSE(holds({{"a", 4}}, attr("a").in({1, 2, 3})));
  EXPECT_FALSE(holds({}, attr("a").in({1, 2, 3})));
}
TEST_P(TableConditions, InMayMixTypesAndComparesNumbersByValue) {
  EXPECT_TRUE(holds({{"a", 1}}, attr("a").in({"1", number("1.0")})));
  EXPECT_FALSE(holds({{"a", 1}}, attr("a").in({"1", true})));
  EXPECT_TRUE(holds({{"a", StringSet{"x"}}}, attr("a").in({1, StringSet{"x"}})));
  EXPECT_TRUE(holds({{"a", Null{}}}, attr("a").in({1, Null{}})));
}
TEST_P(TableConditions, InTakes100Values) {
  std::vector<Value> values;
  for (int i = 1; i <= 100; ++i)
    values.emplace_back(i);
  EXPECT_TRUE(holds({{"a", 100}}, attr("a").in(values)));
  EXPECT_FALSE(holds({{"a", 101}}, attr("a").in(values)));
}

TEST_P(TableConditions, BeginsWithLooksAtTheFirstBytes) {
  EXPECT_TRUE(holds({{"a", "abc"}}, attr("a").begins_with("ab")));
  EXPECT_TRUE(holds({{"a", "abc"}}, attr("a").begins_with("abc")));
  EXPECT_FALSE(holds({{"a", "abc"}}, attr("a").begins_with("abcd")));
  EXPECT_FALSE(holds({{"a", "abc"}}, attr("a").begins_with("b")));
}
TEST_P(TableConditions, EverythingBeginsWithNothing) {
  EXPECT_TRUE(holds({{"a", "abc"}}, attr("a").begins_with("")));
  EXPECT_TRUE(holds({{"a", Binary{"abc"}}}, attr("a").begins_with(Binary{""})));
  EXPECT_FALSE(holds({}, attr("a").begins_with("")));
}
TEST_P(TableConditions, BeginsWithWorksForBinaries) {
  EXPECT_TRUE(holds({{"a", Binary{"\x00\xff"s}}}, attr("a").begins_with(Binary{"\x00"s})));
  EXPECT_FALSE(holds({{"a", Binary{"\x00\xff"s}}}, attr("a").begins_with(Binary{"\xff"})));
}
TEST_P(TableConditions, BeginsWithIsFalseForAnotherType) {
  EXPECT_FALSE(holds({{"a", Binary{"abc"}}}, attr("a").begins_with("ab")));
  EXPECT_FALSE(holds({{"a", "abc"}}, attr("a").begins_with(Binary{"ab"})));
  EXPECT_FALSE(holds({{"a", 12}}, attr("a").begins_with("1")));
  EXPECT_FALSE(holds({{"a", StringSet{"abc"}}}, attr("a").begins_with("ab")));
}

TEST_P(TableConditions, AStringContainsItsParts) {
  EXPECT_TRUE(holds({{"a", "abc"}}, attr("a").contains("b")));
  EXPECT_TRUE(holds({{"a", "abc"}}, attr("a").contains("")));
  EXPECT_FALSE(holds({{"a", "abc"}}, attr("a").contains("ac")));
  EXPECT_FALSE(holds({{"a", "abc"}}, attr("a").contains("abcd")));
}
TEST_P(TableConditions, ABinaryContainsItsParts) {
  EXPECT_TRUE(holds({{"a", Binary{"a\0b"s}}}, attr("a").contains(Binary{"\0"s})));
  EXPECT_FALSE(holds({{"a", Binary{"abc"}}}, attr("a").contains("b")));
}
TEST_P(TableConditions, AListContainsItsElementsWhateverTheirType) {
  const Attributes item{{"a", List{1, "x", List{2}, Attributes{{"k", 3}}, StringSet{"s"}, Null{}, true}}};
  EXPECT_TRUE(holds(item, attr("a").contains(number("1.0"))));
  EXPECT_TRUE(holds(item, attr("a").contains("x")));
  EXPECT_TRUE(holds(item, attr("a").contains(List{2})));
  EXPECT_TRUE(holds(item, attr("a").contains(Attributes{{"k", 3}})));
  EXPECT_TRUE(holds(item, attr("a").contains(StringSet{"s"})));
  EXPECT_TRUE(holds(item, attr("a").contains(Null{})));
  EXPECT_FALSE(holds(item, attr("a").contains("1")));
  EXPECT_FALSE(holds(item, attr("a").contains(2)));
}
TEST_P(TableConditions, ASetContainsItsElements) {
  EXPECT_TRUE(holds({{"a", StringSet{"x", "y"}}}, attr("a").contains("y")));
  EXPECT_TRUE(holds({{"a", NumberSet{1, 2}}}, attr("a").contains(number("1.0"))));
  EXPECT_TRUE(holds({{"a", BinarySet{Binary{"x"}}}}, attr("a").contains(Binary{"x"})));
}
TEST_P(TableConditions, ASetContainsNeitherPartsOfElementsNorOtherSets) {
  EXPECT_FALSE(holds({{"a", StringSet{"abc"}}}, attr("a").contains("b")));
  EXPECT_FALSE(holds({{"a", StringSet{"x"}}}, attr("a").contains(StringSet{"x"})));
  EXPECT_FALSE(holds({{"a", NumberSet{1}}}, attr("a").contains("1")));
}
TEST_P(TableConditions, WhatHasNoElementsContainsNothing) {
  EXPECT_FALSE(holds({{"a", 1}}, attr("a").contains(1)));
  EXPECT_FALSE(holds({{"a", true}}, attr("a").contains(true)));
  EXPECT_FALSE(holds({{"a", Null{}}}, attr("a").contains(Null{})));
  EXPECT_FALSE(holds({{"a", Attributes{{"k", 1}}}}, attr("a").contains("k")));
  EXPECT_FALSE(holds({}, attr("a").contains("x")));
}

TEST_P(TableConditions, TheSizeOfAStringIsCountedInUtf16Units) {
  EXPECT_TRUE(holds({{"a", "abc"}}, attr("a").size() == 3));
  EXPECT_TRUE(holds({{"a", ""}}, attr("a").size() == 0));
  EXPECT_TRUE(holds({{"a", "é€"}}, attr("a").size() == 2));
  EXPECT_TRUE(holds({{"a", "😀"}}, attr("a").size() == 2));
}
TEST_P(TableConditions, TheSizeOfABinaryIsItsBytes) {
  EXPECT_TRUE(holds({{"a", Binary{"a\0b"s}}}, attr("a").size() == 3));
}
TEST_P(TableConditions, TheSizeOfACollectionIsItsElements) {
  EXPECT_TRUE(holds({{"a", List{1, List{2, 3}}}}, attr("a").size() == 2));
  EXPECT_TRUE(holds({{"a", Attributes{{"k", 1}}}}, attr("a").size() == 1));
  EXPECT_TRUE(holds({{"a", StringSet{"x", "y", "z"}}}, attr("a").size() == 3));
  EXPECT_TRUE(holds({{"a", NumberSet{1, 2}}}, attr("a").size() == 2));
  EXPECT_TRUE(holds({{"a", BinarySet{Binary{"x"}}}}, attr("a").size() == 1));
}
TEST_P(TableConditions, SizesCompareInEveryWay) {
  const Attributes item{{"a", "abc"}};
  EXPECT_TRUE(holds(item, attr("a").size() < 4));
  EXPECT_FALSE(holds(item, attr("a").size() < 3));
  EXPECT_TRUE(holds(item, attr("a").size() <= 3));
  EXPECT_TRUE(holds(item, attr("a").size() > -1));
  EXPECT_FALSE(holds(item, attr("a").size() > 3));
  EXPECT_TRUE(holds(item, attr("a").size() >= 3));
  EXPECT_TRUE(holds(item, attr("a").size() != 4));
  EXPECT_FALSE(holds(item, attr("a").size() != 3));
}
TEST_P(TableConditions, WhatHasNoSizeFailsEveryComparisonButNotEqual) {
  EXPECT_FALSE(holds({{"a", 12345}}, attr("a").size() >= 0));
  EXPECT_FALSE(holds({{"a", true}}, attr("a").size() == 1));
  EXPECT_FALSE(holds({{"a", Null{}}}, attr("a").size() < 10));
  EXPECT_TRUE(holds({{"a", 12345}}, attr("a").size() != 99));
}
TEST_P(TableConditions, AnAbsentAttributeHasNoSize) {
  EXPECT_FALSE(holds({}, attr("a").size() == 0));
  EXPECT_FALSE(holds({}, attr("a").size() < 1));
  EXPECT_TRUE(holds({}, attr("a").size() != 0));
  EXPECT_FALSE(holds_of_absent(attr("a").size() >= 0));
}

TEST_P(TableConditions, AndNeedsAllOfItsParts) {
  const Attributes item{{"a", 1}, {"b", 2}, {"c", 3}};
  EXPECT_TRUE(holds(item, attr("a") == 1 && attr("b") == 2 && attr("c") == 3));
  EXPECT_FALSE(holds(item, attr("a") == 1 && attr("b") == 2 && attr("c") == 4));
  EXPECT_FALSE(holds(item, attr("a") == 0 && attr("b") == 2 && attr("c") == 3));
}
TEST_P(TableConditions, OrNeedsOneOfItsParts) {
  const Attributes item{{"a", 1}, {"b", 2}};
  EXPECT_TRUE(holds(item, attr("a") == 0 || attr("b") == 2));
  EXPECT_TRUE(holds(item, attr("a") == 1 || attr("missing") == 2));
  EXPECT_FALSE(holds(item, attr("a") == 0 || attr("b") == 0));
}
TEST_P(TableConditions, NotTurnsAnyConditionAround) {
  const Attributes item{{"a", 1}, {"b", 2}};
  EXPECT_FALSE(holds(item, !(attr("a") == 1)));
  EXPECT_TRUE(holds(item, !!(attr("a") == 1)));
  EXPECT_TRUE(holds(item, !(attr("a") == 1 && attr("b") == 1)));
  EXPECT_FALSE(holds(item, !(attr("a") == 1 || attr("b") == 1)));
}
TEST_P(TableConditions, AndOrAndNotMayBeNested) {
  const Attributes item{{"a", 1}, {"b", 2}, {"c", 3}};
  EXPECT_TRUE(holds(item, (attr("a") == 0 || attr("b") == 2) && (attr("c") == 3 || attr("a") == 9)));
  EXPECT_FALSE(holds(item, (attr("a") == 0 || attr("b") == 2) && attr("c") == 4));
  EXPECT_TRUE(holds(item, attr("a") == 1 || (attr("b") == 9 && attr("c") == 9)));
  EXPECT_TRUE(holds(item, !(attr("a") == 0) && !(!(attr("b") == 2))));
}
TEST_P(TableConditions, AndBindsTheWayItWasBuiltNotTheWayItIsWritten) {
  // (true || true) && false is false; true || (true && false) is true.
  const Attributes item{{"a", 1}};
  const Condition yes = attr("a") == 1;
  const Condition no = attr("a") == 2;
  EXPECT_FALSE(holds(item, (yes || yes) && no));
  EXPECT_TRUE(holds(item, yes || (yes && no)));
}
TEST_P(TableConditions, AJunctionOfOneIsThatOne) {
  EXPECT_TRUE(holds({{"a", 1}}, Condition(Condition::And{{attr("a") == 1}})));
  EXPECT_FALSE(holds({{"a", 1}}, Condition(Condition::Or{{attr("a") == 2}})));
  EXPECT_TRUE(holds({{"a", 1}},
                    Condition(Condition::And{{Condition(Condition::Or{{attr("a") == 1}}), attr("a") < 2}})));
}
TEST_P(TableConditions, NoConditionAlwaysHolds) {
  EXPECT_TRUE(holds({{"a", 1}}, Condition()));
  EXPECT_TRUE(holds_of_absent(Condition()));
}
TEST_P(TableConditions, ReservedWordsAreOrdinaryNames) {
  EXPECT_TRUE(holds({{"status", "x"}, {"ttl", 5}, {"size", 1}},
                    attr("status") == "x" && attr("ttl") > 4 && attr("size") == 1));
}
TEST_P(TableConditions, DotsAndBracketsInNamesAreNoPaths) {
  EXPECT_TRUE(
      holds({{"a.b", 1}, {"a", Attributes{{"b", 2}}}, {"l[0]", 3}}, attr("a.b") == 1 && attr("l[0]") == 3));
}
TEST_P(TableConditions, AConditionMayHave150Comparisons) {
  Condition condition = attr("a") == 0;
  for (int i = 1; i < 150; ++i)
    condition = std::move(condition) || attr("a") == i;
  EXPECT_TRUE(holds({{"a", 149}}, condition));
  EXPECT_FALSE(holds({{"a", 150}}, condition));
}
TEST_P(TableConditions, TheLeaseRuleOfTheProtocolReadsAsWritten) {
  const Condition free =
      attr("pk").not_exists() || attr("lease_expires_at").not_exists() || attr("lease_expires_at") <= 100;
  EXPECT_TRUE(holds_of_absent(free));
  EXPECT_TRUE(holds({{"lease_token", "t"}}, free));
  EXPECT_TRUE(holds({{"lease_token", "t"}, {"lease_expires_at", 100}}, free));
  EXPECT_FALSE(holds({{"lease_token", "t"}, {"lease_expires_at", 101}}, free));
  EXPECT_FALSE(holds({{"lease_token", "t"}, {"lease_expires_at", "soon"}}, free));
}

}  // namespace
}  // namespace facetheory::test
