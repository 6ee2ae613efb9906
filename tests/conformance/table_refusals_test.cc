// What DynamoDB would refuse is `invalid` everywhere, changes nothing, and the message names the thing.
#include <gmock/gmock.h>

#include "tests/conformance/table_suite.h"

namespace facetheory::test {
namespace {

using std::string_literals::operator""s;
using testing::AllOf;
using testing::HasSubstr;

class TableRefusals : public TableSuite {
 protected:
  std::string refused_put(Attributes attributes) { return refusal(Put{item(std::move(attributes))}); }
  std::string refused_condition(Condition condition) {
    return refusal(Put{item({{"x", 1}}), std::move(condition)});
  }
  std::string refused_update(Changes changes) { return refusal(Update{key(), std::move(changes)}); }

  static Value nested(int levels, Value core) {
    for (int i = 0; i < levels; ++i)
      core = List{core};
    return core;
  }
};
INSTANTIATE_TEST_SUITE_P(Tables, TableRefusals, testing::ValuesIn(backends()), backend_name);

TEST_P(TableRefusals, AnEmptyPk) {
  EXPECT_THAT(refusal(Put{Item{{"", "s"}, {}}}), HasSubstr("pk"));
  EXPECT_THAT(refusal_of_get({"", "s"}), HasSubstr("pk"));
}
TEST_P(TableRefusals, AnEmptySk) {
  EXPECT_THAT(refusal(Put{Item{{pk(), ""}, {}}}), HasSubstr("sk"));
  EXPECT_THAT(refusal_of_get({pk(), ""}), HasSubstr("sk"));
}
TEST_P(TableRefusals, APkOf2049Bytes) {
  EXPECT_THAT(refusal(Put{Item{{std::string(2049, 'p'), "s"}, {}}}),
              AllOf(HasSubstr("pk"), HasSubstr("2048")));
  EXPECT_THAT(refusal_of_get({std::string(2049, 'p'), "s"}), AllOf(HasSubstr("pk"), HasSubstr("2048")));
}
TEST_P(TableRefusals, AnSkOf1025Bytes) {
  EXPECT_THAT(refusal(Put{item({}, std::string(1025, 's'))}), AllOf(HasSubstr("sk"), HasSubstr("1024")));
  EXPECT_THAT(refusal_of_get(key(std::string(1025, 's'))), AllOf(HasSubstr("sk"), HasSubstr("1024")));
}
TEST_P(TableRefusals, KeysAreMeasuredInBytesNotCharacters) {
  std::string sk;
  for (int i = 0; i < 513; ++i)
    sk += "é";
  EXPECT_THAT(refusal(Put{item({}, sk)}), HasSubstr("1024"));
  sk.resize(1024);
  put({}, sk);
  EXPECT_TRUE(stored(sk).has_value());
}
TEST_P(TableRefusals, ABadKeyInAnUpdateOrDelete) {
  EXPECT_THAT(refusal(Update{key(std::string(1025, 's')), Changes().set("a", 1)}), HasSubstr("sk"));
  EXPECT_THAT(refusal(Delete{{"", "s"}}), HasSubstr("pk"));
}
TEST_P(TableRefusals, AKeyThatIsNotUtf8) {
  EXPECT_THAT(refusal(Put{Item{{"\xff", "s"}, {}}}), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal(Put{Item{{pk(), "\xc0\x80"}, {}}}), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal_of_get({pk(), "\xed\xa0\x80"}), HasSubstr("UTF-8"));
}
TEST_P(TableRefusals, AStringThatIsNotUtf8) {
  EXPECT_THAT(refused_put({{"title", "\xff\xfe"}}), AllOf(HasSubstr("title"), HasSubstr("UTF-8")));
}
TEST_P(TableRefusals, AStringDeepInsideThatIsNotUtf8) {
  EXPECT_THAT(refused_put({{"title", List{Attributes{{"k", "a\xed\xa0\x80"}}}}}),
              AllOf(HasSubstr("title"), HasSubstr("UTF-8")));
}
TEST_P(TableRefusals, AStringInASetThatIsNotUtf8) {
  EXPECT_THAT(refused_put({{"tags", StringSet{"good", "\xf5\x80\x80\x80"}}}),
              AllOf(HasSubstr("tags"), HasSubstr("UTF-8")));
}
TEST_P(TableRefusals, AnAttributeNameThatIsNotUtf8) {
  EXPECT_THAT(refused_put({{"\xff", 1}}), HasSubstr("UTF-8"));
}
TEST_P(TableRefusals, AnEmptyAttributeName) {
  EXPECT_THAT(refused_put({{"", 1}}), HasSubstr("name"));
}
TEST_P(TableRefusals, AnEmptyNameInsideAMap) {
  EXPECT_THAT(refused_put({{"m", Attributes{{"", 1}}}}), HasSubstr("name"));
}
TEST_P(TableRefusals, AnAttributeNameOf65536Bytes) {
  EXPECT_THAT(refused_put({{std::string(65'536, 'n'), 1}}), HasSubstr("name"));
  EXPECT_THAT(refused_update(Changes().set(std::string(65'536, 'n'), 1)), HasSubstr("name"));
}
TEST_P(TableRefusals, AnItemThatSetsItsKeyAsAnAttribute) {
  EXPECT_THAT(refused_put({{"pk", "x"}}), HasSubstr("pk"));
  EXPECT_THAT(refused_put({{"sk", "x"}}), HasSubstr("sk"));
}
TEST_P(TableRefusals, AnEmptySet) {
  EXPECT_THAT(refused_put({{"tags", StringSet{}}}), HasSubstr("tags"));
  EXPECT_THAT(refused_put({{"tags", NumberSet{}}}), HasSubstr("tags"));
  EXPECT_THAT(refused_put({{"tags", BinarySet{}}}), HasSubstr("tags"));
}
TEST_P(TableRefusals, AnEmptySetInsideAList) {
  EXPECT_THAT(refused_put({{"tags", List{StringSet{}}}}), HasSubstr("tags"));
}
TEST_P(TableRefusals, AnItemOf409601Bytes) {
  const std::size_t others = pk().size() + std::string_view(
                                               "pk"
                                               "item"
                                               "sk"
                                               "a")
                                               .size();
  EXPECT_THAT(refused_put({{"a", std::string(409'601 - others, 'x')}}), HasSubstr("409600"));
}
TEST_P(TableRefusals, AnItemWhoseNamesMakeItTooLarge) {
  const std::size_t others = pk().size() + std::string_view(
                                               "pk"
                                               "item"
                                               "sk")
                                               .size();
  const std::string name(10'000, 'n');
  EXPECT_THAT(refused_put({{name, std::string(409'601 - others - name.size(), 'x')}}), HasSubstr("409600"));
}
TEST_P(TableRefusals, AnItemTooLargeByItsCollections) {
  const std::size_t others = pk().size() + std::string_view(
                                               "pk"
                                               "item"
                                               "sk"
                                               "a"
                                               "l")
                                               .size();
  // An empty list takes three bytes; each element one more than itself.
  const std::string fill(409'600 - others - 3, 'x');
  put({{"a", fill}, {"l", List{}}});
  EXPECT_THAT(refused_put({{"a", fill}, {"l", List{true}}}), HasSubstr("409600"));
  put({{"a", fill.substr(2)}, {"l", List{true}}});
}
TEST_P(TableRefusals, AnItemTooLargeByItsNumbers) {
  // A number takes a byte, another for a minus sign, and one for every two digits, in pairs from the decimal
  // point.
  const std::size_t others = pk().size() + std::string_view(
                                               "pk"
                                               "item"
                                               "sk"
                                               "a"
                                               "n")
                                               .size();
  const std::vector<std::pair<const char*, std::size_t>> sizes = {
      {"0", 1},     {"1", 2},       {"12", 2},
      {"100", 2},   {"120", 3},     {"1200", 2},
      {"1020", 3},  {"1.5", 3},     {"0.5", 2},
      {"-1", 3},    {"-123", 4},    {"1e125", 2},
      {"0.001", 2}, {"100.001", 5}, {"12345678901234567890123456789012345678", 20}};
  for (const auto& [text, bytes] : sizes) {
    const std::string fill(409'600 - others - bytes, 'x');
    put({{"a", fill}, {"n", number(text)}}, "item");
    EXPECT_THAT(refused_put({{"a", fill + "x"}, {"n", number(text)}}), HasSubstr("409600")) << text;
  }
}
TEST_P(TableRefusals, AValueNested32LevelsDeep) {
  EXPECT_THAT(refused_put({{"deep", nested(32, "core")}}), HasSubstr("deep"));
  EXPECT_THAT(refused_put({{"deep", nested(31, List{})}}), HasSubstr("deep"));
  EXPECT_THAT(refused_update(Changes().set("deep", nested(32, "core"))), HasSubstr("deep"));
}

TEST_P(TableRefusals, AnOrderOfBooleans) {
  EXPECT_THAT(refused_condition(attr("flag") < true), HasSubstr("flag"));
}
TEST_P(TableRefusals, AnOrderOfNulls) {
  EXPECT_THAT(refused_condition(attr("flag") >= Null{}), HasSubstr("flag"));
}
TEST_P(TableRefusals, AnOrderOfListsOrMaps) {
  EXPECT_THAT(refused_condition(attr("list") > List{1}), HasSubstr("list"));
  EXPECT_THAT(refused_condition(attr("map") <= Attributes{}), HasSubstr("map"));
}
TEST_P(TableRefusals, AnOrderOfSets) {
  EXPECT_THAT(refused_condition(attr("tags") < StringSet{"x"}), HasSubstr("tags"));
  EXPECT_THAT(refused_condition(attr("tags") > NumberSet{1}), HasSubstr("tags"));
  EXPECT_THAT(refused_condition(attr("tags") > BinarySet{Binary{"x"}}), HasSubstr("tags"));
}
TEST_P(TableRefusals, BetweenWithItsBoundsTheWrongWayRound) {
  EXPECT_THAT(refused_condition(attr("age").between(10, 9)), HasSubstr("age"));
  EXPECT_THAT(refused_condition(attr("age").between("b", "a")), HasSubstr("age"));
  EXPECT_THAT(refused_condition(attr("age").between(Binary{"b"}, Binary{"a"})), HasSubstr("age"));
}
TEST_P(TableRefusals, BetweenWithBoundsOfDifferentTypes) {
  EXPECT_THAT(refused_condition(attr("age").between(1, "9")), HasSubstr("age"));
}
TEST_P(TableRefusals, BetweenOfWhatHasNoOrder) {
  EXPECT_THAT(refused_condition(attr("age").between(false, true)), HasSubstr("age"));
  EXPECT_THAT(refused_condition(attr("age").between(List{}, List{})), HasSubstr("age"));
}
TEST_P(TableRefusals, InWithoutValues) {
  EXPECT_THAT(refused_condition(attr("color").in({})), HasSubstr("color"));
}
TEST_P(TableRefusals, InWith101Values) {
  EXPECT_THAT(refused_condition(attr("color").in(std::vector<Value>(101, 1))),
              AllOf(HasSubstr("color"), HasSubstr("100")));
}
TEST_P(TableRefusals, BeginsWithANumber) {
  EXPECT_THAT(refused_condition(attr("title").begins_with(1)), HasSubstr("title"));
  EXPECT_THAT(refused_condition(attr("title").begins_with(StringSet{"a"})), HasSubstr("title"));
}
TEST_P(TableRefusals, AConditionWithAnEmptySet) {
  EXPECT_THAT(refused_condition(attr("tags") == StringSet{}), HasSubstr("tags"));
  EXPECT_THAT(refused_condition(attr("tags").contains(NumberSet{})), HasSubstr("tags"));
}
TEST_P(TableRefusals, AConditionWithTextThatIsNotUtf8) {
  EXPECT_THAT(refused_condition(attr("title") == "\xff"), AllOf(HasSubstr("title"), HasSubstr("UTF-8")));
  EXPECT_THAT(refused_condition(attr("\xff").exists()), HasSubstr("UTF-8"));
}
TEST_P(TableRefusals, AConditionOnAnEmptyName) {
  EXPECT_THAT(refused_condition(attr("") == 1), HasSubstr("name"));
  EXPECT_THAT(refused_condition(attr("").not_exists()), HasSubstr("name"));
  EXPECT_THAT(refused_condition(attr("").size() == 1), HasSubstr("name"));
}
TEST_P(TableRefusals, ABadConditionDeepInsideAGoodOne) {
  EXPECT_THAT(refused_condition(attr("a") == 1 || (attr("b") == 2 && !(attr("flag") < true))),
              HasSubstr("flag"));
}
TEST_P(TableRefusals, ABadConditionOfADeleteOrUpdate) {
  put({{"x", 1}});
  EXPECT_THAT(refusal(Delete{key(), attr("flag") < true}), HasSubstr("flag"));
  EXPECT_THAT(refusal(Update{key(), Changes().set("x", 2), attr("flag") < true}), HasSubstr("flag"));
}
TEST_P(TableRefusals, AJunctionOfNothing) {
  EXPECT_NE(refused_condition(Condition(Condition::And{})), "");
  EXPECT_NE(refused_condition(Condition(Condition::Or{})), "");
}
TEST_P(TableRefusals, AConditionOf151Comparisons) {
  Condition condition = attr("a") == 0;
  for (int i = 1; i < 151; ++i)
    condition = std::move(condition) || attr("a") == i;
  EXPECT_THAT(refused_condition(condition), HasSubstr("operator"));
}
TEST_P(TableRefusals, AConditionWhoseTextIsTooLong) {
  std::vector<Value> values(100, 1);
  Condition condition = attr("a").in(values);
  for (int i = 1; i < 9; ++i)
    condition = std::move(condition) || attr("a").in(values);
  EXPECT_THAT(refused_condition(condition), HasSubstr("expression"));
}

TEST_P(TableRefusals, AnUpdateThatNamesAnAttributeTwice) {
  EXPECT_THAT(refused_update(Changes().set("count", 1).set("count", 2)), HasSubstr("count"));
  EXPECT_THAT(refused_update(Changes().set("count", 1).remove("count")), HasSubstr("count"));
  EXPECT_THAT(refused_update(Changes().increment("count", 1).set_if_absent("count", 0)), HasSubstr("count"));
}
TEST_P(TableRefusals, AnUpdateOfTheKey) {
  EXPECT_THAT(refused_update(Changes().set("pk", pk())), HasSubstr("pk"));
  EXPECT_THAT(refused_update(Changes().remove("sk")), HasSubstr("sk"));
  EXPECT_THAT(refused_update(Changes().increment("pk", 1)), HasSubstr("pk"));
}
TEST_P(TableRefusals, AnUpdateWithAnEmptyName) {
  EXPECT_THAT(refused_update(Changes().set("", 1)), HasSubstr("name"));
  EXPECT_THAT(refused_update(Changes().remove("")), HasSubstr("name"));
}
TEST_P(TableRefusals, AnUpdateWithAnEmptySet) {
  EXPECT_THAT(refused_update(Changes().set("tags", StringSet{})), HasSubstr("tags"));
  EXPECT_THAT(refused_update(Changes().add_to_set("tags", StringSet{})), HasSubstr("tags"));
  EXPECT_THAT(refused_update(Changes().remove_from_set("tags", NumberSet{})), HasSubstr("tags"));
}
TEST_P(TableRefusals, AddingToASetWhatIsNoSet) {
  EXPECT_THAT(refused_update(Changes().add_to_set("tags", "x")), HasSubstr("tags"));
  EXPECT_THAT(refused_update(Changes().add_to_set("tags", List{"x"})), HasSubstr("tags"));
  EXPECT_THAT(refused_update(Changes().add_to_set("tags", 1)), HasSubstr("tags"));
}
TEST_P(TableRefusals, RemovingFromASetWhatIsNoSet) {
  EXPECT_THAT(refused_update(Changes().remove_from_set("tags", "x")), HasSubstr("tags"));
  EXPECT_THAT(refused_update(Changes().remove_from_set("tags", 1)), HasSubstr("tags"));
}
TEST_P(TableRefusals, AnUpdateWithTextThatIsNotUtf8) {
  EXPECT_THAT(refused_update(Changes().set("title", "\xff")), AllOf(HasSubstr("title"), HasSubstr("UTF-8")));
  EXPECT_THAT(refused_update(Changes().set_if_absent("title", "\xff")),
              AllOf(HasSubstr("title"), HasSubstr("UTF-8")));
}
TEST_P(TableRefusals, AnUpdateWhoseTextIsTooLong) {
  Changes changes;
  for (int i = 0; i < 400; ++i)
    changes.set("attribute-" + std::to_string(i), i);
  EXPECT_THAT(refused_update(changes), HasSubstr("expression"));
}

TEST_P(TableRefusals, ATransactionOfNothing) {
  EXPECT_THAT(refusal(std::vector<TransactItem>{}), HasSubstr("transaction"));
}
TEST_P(TableRefusals, ATransactionOf101Items) {
  std::vector<TransactItem> items;
  for (int i = 0; i < 101; ++i)
    items.push_back(Put{item({}, "item-" + std::to_string(i))});
  EXPECT_THAT(refusal(std::move(items), token(), "item-0"), AllOf(HasSubstr("101"), HasSubstr("100")));
}
TEST_P(TableRefusals, ATransactionThatNamesAnItemTwice) {
  EXPECT_THAT(refusal({Put{item({}, "twice")}, Delete{key("twice")}}, token(), "twice"), HasSubstr("twice"));
}
TEST_P(TableRefusals, ATransactionThatChecksAnItemAndWritesIt) {
  put({{"n", 1}}, "twice");
  EXPECT_THAT(refusal({Check{key("twice"), attr("n") == 1}, Delete{key("twice")}}, token(), "twice"),
              HasSubstr("twice"));
}
TEST_P(TableRefusals, ACheckWithoutACondition) {
  EXPECT_THAT(refusal({Check{key(), Condition()}}, token()), HasSubstr("check"));
}
TEST_P(TableRefusals, ATransactionOfMoreThan4MiB) {
  std::vector<TransactItem> items;
  for (int i = 0; i < 11; ++i)
    items.push_back(Put{item({{"a", std::string(400'000, 'x')}}, "item-" + std::to_string(i))});
  EXPECT_THAT(refusal(std::move(items), token(), "item-0"), HasSubstr("ransaction"));
}
TEST_P(TableRefusals, ATransactionOfMoreThan4MiBInUpdates) {
  std::vector<TransactItem> items;
  for (int i = 0; i < 11; ++i) {
    items.push_back(
        Update{key("item-" + std::to_string(i)), Changes().set_if_absent("a", std::string(400'000, 'x'))});
  }
  EXPECT_THAT(refusal(std::move(items), token(), "item-0"), HasSubstr("ransaction"));
}
TEST_P(TableRefusals, ATransactionOfMoreThan4MiBInConditions) {
  std::vector<TransactItem> items;
  for (int i = 0; i < 11; ++i) {
    items.push_back(Check{key("item-" + std::to_string(i)), attr("a") != std::string(400'000, 'x')});
  }
  EXPECT_THAT(refusal(std::move(items), token(), "item-0"), HasSubstr("ransaction"));
}
TEST_P(TableRefusals, ABadItemInATransaction) {
  EXPECT_THAT(refusal({Put{item({}, "good")}, Put{item({{"tags", StringSet{}}})}}, token(), "good"),
              HasSubstr("tags"));
  EXPECT_THAT(refusal({Put{item({}, "good")}, Delete{key(), attr("flag") < true}}, token(), "good"),
              HasSubstr("flag"));
  EXPECT_THAT(refusal({Put{item({}, "good")}, Check{{"", "s"}, attr("a") == 1}}, token(), "good"),
              HasSubstr("pk"));
}
TEST_P(TableRefusals, AClientTokenOf37Characters) {
  EXPECT_THAT(refusal({Put{item({})}}, std::string(37, 't')), AllOf(HasSubstr("token"), HasSubstr("36")));
}
TEST_P(TableRefusals, AnEmptyClientToken) {
  EXPECT_THAT(refusal({Put{item({})}}, std::string()), HasSubstr("token"));
}

TEST_P(TableRefusals, AQueryOfAnEmptyPk) {
  EXPECT_THAT(refusal(Query{.pk = ""}), HasSubstr("pk"));
}
TEST_P(TableRefusals, AQueryOfAnOversizedPk) {
  EXPECT_THAT(refusal(Query{.pk = std::string(2049, 'p')}), HasSubstr("2048"));
}
TEST_P(TableRefusals, AQueryWithAnOversizedPrefix) {
  EXPECT_THAT(refusal(Query{.pk = pk(), .sk_prefix = std::string(1025, 's')}), HasSubstr("1024"));
}
TEST_P(TableRefusals, AQueryThatIsNotUtf8) {
  EXPECT_THAT(refusal(Query{.pk = "\xff"}), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal(Query{.pk = pk(), .sk_prefix = "\xff"}), HasSubstr("UTF-8"));
}
TEST_P(TableRefusals, AQueryThatGoesOnOutsideOfItsPrefix) {
  EXPECT_THAT(refusal(Query{.pk = pk(), .sk_prefix = "VER#", .after = "META"}), HasSubstr("VER#"));
  EXPECT_THAT(refusal(Query{.pk = pk(), .sk_prefix = "VER#", .direction = Direction::backward, .after = "Z"}),
              HasSubstr("VER#"));
}
TEST_P(TableRefusals, AQueryThatGoesOnAfterNothing) {
  EXPECT_THAT(refusal(Query{.pk = pk(), .after = ""}), HasSubstr("sk"));
}
TEST_P(TableRefusals, AQueryForAPageOfNoItems) {
  EXPECT_THAT(refusal(Query{.pk = pk(), .limit = 0}), HasSubstr("1000"));
}
TEST_P(TableRefusals, AQueryForAPageOf1001Items) {
  EXPECT_THAT(refusal(Query{.pk = pk(), .limit = 1001}), AllOf(HasSubstr("1001"), HasSubstr("1000")));
}
TEST_P(TableRefusals, AScanForAPageOfNoItems) {
  EXPECT_THAT(refusal(Scan{.limit = 0}), HasSubstr("1000"));
}
TEST_P(TableRefusals, AScanForAPageOf1001Items) {
  EXPECT_THAT(refusal(Scan{.limit = 1001}), HasSubstr("1001"));
}
TEST_P(TableRefusals, AScanThatGoesOnAfterABadKey) {
  EXPECT_THAT(refusal(Scan{.after = Key{"", "s"}}), HasSubstr("pk"));
  EXPECT_THAT(refusal(Scan{.after = Key{"p", std::string(1025, 's')}}), HasSubstr("1024"));
}

}  // namespace
}  // namespace facetheory::test
