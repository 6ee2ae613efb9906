#include <gmock/gmock.h>

#include "tests/conformance/table_suite.h"

namespace facetheory::test {
namespace {

using std::string_literals::operator""s;

class TableTypes : public TableSuite {
 protected:
  // What comes back when the value is stored.
  Value kept(Value value) {
    put({{"a", std::move(value)}});
    const std::optional<Attributes> attributes = stored();
    if (!attributes || attributes->find("a") == nullptr) {
      ADD_FAILURE() << "nothing was stored";
      return Null{};
    }
    EXPECT_EQ(attributes->size(), 1U);
    return *attributes->find("a");
  }
  // The text of a number after it was stored.
  std::string kept_number(std::string_view text) {
    const Value value = kept(number(text));
    const Number* back = value.as<Number>();
    return back == nullptr ? "no number" : back->text();
  }
};
INSTANTIATE_TEST_SUITE_P(Tables, TableTypes, testing::ValuesIn(backends()), backend_name);

TEST_P(TableTypes, StringsComeBackAsTheyWere) {
  EXPECT_EQ(kept("text"), Value("text"));
}
TEST_P(TableTypes, AStringMayBeEmpty) {
  EXPECT_EQ(kept(""), Value(""));
}
TEST_P(TableTypes, StringsKeepEveryCharacterOfUnicode) {
  const std::string odd = "é € 😀 \u00ad \u202e \uffff \x01\x1f\x7f \"\\/ \r\n\t"s + "\0"s;
  EXPECT_EQ(kept(odd), Value(odd));
}
TEST_P(TableTypes, StringsAreNotNormalised) {
  EXPECT_EQ(kept("e\u0301"), Value("e\u0301"));
  EXPECT_EQ(kept("\u00e9"), Value("\u00e9"));
}
TEST_P(TableTypes, BinariesKeepEveryByte) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes.push_back(static_cast<char>(byte));
  EXPECT_EQ(kept(Binary{bytes}), Value(Binary{bytes}));
}
TEST_P(TableTypes, BinariesOfEveryLengthComeBack) {
  for (const std::string& bytes : {"\xff"s, "\xff\xfe"s, "\xff\xfe\xfd"s, "\xff\xfe\xfd\xfc"s}) {
    EXPECT_EQ(kept(Binary{bytes}), Value(Binary{bytes}));
  }
}
TEST_P(TableTypes, ABinaryMayBeEmpty) {
  EXPECT_EQ(kept(Binary{""}), Value(Binary{""}));
}
TEST_P(TableTypes, TrueAndFalseAreDifferent) {
  EXPECT_EQ(kept(true), Value(true));
  EXPECT_EQ(kept(false), Value(false));
}
TEST_P(TableTypes, NullIsAValue) {
  EXPECT_EQ(kept(Null{}), Value(Null{}));
}
TEST_P(TableTypes, ListsKeepTheirOrderAndMayMixTypes) {
  const List list{"b", 2, "a", 1, Null{}, true, List{}, Attributes{}};
  EXPECT_EQ(kept(list), Value(list));
}
TEST_P(TableTypes, AListMayBeEmpty) {
  EXPECT_EQ(kept(List{}), Value(List{}));
}
TEST_P(TableTypes, MapsKeepWhatTheyHold) {
  const Attributes map{{"x", 1}, {"y", Attributes{{"z", List{"deep"}}}}};
  EXPECT_EQ(kept(map), Value(map));
}
TEST_P(TableTypes, AMapMayBeEmpty) {
  EXPECT_EQ(kept(Attributes{}), Value(Attributes{}));
}
TEST_P(TableTypes, InsideAMapPkAndSkAreOrdinaryNames) {
  const Attributes map{{"pk", 1}, {"sk", "x"}};
  EXPECT_EQ(kept(map), Value(map));
}
TEST_P(TableTypes, StringSetsComeBackWhole) {
  EXPECT_EQ(kept(StringSet{"b", "a", "é", ""}), Value(StringSet{"", "a", "b", "é"}));
}
TEST_P(TableTypes, NumberSetsComeBackWhole) {
  EXPECT_EQ(kept(NumberSet{10, 9, -1, number("0.5")}), Value(NumberSet{-1, number("0.5"), 9, 10}));
}
TEST_P(TableTypes, BinarySetsComeBackWhole) {
  const BinarySet set{Binary{"\xff"}, Binary{"\x00"s}, Binary{""}};
  EXPECT_EQ(kept(set), Value(set));
}
TEST_P(TableTypes, SetsMayStandInsideLists) {
  const List list{StringSet{"a"}, NumberSet{1, 2}, BinarySet{Binary{"b"}}};
  EXPECT_EQ(kept(list), Value(list));
}
TEST_P(TableTypes, AllTypesStandSideBySideInOneItem) {
  const Attributes all{{"S", "s"},
                       {"N", 1},
                       {"B", Binary{"b"}},
                       {"BOOL", true},
                       {"NULL", Null{}},
                       {"L", List{1}},
                       {"M", Attributes{{"k", 1}}},
                       {"SS", StringSet{"s"}},
                       {"NS", NumberSet{1}},
                       {"BS", BinarySet{Binary{"b"}}}};
  put(all);
  EXPECT_EQ(stored(), all);
}
TEST_P(TableTypes, ValuesMayNest31LevelsDeep) {
  Value value = "core";
  for (int i = 0; i < 31; ++i)
    value = i % 2 == 0 ? Value(List{value}) : Value(Attributes{{"k", value}});
  EXPECT_EQ(kept(value), value);
}
TEST_P(TableTypes, AttributeNamesMayBeAnyText) {
  const Attributes odd{{"status", 1},     {"ttl", 2}, {"a.b[0]", 3}, {"#n0", 4}, {":v0", 5},
                       {"with space", 6}, {"é😀", 7}, {"\"\\", 8},   {"\0"s, 9}, {"PK", 10}};
  put(odd);
  EXPECT_EQ(stored(), odd);
}
TEST_P(TableTypes, AttributeNamesMayBeLong) {
  const std::string name(40'000, 'n');
  put({{name, 1}});
  EXPECT_EQ(stored(), (Attributes{{name, 1}}));
}
TEST_P(TableTypes, NamesThatDifferOnlyInCaseAreDifferentAttributes) {
  put({{"a", 1}, {"A", 2}});
  EXPECT_EQ(stored(), (Attributes{{"A", 2}, {"a", 1}}));
}
TEST_P(TableTypes, AnItemMayHaveManyAttributes) {
  Attributes many;
  for (int i = 0; i < 1000; ++i)
    many.set("attribute-" + std::to_string(i), i);
  put(many);
  EXPECT_EQ(stored(), many);
}

TEST_P(TableTypes, IntegersComeBackAsTheyWere) {
  EXPECT_EQ(kept_number("0"), "0");
  EXPECT_EQ(kept_number("-17"), "-17");
  EXPECT_EQ(kept(std::numeric_limits<std::int64_t>::max()), Value(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(kept(std::numeric_limits<std::int64_t>::min()), Value(std::numeric_limits<std::int64_t>::min()));
}
TEST_P(TableTypes, MinusZeroIsZero) {
  EXPECT_EQ(kept_number("-0"), "0");
}
TEST_P(TableTypes, SuperfluousZerosOfNumbersGo) {
  EXPECT_EQ(kept_number("001.500"), "1.5");
  EXPECT_EQ(kept_number("100"), "100");
  EXPECT_EQ(kept_number("1.0"), "1");
}
TEST_P(TableTypes, ExponentsAreWrittenOut) {
  EXPECT_EQ(kept_number("1E3"), "1000");
  EXPECT_EQ(kept_number("1.5e-3"), "0.0015");
}
TEST_P(TableTypes, DecimalFractionsAreExact) {
  EXPECT_EQ(kept_number("0.1"), "0.1");
  EXPECT_EQ(kept_number("-3.14159"), "-3.14159");
}
TEST_P(TableTypes, NumbersKeep38Digits) {
  EXPECT_EQ(kept_number("12345678901234567890123456789012345678"), "12345678901234567890123456789012345678");
  EXPECT_EQ(kept_number("-0.12345678901234567890123456789012345678"),
            "-0.12345678901234567890123456789012345678");
}
TEST_P(TableTypes, ZerosAtTheEndDoNotCountAsDigits) {
  EXPECT_EQ(kept_number("123456789012345678901234567890123456780000"),
            "123456789012345678901234567890123456780000");
}
TEST_P(TableTypes, TheGreatestNumberComesBack) {
  const std::string greatest = std::string(38, '9') + std::string(88, '0');
  EXPECT_EQ(kept_number(greatest), greatest);
  EXPECT_EQ(kept_number("-" + greatest), "-" + greatest);
}
TEST_P(TableTypes, TheSmallestNumberComesBack) {
  EXPECT_EQ(kept_number("1e-130"), "0." + std::string(129, '0') + "1");
  EXPECT_EQ(kept_number("-1.234e-130"), "-0." + std::string(129, '0') + "1234");
}

TEST_P(TableTypes, AnItemOf409600BytesIsStored) {
  const std::size_t others = pk().size() + std::string_view(
                                               "pk"
                                               "item"
                                               "sk"
                                               "a")
                                               .size();
  const Attributes largest{{"a", std::string(409'600 - others, 'x')}};
  put(largest);
  EXPECT_EQ(stored(), largest);
}

}  // namespace
}  // namespace facetheory::test
