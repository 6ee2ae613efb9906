#include <gmock/gmock.h>

#include "tests/conformance/table_suite.h"
#include "tests/support/run.h"

namespace facetheory::test {
namespace {

class TableReadsAndWrites : public TableSuite {};
INSTANTIATE_TEST_SUITE_P(Tables, TableReadsAndWrites, testing::ValuesIn(backends()), backend_name);

TEST_P(TableReadsAndWrites, AMissingItemIsAnEmptyAnswerAndNoError) {
  const auto found = run(table().get(key(), Consistency::strong));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found, std::nullopt);
}

TEST_P(TableReadsAndWrites, AStrongReadSeesThePutBeforeIt) {
  put({{"a", "1"}});
  EXPECT_EQ(stored(), (Attributes{{"a", "1"}}));
}

TEST_P(TableReadsAndWrites, AnEventualReadFindsAnItemOnceItIsThere) {
  put({{"a", "1"}});
  const auto found = run(table().get(key(), Consistency::eventual));
  ASSERT_TRUE(found.has_value());
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->attributes, (Attributes{{"a", "1"}}));
}

TEST_P(TableReadsAndWrites, SeveralItemsAreReadInTheOrderOfTheirKeysAndEmptyWhereThereIsNone) {
  put({{"n", 1}}, "a");
  put({{"n", 2}}, "b");
  for (const Consistency consistency : {Consistency::strong, Consistency::eventual}) {
    std::vector<Key> keys{key("b"), key("absent"), {pk("other"), "a"}, key("a")};
    const auto found = run(table().get_all(std::move(keys), consistency));
    ASSERT_TRUE(found.has_value()) << to_string(found.error());
    ASSERT_EQ(found->size(), 4U);
    EXPECT_EQ((*found)[0], item({{"n", 2}}, "b"));
    EXPECT_EQ((*found)[1], std::nullopt);
    EXPECT_EQ((*found)[2], std::nullopt);
    EXPECT_EQ((*found)[3], item({{"n", 1}}, "a"));
  }
}

TEST_P(TableReadsAndWrites, AKeyThatIsAskedForTwiceIsAnsweredTwice) {
  put({{"n", 1}}, "a");
  std::vector<Key> keys{key("a"), key("absent"), key("a"), key("absent")};
  const auto found = run(table().get_all(std::move(keys), Consistency::strong));
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  ASSERT_EQ(found->size(), 4U);
  EXPECT_EQ((*found)[0], item({{"n", 1}}, "a"));
  EXPECT_EQ((*found)[1], std::nullopt);
  EXPECT_EQ((*found)[2], item({{"n", 1}}, "a"));
  EXPECT_EQ((*found)[3], std::nullopt);
}

TEST_P(TableReadsAndWrites, OfNoKeysThereIsNothingToReadAndOfOneItIsAsWithGet) {
  const auto none = run(table().get_all({}, Consistency::strong));
  ASSERT_TRUE(none.has_value()) << to_string(none.error());
  EXPECT_TRUE(none->empty());
  put({{"a", "1"}});
  std::vector<Key> keys{key()};
  const auto one = run(table().get_all(std::move(keys), Consistency::strong));
  ASSERT_TRUE(one.has_value()) << to_string(one.error());
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ((*one)[0], item({{"a", "1"}}));
}

TEST_P(TableReadsAndWrites, MoreItemsAreReadAtOnceThanDynamoDbAnswersInOneRequest) {
  std::vector<Key> keys;
  for (int i = 0; i < 230; ++i) {
    const std::string sk = "item " + std::to_string(i);
    if (i % 3 == 0) put({{"n", i}}, sk);
    keys.push_back(key(sk));
  }
  const auto found = run(table().get_all(std::move(keys), Consistency::strong));
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  ASSERT_EQ(found->size(), 230U);
  for (int i = 0; i < 230; ++i) {
    const auto expected =
        i % 3 == 0 ? std::optional(item({{"n", i}}, "item " + std::to_string(i))) : std::nullopt;
    EXPECT_EQ((*found)[static_cast<std::size_t>(i)], expected) << i;
  }
}

TEST_P(TableReadsAndWrites, OneBadKeyAmongSeveralIsRefused) {
  std::vector<Key> keys{key("a"), {pk(), ""}};
  const auto found = run(table().get_all(std::move(keys), Consistency::strong));
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::invalid);
}

TEST_P(TableReadsAndWrites, AnItemCarriesItsKeyBesideItsAttributes) {
  put({{"a", "1"}});
  const auto found = run(table().get(key(), Consistency::strong));
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->key, key());
  EXPECT_EQ((*found)->attributes.find("pk"), nullptr);
  EXPECT_EQ((*found)->attributes.find("sk"), nullptr);
}

