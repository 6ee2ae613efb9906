#include <gmock/gmock.h>

#include "tests/conformance/table_suite.h"
#include "tests/support/run.h"

namespace facetheory::test {
namespace {

class TableTransactions : public TableSuite {
 protected:
  static bool committed(const TransactOutcome& outcome) { return std::holds_alternative<Committed>(outcome); }

  // The reasons of a cancelled transaction; fails the test when it was committed.
  static std::vector<std::optional<ConditionFailed>> reasons(TransactOutcome outcome) {
    if (auto* cancelled = std::get_if<Cancelled>(&outcome)) return std::move(cancelled->reasons);
    ADD_FAILURE() << "was committed";
    return {};
  }
};
INSTANTIATE_TEST_SUITE_P(Tables, TableTransactions, testing::ValuesIn(backends()), backend_name);

TEST_P(TableTransactions, PutsUpdatesAndDeletesHappenTogether) {
  put({{"n", 1}}, "updated");
  put({{"n", 1}}, "deleted");
  ASSERT_TRUE(
      committed(transact({Put{item({{"n", 5}}, "put")}, Update{key("updated"), Changes().increment("n", 1)},
                          Delete{key("deleted")}})));
  EXPECT_EQ(stored("put"), (Attributes{{"n", 5}}));
  EXPECT_EQ(stored("updated"), (Attributes{{"n", 2}}));
  EXPECT_EQ(stored("deleted"), std::nullopt);
}
TEST_P(TableTransactions, ATransactionMayHoldOneItem) {
  ASSERT_TRUE(committed(transact({Put{item({{"n", 1}})}})));
  EXPECT_EQ(stored(), (Attributes{{"n", 1}}));
}
TEST_P(TableTransactions, OneFailedConditionCancelsEverything) {
  put({{"n", 1}}, "b");
  const auto why =
      reasons(transact({Put{item({{"n", 5}}, "a")}, Update{key("b"), Changes().set("n", 9), attr("n") == 2},
                        Delete{key("c")}}));
  ASSERT_EQ(why.size(), 3U);
  EXPECT_FALSE(why[0].has_value());
  ASSERT_TRUE(why[1].has_value());
  EXPECT_EQ(why[1]->stored, item({{"n", 1}}, "b"));
  EXPECT_FALSE(why[2].has_value());
  EXPECT_EQ(stored("a"), std::nullopt);
  EXPECT_EQ(stored("b"), (Attributes{{"n", 1}}));
}
TEST_P(TableTransactions, EveryFailedConditionIsReportedInItsPlace) {
  put({{"n", 1}}, "a");
  put({{"n", 2}}, "b");
  put({{"n", 3}}, "c");
  const auto why = reasons(transact({Put{item({}, "a"), attr("n") == 0}, Delete{key("b"), attr("n") == 2},
                                     Check{key("c"), attr("n") == 0}}));
  ASSERT_EQ(why.size(), 3U);
  ASSERT_TRUE(why[0].has_value());
  EXPECT_EQ(why[0]->stored, item({{"n", 1}}, "a"));
  EXPECT_FALSE(why[1].has_value());
  ASSERT_TRUE(why[2].has_value());
  EXPECT_EQ(why[2]->stored, item({{"n", 3}}, "c"));
}
TEST_P(TableTransactions, AConditionThatFailedOnAnAbsentItemBringsNothingBack) {
  const auto why = reasons(transact({Put{item({}, "a")}, Delete{key("b"), attr("token") == "mine"}}));
  ASSERT_EQ(why.size(), 2U);
  ASSERT_TRUE(why[1].has_value());
  EXPECT_EQ(why[1]->stored, std::nullopt);
  EXPECT_EQ(stored("a"), std::nullopt);
}
TEST_P(TableTransactions, ACheckThatHoldsLetsTheOthersHappen) {
  put({{"n", 1}}, "checked");
  ASSERT_TRUE(committed(transact({Check{key("checked"), attr("n") == 1}, Put{item({{"n", 2}}, "put")}})));
  EXPECT_EQ(stored("checked"), (Attributes{{"n", 1}}));
  EXPECT_EQ(stored("put"), (Attributes{{"n", 2}}));
}
TEST_P(TableTransactions, ACheckThatFailsCancelsTheOthers) {
  put({{"n", 1}}, "checked");
  const auto why = reasons(transact({Check{key("checked"), attr("n") == 2}, Put{item({}, "put")}}));
  ASSERT_EQ(why.size(), 2U);
  ASSERT_TRUE(why[0].has_value());
  EXPECT_EQ(why[0]->stored, item({{"n", 1}}, "checked"));
  EXPECT_EQ(stored("put"), std::nullopt);
}
TEST_P(TableTransactions, ACheckOfAnAbsentItemMakesNothing) {
  ASSERT_TRUE(committed(transact({Check{key("absent"), attr("pk").not_exists()}})));
  EXPECT_EQ(stored("absent"), std::nullopt);
}
TEST_P(TableTransactions, ATransactionMayHoldOnlyChecks) {
  put({{"n", 1}}, "a");
  EXPECT_TRUE(
      committed(transact({Check{key("a"), attr("n") == 1}, Check{key("b"), attr("n").not_exists()}})));
}
TEST_P(TableTransactions, DeletingAnAbsentItemIsNoError) {
  EXPECT_TRUE(committed(transact({Delete{key("absent")}, Put{item({{"n", 1}}, "a")}})));
  EXPECT_EQ(stored("a"), (Attributes{{"n", 1}}));
}
TEST_P(TableTransactions, AnUpdateInATransactionMakesAnAbsentItem) {
  EXPECT_TRUE(committed(
      transact({Update{key("a"), Changes().increment("n", 3)}, Update{key("b"), Changes().remove("n")}})));
  EXPECT_EQ(stored("a"), (Attributes{{"n", 3}}));
  EXPECT_EQ(stored("b"), Attributes());
}
TEST_P(TableTransactions, ATransactionMayReachAcrossPartitions) {
  const Key one{pk("-one"), "x"};
  const Key two{pk("-two"), "x"};
  ASSERT_TRUE(committed(transact({Put{Item{one, {{"n", 1}}}}, Put{Item{two, {{"n", 2}}}}})));
  EXPECT_TRUE(run(table().get(one, Consistency::strong))->has_value());
  EXPECT_TRUE(run(table().get(two, Consistency::strong))->has_value());
}
TEST_P(TableTransactions, ATransactionHolds100Items) {
  std::vector<TransactItem> items;
  for (int i = 0; i < 100; ++i)
    items.push_back(Put{item({{"n", i}}, "item-" + std::to_string(i))});
  ASSERT_TRUE(committed(transact(std::move(items))));
  EXPECT_EQ(stored("item-0"), (Attributes{{"n", 0}}));
  EXPECT_EQ(stored("item-99"), (Attributes{{"n", 99}}));
}
TEST_P(TableTransactions, OfAHundredItemsTheLastCanCancelAll) {
  std::vector<TransactItem> items;
  for (int i = 0; i < 99; ++i)
    items.push_back(Put{item({{"n", i}}, "item-" + std::to_string(i))});
  items.push_back(Check{key("absent"), attr("pk").exists()});
  const auto why = reasons(transact(std::move(items)));
  ASSERT_EQ(why.size(), 100U);
  EXPECT_FALSE(why[0].has_value());
  EXPECT_TRUE(why[99].has_value());
  EXPECT_EQ(stored("item-0"), std::nullopt);
  EXPECT_EQ(stored("item-98"), std::nullopt);
}
TEST_P(TableTransactions, ConditionsSeeTheTableAsItWasBefore) {
  put({{"n", 1}}, "a");
  ASSERT_TRUE(committed(transact({Put{item({{"n", 2}}, "a")}, Check{key("b"), attr("pk").not_exists()},
                                  Put{item({}, "c"), attr("pk").not_exists()}})));
  EXPECT_EQ(stored("a"), (Attributes{{"n", 2}}));
}
TEST_P(TableTransactions, AnUpdateOfTheWrongTypeRefusesTheWholeTransaction) {
  put({{"n", "text"}});
  EXPECT_NE(refusal({Put{item({}, "other")}, Update{key(), Changes().increment("n", 1)}}, token()), "");
  EXPECT_EQ(stored("other"), std::nullopt);
}
TEST_P(TableTransactions, AnUpdateOfTheWrongTypeOutweighsAnotherItemsFailedCondition) {
  put({{"n", "text"}});
  put({{"n", 1}}, "other");
  EXPECT_NE(
      refusal({Put{item({}, "other"), attr("n") == 2}, Update{key(), Changes().increment("n", 1)}}, token()),
      "");
  EXPECT_EQ(stored("other"), (Attributes{{"n", 1}}));
}
TEST_P(TableTransactions, TheFailedConditionOfAnItemComesBeforeItsOwnWrongType) {
  put({{"n", "text"}});
  const auto why = reasons(transact({Update{key(), Changes().increment("n", 1), attr("pk").not_exists()}}));
  ASSERT_EQ(why.size(), 1U);
  ASSERT_TRUE(why[0].has_value());
  EXPECT_EQ(why[0]->stored, item({{"n", "text"}}));
}
TEST_P(TableTransactions, AnUpdateThatWouldMakeAnItemTooLargeRefusesTheWholeTransaction) {
  put({{"a", std::string(300'000, 'x')}});
  EXPECT_NE(refusal({Put{item({}, "other")}, Update{key(), Changes().set("b", std::string(200'000, 'y'))}},
                    token()),
            "");
  EXPECT_EQ(stored("other"), std::nullopt);
}
TEST_P(TableTransactions, StoredSizesDoNotCountTowardsTheLimitOfATransaction) {
  std::vector<TransactItem> deletes;
  for (int i = 0; i < 11; ++i) {
    const std::string sk = "large-" + std::to_string(i);
    put({{"a", std::string(400'000, 'x')}}, sk);
    deletes.push_back(Delete{key(sk)});
  }
  EXPECT_TRUE(committed(transact(std::move(deletes))));
  EXPECT_EQ(stored("large-10"), std::nullopt);
}
TEST_P(TableTransactions, AClientTokenMayHave36Characters) {
  const Result<TransactOutcome> outcome = run(table().transact({Put{item({{"n", 1}})}}, token()));
  ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  EXPECT_TRUE(committed(*outcome));
}
TEST_P(TableTransactions, AClientTokenMayBeShort) {
  const Result<TransactOutcome> outcome =
      run(table().transact({Put{item({{"n", 1}})}}, token().substr(0, 7)));
  ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  EXPECT_TRUE(committed(*outcome));
}
TEST_P(TableTransactions, ACancelledTransactionIsJudgedAnewUnderItsToken) {
  const std::string same = token();
  const std::vector<TransactItem> items{Put{item({{"n", 1}}), attr("pk").not_exists()}};
  put({{"n", 0}});
  reasons(*run(table().transact(items, same)));
  write(Delete{key()});
  EXPECT_TRUE(committed(*run(table().transact(items, same))));
  EXPECT_EQ(stored(), (Attributes{{"n", 1}}));
}
TEST_P(TableTransactions, OfSimultaneousTransactionsUnderOneVersionExactlyOneIsCommitted) {
  put({{"version", 1}}, "meta");
  std::vector<Task<Result<TransactOutcome>>> attempts;
  for (int i = 0; i < 8; ++i) {
    attempts.push_back(
        table().transact({Update{key("meta"), Changes().set("version", 2), attr("version") == 1},
                          Put{item({{"by", i}}, "by-" + std::to_string(i))}},
                         token()));
  }
  int winners = 0;
  for (const Result<TransactOutcome>& outcome : run_all(std::move(attempts))) {
    ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
    if (committed(*outcome)) ++winners;
  }
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(query_all({.pk = pk(), .sk_prefix = "by-"}).size(), 1U);
}
TEST_P(TableTransactions, ReadersNeverSeeHalfOfATransaction) {
  put({{"n", 0}}, "a");
  put({{"n", 0}}, "b");
  // Each moves both counters; both are only ever read together, by a check inside another transaction.
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(committed(transact({Update{key("a"), Changes().increment("n", 1), attr("n") == i},
                                    Update{key("b"), Changes().increment("n", 1), attr("n") == i}})));
    EXPECT_TRUE(
        committed(transact({Check{key("a"), attr("n") == i + 1}, Check{key("b"), attr("n") == i + 1}})));
  }
}
TEST_P(TableTransactions, ThePublishOfTheProtocolHappensOnlyUnderItsLease) {
  put({{"lease_token", "mine"}, {"lease_expires_at", 200}}, "LOCK");
  const auto publish = [&](std::string token_of_lease, int now) {
    return transact(
        {Put{item({{"s3_key", "body"}}, "META")},
         Delete{key("LOCK"), attr("lease_token") == token_of_lease && attr("lease_expires_at") > now}});
  };
  EXPECT_FALSE(committed(publish("theirs", 100)));
  EXPECT_FALSE(committed(publish("mine", 200)));
  EXPECT_EQ(stored("META"), std::nullopt);
  EXPECT_TRUE(committed(publish("mine", 199)));
  EXPECT_EQ(stored("META"), (Attributes{{"s3_key", "body"}}));
  EXPECT_EQ(stored("LOCK"), std::nullopt);
}

}  // namespace
}  // namespace facetheory::test
