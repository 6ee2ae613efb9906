#include <map>
#include <set>

#include <gmock/gmock.h>

#include "tests/conformance/table_suite.h"
#include "tests/support/run.h"

namespace facetheory::test {
namespace {

using testing::ElementsAre;

// Each case has the whole table to itself.
class TableScans : public TableSuite {
 protected:
  TableScans() : opened_(fresh_table(GetParam())) {}

  Table& own() { return *opened_.table; }

  void put_into(std::string pk, std::string sk, Attributes attributes = {}) {
    const auto outcome = run(
        own().write(Put{Item{{std::move(pk), std::move(sk)}, std::move(attributes)}}, Durability::machine));
    ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  }
  ScanPage page_of(Scan scan) {
    Result<ScanPage> page = run(own().scan(std::move(scan)));
    if (page) return std::move(page).value();
    ADD_FAILURE() << to_string(page.error());
    return {};
  }
  std::vector<Item> everything(std::size_t limit) {
    std::vector<Item> items;
    Scan scan{.limit = limit};
    for (int pages = 0; pages < 1000; ++pages) {
      ScanPage page = page_of(scan);
      EXPECT_LE(page.items.size(), limit);
      for (Item& found : page.items)
        items.push_back(std::move(found));
      if (!page.next) return items;
      scan.after = page.next;
    }
    ADD_FAILURE() << "the pages have no end";
    return items;
  }

 private:
  OpenedTable opened_;
};
INSTANTIATE_TEST_SUITE_P(Tables, TableScans, testing::ValuesIn(backends()), backend_name);

TEST_P(TableScans, AnEmptyTableIsAnEmptyLastPage) {
  const ScanPage page = page_of({});
  EXPECT_TRUE(page.items.empty());
  EXPECT_EQ(page.next, std::nullopt);
}
TEST_P(TableScans, EveryItemIsSeenOnceWhateverThePageSize) {
  std::set<Key> expected;
  for (int p = 0; p < 4; ++p) {
    for (int s = 0; s < 3; ++s) {
      const Key key{"p" + std::to_string(p), "s" + std::to_string(s)};
      put_into(key.pk, key.sk);
      expected.insert(key);
    }
  }
  for (const std::size_t limit : {1U, 2U, 3U, 5U, 12U, 100U}) {
    std::vector<Key> seen;
    for (const Item& found : everything(limit))
      seen.push_back(found.key);
    EXPECT_EQ(std::set<Key>(seen.begin(), seen.end()), expected) << limit;
    EXPECT_EQ(seen.size(), expected.size()) << limit;
  }
}
TEST_P(TableScans, PartitionsStandTogetherInSkOrder) {
  for (const char* sk : {"c", "a", "b"}) {
    for (const char* pk : {"y", "x", "z"})
      put_into(pk, sk);
  }
  std::vector<std::string> partitions;
  std::map<std::string, std::vector<std::string>> sks;
  for (const Item& found : everything(2)) {
    if (partitions.empty() || partitions.back() != found.key.pk) partitions.push_back(found.key.pk);
    sks[found.key.pk].push_back(found.key.sk);
  }
  EXPECT_EQ(partitions.size(), 3U);
  for (const auto& [pk, order] : sks)
    EXPECT_THAT(order, ElementsAre("a", "b", "c")) << pk;
}
TEST_P(TableScans, ItemsComeWithTheirAttributes) {
  put_into("p", "s", {{"n", 1}, {"l", List{"x"}}});
  EXPECT_THAT(everything(10), ElementsAre(Item{{"p", "s"}, {{"n", 1}, {"l", List{"x"}}}}));
}
TEST_P(TableScans, AScanGoesOnAfterAnItemThatIsGone) {
  for (const char* sk : {"a", "b", "c"})
    put_into("p", sk);
  Scan scan{.limit = 2};
  scan.after = page_of(scan).next;
  ASSERT_EQ(scan.after, (Key{"p", "b"}));
  ASSERT_TRUE(run(own().write(Delete{{"p", "b"}}, Durability::machine)).has_value());
  const ScanPage rest = page_of(scan);
  ASSERT_EQ(rest.items.size(), 1U);
  EXPECT_EQ(rest.items[0].key.sk, "c");
}
TEST_P(TableScans, AfterTheLastItemComesAnEmptyLastPage) {
  put_into("p", "a");
  Scan scan{.limit = 1};
  const ScanPage first = page_of(scan);
  ASSERT_EQ(first.items.size(), 1U);
  scan.after = Key{"p", "a"};
  const ScanPage second = page_of(scan);
  EXPECT_TRUE(second.items.empty());
  EXPECT_EQ(second.next, std::nullopt);
}
TEST_P(TableScans, DeletedItemsAreNotSeen) {
  put_into("p", "a");
  put_into("q", "a");
  ASSERT_TRUE(run(own().write(Delete{{"p", "a"}}, Durability::machine)).has_value());
  const std::vector<Item> left = everything(10);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].key, (Key{"q", "a"}));
}
TEST_P(TableScans, KeysOfTheGreatestLengthAreSeenOnce) {
  const std::string pk(2047, 'p');
  const std::string sk(1023, 's');
  std::set<Key> expected;
  for (const char* p : {"a", "b"}) {
    for (const char* s : {"a", "b"}) {
      put_into(pk + p, sk + s);
      expected.insert({pk + p, sk + s});
    }
  }
  std::vector<Key> seen;
  for (const Item& found : everything(1))
    seen.push_back(found.key);
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_EQ(std::set<Key>(seen.begin(), seen.end()), expected);
}
TEST_P(TableScans, LargeItemsAreAllSeenHoweverManyPagesTheyTake) {
  for (const char* sk : {"1", "2", "3", "4", "5"})
    put_into("p", sk, {{"a", std::string(300'000, 'x')}});
  EXPECT_EQ(everything(100).size(), 5U);
}
TEST_P(TableScans, AFreshTableHoldsNothingOfAnotherOne) {
  put_into("p", "a");
  const OpenedTable other = fresh_table(GetParam());
  const Result<ScanPage> page = run(other.table->scan({}));
  ASSERT_TRUE(page.has_value()) << to_string(page.error());
  EXPECT_TRUE(page->items.empty());
}

}  // namespace
}  // namespace facetheory::test