TEST_P(TableReadsAndWrites, AnItemMayHaveNoAttributesAtAll) {
  put({});
  EXPECT_EQ(stored(), Attributes());
}

TEST_P(TableReadsAndWrites, APutReplacesTheWholeItem) {
  put({{"a", "1"}, {"b", "2"}});
  put({{"b", "3"}, {"c", "4"}});
  EXPECT_EQ(stored(), (Attributes{{"b", "3"}, {"c", "4"}}));
}

TEST_P(TableReadsAndWrites, ADeleteRemovesTheItem) {
  put({{"a", "1"}});
  EXPECT_TRUE(std::holds_alternative<Written>(write(Delete{key()})));
  EXPECT_EQ(stored(), std::nullopt);
}

TEST_P(TableReadsAndWrites, ADeleteOfAnAbsentItemIsNoError) {
  EXPECT_TRUE(std::holds_alternative<Written>(write(Delete{key()})));
}

TEST_P(TableReadsAndWrites, ADeleteLeavesItsNeighboursAlone) {
  put({{"n", 1}}, "a");
  put({{"n", 2}}, "aa");
  put({{"n", 3}}, "b");
  write(Delete{key("aa")});
  EXPECT_EQ(stored("a"), (Attributes{{"n", 1}}));
  EXPECT_EQ(stored("aa"), std::nullopt);
  EXPECT_EQ(stored("b"), (Attributes{{"n", 3}}));
}

TEST_P(TableReadsAndWrites, KeysThatJoinToTheSameTextAreDifferentItems) {
  const Key one{pk("x"), "yz"};
  const Key two{pk("xy"), "z"};
  write(Put{Item{one, {{"n", 1}}}});
  write(Put{Item{two, {{"n", 2}}}});
  const auto first = run(table().get(one, Consistency::strong));
  const auto second = run(table().get(two, Consistency::strong));
  ASSERT_TRUE(first.has_value() && first->has_value() && second.has_value() && second->has_value());
  EXPECT_EQ((*first)->attributes, (Attributes{{"n", 1}}));
  EXPECT_EQ((*second)->attributes, (Attributes{{"n", 2}}));
}

TEST_P(TableReadsAndWrites, AConditionalPutHappensWhenItsConditionHolds) {
  put({{"token", "mine"}});
  const WriteOutcome outcome = write(Put{item({{"token", "next"}}), attr("token") == "mine"});
  EXPECT_TRUE(std::holds_alternative<Written>(outcome));
  EXPECT_EQ(stored(), (Attributes{{"token", "next"}}));
}

TEST_P(TableReadsAndWrites, AFailedPutBringsBackTheStoredItemAndWritesNothing) {
  put({{"token", "theirs"}, {"n", 1}});
  const WriteOutcome outcome = write(Put{item({{"token", "next"}}), attr("token") == "mine"});
  const auto* failed = std::get_if<ConditionFailed>(&outcome);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->stored, item({{"token", "theirs"}, {"n", 1}}));
  EXPECT_EQ(stored(), (Attributes{{"token", "theirs"}, {"n", 1}}));
}

TEST_P(TableReadsAndWrites, AFailedUpdateBringsBackTheStoredItemAndWritesNothing) {
  put({{"token", "theirs"}});
  const WriteOutcome outcome = write(Update{key(), Changes().set("n", 5), attr("token") == "mine"});
  const auto* failed = std::get_if<ConditionFailed>(&outcome);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->stored, item({{"token", "theirs"}}));
  EXPECT_EQ(stored(), (Attributes{{"token", "theirs"}}));
}

TEST_P(TableReadsAndWrites, AFailedDeleteBringsBackTheStoredItemAndKeepsIt) {
  put({{"token", "theirs"}});
  const WriteOutcome outcome = write(Delete{key(), attr("token") == "mine"});
  const auto* failed = std::get_if<ConditionFailed>(&outcome);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->stored, item({{"token", "theirs"}}));
  EXPECT_EQ(stored(), (Attributes{{"token", "theirs"}}));
}

TEST_P(TableReadsAndWrites, AConditionThatFailsOnAnAbsentItemBringsNothingBack) {
  const WriteOutcome outcome = write(Update{key(), Changes().set("n", 5), attr("pk").exists()});
  const auto* failed = std::get_if<ConditionFailed>(&outcome);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->stored, std::nullopt);
  EXPECT_EQ(stored(), std::nullopt);
}

TEST_P(TableReadsAndWrites, ADeleteOfAnAbsentItemStillJudgesItsCondition) {
  const WriteOutcome outcome = write(Delete{key(), attr("token") == "mine"});
  ASSERT_TRUE(std::holds_alternative<ConditionFailed>(outcome));
  EXPECT_EQ(std::get<ConditionFailed>(outcome).stored, std::nullopt);
}

