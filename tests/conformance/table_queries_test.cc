#include <algorithm>

#include <gmock/gmock.h>

#include "tests/conformance/table_suite.h"

namespace facetheory::test {
namespace {

using std::string_literals::operator""s;
using testing::ElementsAre;
using testing::IsEmpty;

class TableQueries : public TableSuite {
 protected:
  void put_all(const std::vector<std::string>& sks) {
    for (const std::string& sk : sks)
      put({{"name", sk}}, sk);
  }
  Query all() const { return {.pk = pk()}; }
  Query with_prefix(std::string prefix) const { return {.pk = pk(), .sk_prefix = std::move(prefix)}; }
  static Query backward(Query query) {
    query.direction = Direction::backward;
    return query;
  }
  static Query in_pages_of(std::size_t limit, Query query) {
    query.limit = limit;
    return query;
  }
};
INSTANTIATE_TEST_SUITE_P(Tables, TableQueries, testing::ValuesIn(backends()), backend_name);

TEST_P(TableQueries, AnEmptyPartitionIsAnEmptyLastPage) {
  const QueryPage page = query(all());
  EXPECT_THAT(page.items, IsEmpty());
  EXPECT_EQ(page.next, std::nullopt);
}
TEST_P(TableQueries, ItemsComeInTheOrderOfTheirSk) {
  put_all({"b", "a", "c"});
  EXPECT_THAT(sks_of(query(all())), ElementsAre("a", "b", "c"));
}
TEST_P(TableQueries, BackwardIsTheReverse) {
  put_all({"b", "a", "c"});
  EXPECT_THAT(sks_of(query(backward(all()))), ElementsAre("c", "b", "a"));
}
TEST_P(TableQueries, ItemsComeWithTheirAttributes) {
  put({{"n", 1}, {"s", StringSet{"x"}}}, "a");
  const QueryPage page = query(all());
  EXPECT_THAT(page.items, ElementsAre(item({{"n", 1}, {"s", StringSet{"x"}}}, "a")));
}
TEST_P(TableQueries, SksAreOrderedByTheirBytes) {
  const std::vector<std::string> ordered = {"\0"s, "B", "a", "a\0"s, "a#", "a#1",    "aa",
                                            "b",   "z", "~", "é",    "€",  "\uff61", "\U00010000"};
  std::vector<std::string> mixed = ordered;
  std::rotate(mixed.begin(), mixed.begin() + 5, mixed.end());
  put_all(mixed);
  EXPECT_EQ(sks_of(query(all())), ordered);
  std::vector<std::string> reversed(ordered.rbegin(), ordered.rend());
  EXPECT_EQ(sks_of(query(backward(all()))), reversed);
}
TEST_P(TableQueries, LongSksKeepTheirOrder) {
  const std::string stem(1020, 'k');
  const std::vector<std::string> ordered = {stem,        stem + "a", stem + "aa",
                                            stem + "ab", stem + "b", stem + "zzzz"};
  put_all({ordered[3], ordered[0], ordered[5], ordered[2], ordered[4], ordered[1]});
  EXPECT_EQ(query_all(in_pages_of(2, all())), ordered);
  std::vector<std::string> reversed(ordered.rbegin(), ordered.rend());
  EXPECT_EQ(query_all(in_pages_of(2, backward(all()))), reversed);
}
TEST_P(TableQueries, LongAndShortSksStandInOneOrder) {
  const std::vector<std::string> ordered = {
      "a", std::string(500, 'a'), std::string(600, 'a'), std::string(1024, 'a'), "ab", "b"};
  put_all({ordered[2], ordered[4], ordered[0], ordered[3], ordered[5], ordered[1]});
  EXPECT_EQ(query_all(in_pages_of(1, all())), ordered);
}
TEST_P(TableQueries, OnlyThePartitionAskedForIsSeen) {
  put_all({"a"});
  for (const std::string& other : {pk("x"), pk().substr(0, pk().size() - 1) + "\x7f", pk("\0"s)}) {
    write(Put{Item{{other, "a"}, {}}});
  }
  EXPECT_THAT(query_all(all()), ElementsAre("a"));
  EXPECT_THAT(query_all(backward(all())), ElementsAre("a"));
}
TEST_P(TableQueries, PartitionsWithLongKeysAreToldApart) {
  std::string long_pk = pk();
  long_pk.resize(2047, 'p');
  for (const char* last : {"a", "b", "c"}) {
    for (const char* sk : {"1", "2"})
      write(Put{Item{{long_pk + last, sk}, {}}});
  }
  EXPECT_THAT(query_all({.pk = long_pk + "b"}), ElementsAre("1", "2"));
  EXPECT_THAT(query_all(backward({.pk = long_pk + "b"})), ElementsAre("2", "1"));
}

TEST_P(TableQueries, APrefixSelectsWhatBeginsWithIt) {
  put_all({"REQ#1", "VER#", "VER#1", "VER#2", "VER", "VERY", "META"});
  EXPECT_THAT(query_all(with_prefix("VER#")), ElementsAre("VER#", "VER#1", "VER#2"));
  EXPECT_THAT(query_all(backward(with_prefix("VER#"))), ElementsAre("VER#2", "VER#1", "VER#"));
}
TEST_P(TableQueries, APrefixThatNothingBeginsWithIsAnEmptyLastPage) {
  put_all({"a", "c"});
  const QueryPage page = query(with_prefix("b"));
  EXPECT_THAT(page.items, IsEmpty());
  EXPECT_EQ(page.next, std::nullopt);
  EXPECT_THAT(query_all(backward(with_prefix("b"))), IsEmpty());
}
TEST_P(TableQueries, APrefixMayEndInTheGreatestCharacter) {
  put_all({"a", "\U0010ffff", "\U0010ffff!", "\U0010ffff\U0010ffff"});
  EXPECT_THAT(query_all(with_prefix("\U0010ffff")),
              ElementsAre("\U0010ffff", "\U0010ffff!", "\U0010ffff\U0010ffff"));
  EXPECT_THAT(query_all(backward(with_prefix("\U0010ffff"))),
              ElementsAre("\U0010ffff\U0010ffff", "\U0010ffff!", "\U0010ffff"));
}
TEST_P(TableQueries, APrefixMayHoldZeroBytes) {
  put_all({"a", "a\0"s, "a\0b"s, "ab"});
  EXPECT_THAT(query_all(with_prefix("a\0"s)), ElementsAre("a\0"s, "a\0b"s));
}
TEST_P(TableQueries, ALongPrefixSelectsAmongLongSks) {
  const std::string stem(1000, 'k');
  put_all({stem, stem + "a1", stem + "a2", stem + "b"});
  EXPECT_THAT(query_all(with_prefix(stem + "a")), ElementsAre(stem + "a1", stem + "a2"));
  EXPECT_THAT(query_all(backward(with_prefix(stem + "a"))), ElementsAre(stem + "a2", stem + "a1"));
}

TEST_P(TableQueries, APageHoldsNoMoreThanItsLimit) {
  put_all({"a", "b", "c"});
  const QueryPage page = query(in_pages_of(2, all()));
  EXPECT_THAT(sks_of(page), ElementsAre("a", "b"));
  EXPECT_EQ(page.next, "b");
}
TEST_P(TableQueries, TheNextPageGoesOnWhereThisOneEnded) {
  put_all({"a", "b", "c"});
  Query second = in_pages_of(2, all());
  second.after = query(second).next;
  EXPECT_THAT(sks_of(query(second)), ElementsAre("c"));
}
TEST_P(TableQueries, PagesBackwardGoOnToo) {
  put_all({"a", "b", "c"});
  Query pages = backward(in_pages_of(2, all()));
  const QueryPage first = query(pages);
  EXPECT_THAT(sks_of(first), ElementsAre("c", "b"));
  pages.after = first.next;
  EXPECT_THAT(sks_of(query(pages)), ElementsAre("a"));
}
TEST_P(TableQueries, AfterTheLastItemComesAnEmptyLastPage) {
  put_all({"a", "b"});
  Query pages = in_pages_of(2, all());
  pages.after = "b";
  const QueryPage page = query(pages);
  EXPECT_THAT(page.items, IsEmpty());
  EXPECT_EQ(page.next, std::nullopt);
}
TEST_P(TableQueries, APageThatIsNotFullIsTheLast) {
  put_all({"a", "b"});
  EXPECT_EQ(query(in_pages_of(3, all())).next, std::nullopt);
}
TEST_P(TableQueries, EveryPageSizeSeesEveryItemOnceInBothDirections) {
  const std::vector<std::string> sks = {"a", "b", "c", "d", "e"};
  put_all(sks);
  const std::vector<std::string> reversed(sks.rbegin(), sks.rend());
  for (std::size_t limit = 1; limit <= 6; ++limit) {
    EXPECT_EQ(query_all(in_pages_of(limit, all())), sks) << limit;
    EXPECT_EQ(query_all(in_pages_of(limit, backward(all()))), reversed) << limit;
  }
}
TEST_P(TableQueries, PagesKeepToTheirPrefixInBothDirections) {
  put_all({"a", "p1", "p2", "p3", "q"});
  EXPECT_THAT(query_all(in_pages_of(2, with_prefix("p"))), ElementsAre("p1", "p2", "p3"));
  EXPECT_THAT(query_all(in_pages_of(2, backward(with_prefix("p")))), ElementsAre("p3", "p2", "p1"));
  EXPECT_THAT(query_all(in_pages_of(3, with_prefix("p"))), ElementsAre("p1", "p2", "p3"));
}
TEST_P(TableQueries, PagesGoOnAfterAnItemThatIsGone) {
  put_all({"a", "b", "c"});
  Query pages = in_pages_of(2, all());
  pages.after = query(pages).next;
  write(Delete{key("b")});
  EXPECT_THAT(sks_of(query(pages)), ElementsAre("c"));
}
TEST_P(TableQueries, PagesMayStartAfterAnSkThatNeverWas) {
  put_all({"a", "c"});
  Query pages = all();
  pages.after = "b";
  EXPECT_THAT(sks_of(query(pages)), ElementsAre("c"));
  EXPECT_THAT(sks_of(query(backward(pages))), ElementsAre("a"));
}
TEST_P(TableQueries, APageMayHold1000Items) {
  std::vector<TransactItem> batch;
  for (int i = 0; i < 1000; ++i) {
    std::string sk = std::to_string(i);
    sk.insert(0, 4 - sk.size(), '0');
    batch.push_back(Put{item({}, sk)});
    if (batch.size() == 100) transact(std::exchange(batch, {}));
  }
  const QueryPage page = query(in_pages_of(1000, all()));
  ASSERT_EQ(page.items.size(), 1000U);
  EXPECT_EQ(page.items.front().key.sk, "0000");
  EXPECT_EQ(page.items.back().key.sk, "0999");
}
TEST_P(TableQueries, LargeItemsAreAllSeenHoweverManyPagesTheyTake) {
  for (const char* sk : {"1", "2", "3", "4", "5", "6"})
    put({{"a", std::string(300'000, 'x')}}, sk);
  EXPECT_THAT(query_all(all()), ElementsAre("1", "2", "3", "4", "5", "6"));
}
TEST_P(TableQueries, AnEventualQueryFindsWhatIsThere) {
  put_all({"a", "b"});
  Query eventual = all();
  eventual.consistency = Consistency::eventual;
  EXPECT_THAT(query_all(eventual), ElementsAre("a", "b"));
}
TEST_P(TableQueries, ADeletedItemIsSeenNoMore) {
  put_all({"a", "b", "c"});
  write(Delete{key("b")});
  EXPECT_THAT(query_all(all()), ElementsAre("a", "c"));
}

}  // namespace
}  // namespace facetheory::test
