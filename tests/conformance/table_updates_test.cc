#include <gmock/gmock.h>

#include "tests/conformance/table_suite.h"

namespace facetheory::test {
namespace {

class TableUpdates : public TableSuite {
 protected:
  // Refuses the changes on an item with these attributes, and leaves it as it is.
  std::string refused_on(Attributes before, Changes changes) {
    put(before);
    return refusal(Update{key(), std::move(changes)});
  }
};
INSTANTIATE_TEST_SUITE_P(Tables, TableUpdates, testing::ValuesIn(backends()), backend_name);

TEST_P(TableUpdates, SetReplacesAnAttributeAndKeepsTheOthers) {
  EXPECT_EQ(updated({{"a", 1}, {"b", 2}}, Changes().set("a", "x")), (Attributes{{"a", "x"}, {"b", 2}}));
}
TEST_P(TableUpdates, SetAddsAnAttributeThatWasNotThere) {
  EXPECT_EQ(updated({{"b", 2}}, Changes().set("a", 1)), (Attributes{{"a", 1}, {"b", 2}}));
}
TEST_P(TableUpdates, AnUpdateOfAnAbsentItemMakesIt) {
  EXPECT_EQ(updated_absent(Changes().set("a", 1)), (Attributes{{"a", 1}}));
}
TEST_P(TableUpdates, AnUpdateThatOnlyRemovesStillMakesAnAbsentItem) {
  EXPECT_EQ(updated_absent(Changes().remove("a")), Attributes());
}
TEST_P(TableUpdates, AnUpdateThatOnlyRemovesFromASetStillMakesAnAbsentItem) {
  EXPECT_EQ(updated_absent(Changes().remove_from_set("a", StringSet{"x"})), Attributes());
}
TEST_P(TableUpdates, AnUpdateWithoutChangesStillMakesAnAbsentItem) {
  EXPECT_EQ(updated_absent({}), Attributes());
  EXPECT_EQ(updated({{"a", 1}}, {}), (Attributes{{"a", 1}}));
}
TEST_P(TableUpdates, SetTakesValuesOfEveryType) {
  const Attributes all{{"S", ""},
                       {"N", number("1.5")},
                       {"B", Binary{"\xff"}},
                       {"BOOL", false},
                       {"NULL", Null{}},
                       {"L", List{1, "x"}},
                       {"M", Attributes{{"k", 1}}},
                       {"SS", StringSet{"s"}},
                       {"NS", NumberSet{1}},
                       {"BS", BinarySet{Binary{"b"}}}};
  Changes changes;
  for (const Attribute& attribute : all)
    changes.set(attribute.name, attribute.value);
  EXPECT_EQ(updated_absent(changes), all);
}
TEST_P(TableUpdates, SetIfAbsentSetsWhatIsNotThere) {
  EXPECT_EQ(updated({}, Changes().set_if_absent("a", 1)), (Attributes{{"a", 1}}));
  EXPECT_EQ(updated_absent(Changes().set_if_absent("a", 1)), (Attributes{{"a", 1}}));
}
TEST_P(TableUpdates, SetIfAbsentKeepsWhatIsThere) {
  EXPECT_EQ(updated({{"a", "old"}}, Changes().set_if_absent("a", 1)), (Attributes{{"a", "old"}}));
}
TEST_P(TableUpdates, SetIfAbsentCountsANullAsPresent) {
  EXPECT_EQ(updated({{"a", Null{}}}, Changes().set_if_absent("a", 1)), (Attributes{{"a", Null{}}}));
}
TEST_P(TableUpdates, RemoveTakesAnAttributeAway) {
  EXPECT_EQ(updated({{"a", 1}, {"b", 2}}, Changes().remove("a")), (Attributes{{"b", 2}}));
}
TEST_P(TableUpdates, RemovingAnAbsentAttributeIsNoError) {
  EXPECT_EQ(updated({{"b", 2}}, Changes().remove("a")), (Attributes{{"b", 2}}));
}

TEST_P(TableUpdates, IncrementAddsToANumber) {
  EXPECT_EQ(updated({{"n", 40}}, Changes().increment("n", 2)), (Attributes{{"n", 42}}));
}
TEST_P(TableUpdates, IncrementCountsAnAbsentAttributeAsZero) {
  EXPECT_EQ(updated({}, Changes().increment("n", 5)), (Attributes{{"n", 5}}));
  EXPECT_EQ(updated_absent(Changes().increment("n", -5)), (Attributes{{"n", -5}}));
}
TEST_P(TableUpdates, IncrementBelowZeroAndBackToZero) {
  EXPECT_EQ(updated({{"n", 5}}, Changes().increment("n", -8)), (Attributes{{"n", -3}}));
  EXPECT_EQ(updated({{"n", number("1.5")}}, Changes().increment("n", number("-1.5"))),
            (Attributes{{"n", 0}}));
}
TEST_P(TableUpdates, IncrementIsExactInDecimal) {
  EXPECT_EQ(updated({{"n", number("0.2")}}, Changes().increment("n", number("0.1"))),
            (Attributes{{"n", number("0.3")}}));
}
TEST_P(TableUpdates, IncrementMayCarryInto39PlacesWhen38DigitsSuffice) {
  EXPECT_EQ(updated({{"n", number(std::string(38, '9'))}}, Changes().increment("n", 1)),
            (Attributes{{"n", number("1e38")}}));
  EXPECT_EQ(updated({{"n", number("1e37")}}, Changes().increment("n", 1)),
            (Attributes{{"n", number("10000000000000000000000000000000000001")}}));
}
TEST_P(TableUpdates, AnIncrementThatNeeds39DigitsIsRefusedNotRounded) {
  EXPECT_THAT(refused_on({{"n", number(std::string(38, '9'))}}, Changes().increment("n", 2)),
              testing::HasSubstr("38"));
}
TEST_P(TableUpdates, AnIncrementOfAGreatNumberByATinyOneIsRefused) {
  EXPECT_THAT(refused_on({{"n", 1}}, Changes().increment("n", number("1e-130"))), testing::HasSubstr("38"));
}
TEST_P(TableUpdates, AnIncrementBeyondTheGreatestNumberIsRefused) {
  EXPECT_NE(refused_on({{"n", number("9.9e125")}}, Changes().increment("n", number("9.9e125"))), "");
}
TEST_P(TableUpdates, AnIncrementThatLeavesLessThanTheSmallestNumberIsRefused) {
  EXPECT_NE(refused_on({{"n", number("1.1e-130")}}, Changes().increment("n", number("-1e-130"))), "");
}
TEST_P(TableUpdates, IncrementingAStringIsRefused) {
  EXPECT_NE(refused_on({{"n", "5"}}, Changes().increment("n", 1)), "");
}
TEST_P(TableUpdates, IncrementingANullIsRefused) {
  EXPECT_NE(refused_on({{"n", Null{}}}, Changes().increment("n", 1)), "");
}
TEST_P(TableUpdates, IncrementingASetOfNumbersIsRefused) {
  EXPECT_NE(refused_on({{"n", NumberSet{1}}}, Changes().increment("n", 1)), "");
}

TEST_P(TableUpdates, AddToSetMakesTheSet) {
  EXPECT_EQ(updated({}, Changes().add_to_set("s", StringSet{"a"})), (Attributes{{"s", StringSet{"a"}}}));
  EXPECT_EQ(updated_absent(Changes().add_to_set("s", NumberSet{1})), (Attributes{{"s", NumberSet{1}}}));
}
TEST_P(TableUpdates, AddToSetUnitesTheElements) {
  EXPECT_EQ(updated({{"s", StringSet{"a", "b"}}}, Changes().add_to_set("s", StringSet{"b", "c"})),
            (Attributes{{"s", StringSet{"a", "b", "c"}}}));
  EXPECT_EQ(updated({{"s", BinarySet{Binary{"a"}}}}, Changes().add_to_set("s", BinarySet{Binary{"b"}})),
            (Attributes{{"s", BinarySet{Binary{"a"}, Binary{"b"}}}}));
}
TEST_P(TableUpdates, AddToSetKnowsEqualNumbers) {
  EXPECT_EQ(updated({{"s", NumberSet{1}}}, Changes().add_to_set("s", NumberSet{number("1.0"), 2})),
            (Attributes{{"s", NumberSet{1, 2}}}));
}
TEST_P(TableUpdates, AddingASetToAnotherTypeOfSetIsRefused) {
  EXPECT_NE(refused_on({{"s", StringSet{"a"}}}, Changes().add_to_set("s", NumberSet{1})), "");
}
TEST_P(TableUpdates, AddingASetToANumberIsRefused) {
  EXPECT_NE(refused_on({{"s", 1}}, Changes().add_to_set("s", NumberSet{1})), "");
}
TEST_P(TableUpdates, AddingASetToAListIsRefused) {
  EXPECT_NE(refused_on({{"s", List{"a"}}}, Changes().add_to_set("s", StringSet{"b"})), "");
}
TEST_P(TableUpdates, RemoveFromSetTakesElementsAway) {
  EXPECT_EQ(updated({{"s", StringSet{"a", "b"}}}, Changes().remove_from_set("s", StringSet{"a", "z"})),
            (Attributes{{"s", StringSet{"b"}}}));
  EXPECT_EQ(updated({{"s", NumberSet{1, 2}}}, Changes().remove_from_set("s", NumberSet{number("1.0")})),
            (Attributes{{"s", NumberSet{2}}}));
}
TEST_P(TableUpdates, ASetGoesAwayWithItsLastElement) {
  EXPECT_EQ(updated({{"s", StringSet{"a", "b"}}, {"n", 1}},
                    Changes().remove_from_set("s", StringSet{"a", "b", "c"})),
            (Attributes{{"n", 1}}));
}
TEST_P(TableUpdates, RemovingFromAnAbsentSetIsNoError) {
  EXPECT_EQ(updated({{"n", 1}}, Changes().remove_from_set("s", StringSet{"a"})), (Attributes{{"n", 1}}));
}
TEST_P(TableUpdates, RemovingFromAnotherTypeOfSetIsRefused) {
  EXPECT_NE(refused_on({{"s", StringSet{"1"}}}, Changes().remove_from_set("s", NumberSet{1})), "");
}
TEST_P(TableUpdates, RemovingASetFromAStringIsRefused) {
  EXPECT_NE(refused_on({{"s", "a"}}, Changes().remove_from_set("s", StringSet{"a"})), "");
}

TEST_P(TableUpdates, AllKindsOfChangesMayStandInOneUpdate) {
  EXPECT_EQ(
      updated({{"inc", 1}, {"gone", 1}, {"more", StringSet{"x"}}, {"less", StringSet{"x", "y"}}, {"kept", 1}},
              Changes()
                  .set("set", 1)
                  .increment("inc", 1)
                  .remove("gone")
                  .add_to_set("more", StringSet{"y"})
                  .remove_from_set("less", StringSet{"y"})
                  .set_if_absent("kept", 2)
                  .set_if_absent("fresh", 3)),
      (Attributes{{"set", 1},
                  {"inc", 2},
                  {"more", StringSet{"x", "y"}},
                  {"less", StringSet{"x"}},
                  {"kept", 1},
                  {"fresh", 3}}));
}
TEST_P(TableUpdates, ReservedWordsAndOddNamesCanBeChanged) {
  EXPECT_EQ(
      updated({{"status", "a"}, {"a.b", 1}}, Changes().set("status", "b").increment("a.b", 1).remove("ttl")),
      (Attributes{{"status", "b"}, {"a.b", 2}}));
}
TEST_P(TableUpdates, AnUpdateHappensOnlyWhenItsConditionHolds) {
  put({{"version", 1}});
  const Condition first = attr("version") == 1;
  const Update update{key(), Changes().increment("version", 1), first};
  EXPECT_TRUE(std::holds_alternative<Written>(write(update)));
  EXPECT_TRUE(std::holds_alternative<ConditionFailed>(write(update)));
  EXPECT_EQ(stored(), (Attributes{{"version", 2}}));
}
TEST_P(TableUpdates, TheConditionIsJudgedOnWhatWasStoredBefore) {
  put({{"n", 1}});
  EXPECT_TRUE(std::holds_alternative<Written>(write(Update{key(), Changes().set("n", 2), attr("n") == 1})));
}
TEST_P(TableUpdates, AFailedConditionComesBeforeTheWrongTypeOfAnAttribute) {
  put({{"n", "text"}});
  const WriteOutcome outcome = write(Update{key(), Changes().increment("n", 1), attr("pk").not_exists()});
  ASSERT_TRUE(std::holds_alternative<ConditionFailed>(outcome));
  EXPECT_EQ(std::get<ConditionFailed>(outcome).stored, item({{"n", "text"}}));
}
TEST_P(TableUpdates, OneBadChangeUndoesTheGoodOnesBesideIt) {
  EXPECT_NE(refused_on({{"n", "text"}, {"m", 1}}, Changes().set("m", 2).increment("n", 1)), "");
}
TEST_P(TableUpdates, AnUpdateThatWouldMakeTheItemTooLargeIsRefused) {
  put({{"a", std::string(300'000, 'x')}});
  EXPECT_NE(refusal(Update{key(), Changes().set("b", std::string(200'000, 'y'))}), "");
}
TEST_P(TableUpdates, AnUpdateMayFillTheItemToTheLastByte) {
  const std::size_t others = pk().size() + std::string_view(
                                               "pk"
                                               "item"
                                               "sk"
                                               "a"
                                               "b")
                                               .size();
  put({{"a", std::string(200'000, 'x')}});
  const std::string rest(409'600 - 200'000 - others, 'y');
  EXPECT_NE(refusal(Update{key(), Changes().set("b", rest + "y")}), "");
  update(Changes().set("b", rest));
  EXPECT_EQ(stored()->find("b")->as<std::string>()->size(), rest.size());
}

}  // namespace
}  // namespace facetheory::test