TEST_P(TableReadsAndWrites, AConditionalDeleteHappensWhenItsConditionHolds) {
  put({{"token", "mine"}});
  EXPECT_TRUE(std::holds_alternative<Written>(write(Delete{key(), attr("token") == "mine"})));
  EXPECT_EQ(stored(), std::nullopt);
}

TEST_P(TableReadsAndWrites, OnlyTheFirstOfTwoPutsUnderNotExistsHappens) {
  const Condition absent = attr("pk").not_exists();
  EXPECT_TRUE(std::holds_alternative<Written>(write(Put{item({{"by", "first"}}), absent})));
  EXPECT_TRUE(std::holds_alternative<ConditionFailed>(write(Put{item({{"by", "second"}}), absent})));
  EXPECT_EQ(stored(), (Attributes{{"by", "first"}}));
}

TEST_P(TableReadsAndWrites, OfManySimultaneousPutsUnderNotExistsExactlyOneHappens) {
  std::vector<Task<Result<WriteOutcome>>> attempts;
  for (int i = 0; i < 16; ++i) {
    attempts.push_back(table().write(Put{item({{"by", i}}), attr("pk").not_exists()}, Durability::process));
  }
  int winners = 0;
  for (const Result<WriteOutcome>& outcome : run_all(std::move(attempts))) {
    ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
    if (std::holds_alternative<Written>(*outcome)) ++winners;
  }
  EXPECT_EQ(winners, 1);
}

TEST_P(TableReadsAndWrites, SimultaneousIncrementsAllCount) {
  std::vector<Task<Result<WriteOutcome>>> increments;
  for (int i = 0; i < 32; ++i) {
    increments.push_back(table().write(Update{key(), Changes().increment("n", 1)}, Durability::machine));
  }
  for (const Result<WriteOutcome>& outcome : run_all(std::move(increments))) {
    ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  }
  EXPECT_EQ(stored(), (Attributes{{"n", 32}}));
}

TEST_P(TableReadsAndWrites, AWriteThatNeedNotSurvivePowerLossIsReadBackAtOnce) {
  ASSERT_TRUE(run(table().write(Put{item({{"lease", "x"}})}, Durability::process)).has_value());
  EXPECT_EQ(stored(), (Attributes{{"lease", "x"}}));
}

TEST_P(TableReadsAndWrites, KeysOfTheGreatestLengthWork) {
  Key longest{pk(), std::string(1024, 's')};
  longest.pk.resize(2048, 'p');
  write(Put{Item{longest, {{"n", 1}}}});
  const auto found = run(table().get(longest, Consistency::strong));
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->key, longest);
  write(Delete{longest});
  EXPECT_EQ(*run(table().get(longest, Consistency::strong)), std::nullopt);
}

TEST_P(TableReadsAndWrites, LongKeysThatDifferInTheirLastByteAreDifferentItems) {
  const std::string stem(1023, 's');
  put({{"n", 1}}, stem + "a");
  put({{"n", 2}}, stem + "b");
  EXPECT_EQ(stored(stem + "a"), (Attributes{{"n", 1}}));
  EXPECT_EQ(stored(stem + "b"), (Attributes{{"n", 2}}));
  EXPECT_EQ(stored(stem + "c"), std::nullopt);
  EXPECT_EQ(stored(stem), std::nullopt);
}

TEST_P(TableReadsAndWrites, KeysMayHoldZeroBytesAndAnyUnicode) {
  using std::string_literals::operator""s;
  const std::vector<std::string> sks = {"\0"s,         "a\0b"s, "a\0"s, "a", "é€😀", "#?&=/ \"\\\n\x7f",
                                        "\xef\xbf\xbf"};
  for (std::size_t i = 0; i < sks.size(); ++i)
    put({{"n", i}}, sks[i]);
  for (std::size_t i = 0; i < sks.size(); ++i)
    EXPECT_EQ(stored(sks[i]), (Attributes{{"n", i}})) << i;
}

TEST_P(TableReadsAndWrites, TheTableCanBeMadeAgainWithoutHarm) {
  put({{"a", "1"}});
  const Result<void> made = run(table().create());
  ASSERT_TRUE(made.has_value()) << to_string(made.error());
  EXPECT_EQ(stored(), (Attributes{{"a", "1"}}));
}

TEST_P(TableReadsAndWrites, TheTableDescribesItself) {
  const Result<TableDescription> description = run(table().describe());
  ASSERT_TRUE(description.has_value()) << to_string(description.error());
  EXPECT_EQ(description->status, "ACTIVE");
  const std::string kind = GetParam().name.substr(0, GetParam().name.find('_'));
  EXPECT_THAT(description->uri, testing::StartsWith(kind + ":"));
}

}  // namespace
}  // namespace facetheory::test
