#include "facetheory/isr/evict.h"

#include <algorithm>
#include <atomic>

#include "facetheory/isr/body_key.h"

#include "tests/protocol/protocol_suite.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;

// DynamoDB remembers client tokens for ten minutes, across tables: no two cases may have the same.
std::uint64_t seed_of_an_eviction() {
  static std::atomic<std::uint64_t> seed = 2'000'000;
  return ++seed;
}

// These tests have tables of their own, because a sample takes whatever page there is.
class EvictTest : public testing::TestWithParam<ProtocolBackend> {
 protected:
  EvictTest() { clock_.advance_on_sleep(); }

  Published published(const std::string& cache_key, PublishOptions options = {}) {
    const Page page = *page_of(cache_key);
    const auto lease = std::get<Lease>(*run(acquire(isr_, page, seconds(30))));
    Rendered rendered;
    rendered.body.bytes = cache_key;
    clock_.advance(seconds(1));
    return std::get<Published>(*run(publish(isr_, lease, rendered, options)));
  }
  Evicted evicting(std::size_t most, std::function<int(const MetaRow&)> warmth = {}) {
    std::optional<Key> beginning;
    EvictOptions options{most, std::move(warmth), spared_, partners_};
    auto evicted = run(evict_some(isr_, std::move(beginning), std::move(options)));
    if (!evicted) throw std::runtime_error(to_string(evicted.error()));
    return *evicted;
  }
  bool has_page(const std::string& cache_key) {
    return run(get_meta(isr_, *page_of(cache_key), Consistency::strong))->has_value();
  }
  std::size_t rows_of(const std::string& cache_key) {
    Query query;
    query.pk = page_of(cache_key)->pk;
    return run(stores_.table->query(std::move(query)))->items.size();
  }

  std::optional<int> spared_;
  PartnerReport partners_{.partnership = Partnership::partners};
  ManualClock clock_{std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())};
  SeededRandom random_{seed_of_an_eviction()};
  // DynamoDB's table is shared by the cases of a suite, so here each makes its own.
  ProtocolStores stores_ = [this] {
    ProtocolStores stores = GetParam().open(clock_);
    if (GetParam().name.starts_with("dynamodb")) stores.table = fresh_dynamodb_table();
    return stores;
  }();
  Isr isr_{*stores_.table, *stores_.bodies, clock_, random_, {}};
};

TEST_P(EvictTest, OldestPagesGoFirstUpToHalfOfTheSample) {
  for (const char* key : {"/1", "/2", "/3", "/4"})
    published(key);
  EXPECT_EQ(evicting(1).pages, 1U);
  EXPECT_FALSE(has_page("/1"));
  EXPECT_EQ(evicting(100).pages, 2U);
  EXPECT_FALSE(has_page("/2"));
  EXPECT_FALSE(has_page("/3"));
  EXPECT_TRUE(has_page("/4"));
}

TEST_P(EvictTest, PagesOfOtherWritersStay) {
  published("/ours");
  Attributes foreign{{"s3_key", "isr/theirs.html"}, {"generated_at", 1}, {"revalidate_seconds", 60}};
  Write write = Put{{meta_key(page_of("/theirs")->pk), std::move(foreign)}};
  ASSERT_TRUE(run(stores_.table->write(std::move(write), Durability::machine)));
  while (evicting(10).pages > 0) {
  }
  EXPECT_FALSE(has_page("/ours"));
  EXPECT_TRUE(has_page("/theirs"));
}

TEST_P(EvictTest, PagesThatAreWantedGoLast) {
  const Published wanted = published("/wanted");
  published("/unwanted");
  evicting(1, [&](const MetaRow& meta) { return meta.s3_key == wanted.meta.s3_key ? 1 : 0; });
  EXPECT_TRUE(has_page("/wanted"));
  EXPECT_FALSE(has_page("/unwanted"));
}

TEST_P(EvictTest, PagesThatAreToBeSparedStayHoweverManyAreToGo) {
  const Published wanted = published("/wanted");
  published("/unwanted");
  published("/unwanted too");
  spared_ = 2;
  const auto warmth = [&](const MetaRow& meta) { return meta.s3_key == wanted.meta.s3_key ? 2 : 1; };
  EXPECT_EQ(evicting(10, warmth).pages, 2U);
  EXPECT_EQ(evicting(10, warmth).pages, 0U);
  EXPECT_TRUE(has_page("/wanted"));
}

TEST_P(EvictTest, VersionsGoWithTheirPageAndAllItsBodiesAreNamed) {
  PublishOptions options;
  options.history = 3;
  for (int i = 0; i < 3; ++i) {
    const auto lease = std::get<Lease>(*run(acquire(isr_, *page_of("/p"), seconds(30))));
    Rendered rendered;
    rendered.body.bytes = std::to_string(i);
    clock_.advance(seconds(1));
    ASSERT_TRUE(run(publish(isr_, lease, rendered, options)));
  }
  const Evicted evicted = evicting(1);
  EXPECT_EQ(evicted.pages, 1U);
  EXPECT_EQ(evicted.rows, 4U);
  EXPECT_EQ(evicted.bodies.size(), 3U);
  EXPECT_EQ(rows_of("/p"), 0U);
  ASSERT_TRUE(run(stores_.bodies->remove_all(evicted.bodies)));
  std::optional<std::string> beginning;
  EXPECT_TRUE(run(stores_.bodies->list(std::move(beginning), 10))->entries.empty());
}

TEST_P(EvictTest, PageWhoseLeaseIsHeldStays) {
  published("/rendered");
  const auto lease = run(acquire(isr_, *page_of("/rendered"), seconds(30)));
  ASSERT_TRUE(std::holds_alternative<Lease>(*lease));
  EXPECT_EQ(evicting(10).pages, 0U);
  EXPECT_TRUE(has_page("/rendered"));
  clock_.advance(seconds(31));
  EXPECT_EQ(evicting(10).pages, 1U);
  EXPECT_EQ(rows_of("/rendered"), 0U);
}

TEST_P(EvictTest, PinnedPageStays) {
  published("/pinned");
  ASSERT_TRUE(run(pin(isr_, *page_of("/pinned"))));
  EXPECT_EQ(evicting(10).pages, 0U);
  EXPECT_TRUE(has_page("/pinned"));
}

TEST_P(EvictTest, BodyThatARequestReplaysIsNotNamed) {
  const auto claimed = std::get<RequestClaim>(*run(claim(isr_, *page_of("/q"), "r", "h", seconds(30))));
  const Published page = published("/q");
  ASSERT_TRUE(run(complete(isr_, claimed, page.meta.s3_key)));
  const Evicted evicted = evicting(1);
  EXPECT_EQ(evicted.pages, 1U);
  EXPECT_TRUE(evicted.bodies.empty());
  EXPECT_EQ(rows_of("/q"), 1U);
}

TEST_P(EvictTest, NothingGoesBesideStrangersNorWhatIsFromBeforeThePartnership) {
  published("/old");
  partners_.own_since = isr_.now() + 1;
  clock_.advance(seconds(10));
  published("/new");
  EXPECT_EQ(evicting(10).pages, 1U);
  EXPECT_TRUE(has_page("/old"));
  EXPECT_FALSE(has_page("/new"));
  EXPECT_EQ(evicting(10).from_before, 1U);
  partners_ = {.partnership = Partnership::stranger};
  std::optional<Key> beginning;
  EvictOptions options{10, {}, {}, partners_};
  EXPECT_FALSE(run(evict_some(isr_, std::move(beginning), std::move(options))));
  EXPECT_TRUE(has_page("/old"));
}

TEST_P(EvictTest, OnePageThatChangedMeanwhileDoesNotSaveTheOthers) {
  for (const char* key : {"/1", "/2", "/3", "/4", "/5", "/6"})
    published(key);
  MeddledTable meddled(*stores_.table);
  int transactions = 0;
  meddled.before_transact = [&](const std::vector<TransactItem>&) -> Task<Result<void>> {
    if (++transactions > 1) co_return Result<void>();
    auto lease = co_await acquire(isr_, *page_of("/2"), seconds(30));
    if (!lease) co_return lease.error();
    co_return Result<void>();
  };
  const Isr beside{meddled, *stores_.bodies, clock_, random_, {}};
  std::optional<Key> beginning;
  EvictOptions three{3, {}, {}, partners_};
  const auto evicted = run(evict_some(beside, std::move(beginning), std::move(three)));
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->pages, 2U);
  EXPECT_FALSE(has_page("/1"));
  EXPECT_TRUE(has_page("/2"));
  EXPECT_FALSE(has_page("/3"));
}

TEST_P(EvictTest, SamplesFollowOneAnotherThroughAllOfALargeTable) {
  // Rows as a publish leaves them, a hundred at a time: DynamoDB Local takes half a minute to publish as many.
  published("/0");
  const Item row = *run(stores_.table->get(meta_key(page_of("/0")->pk), Consistency::strong)).value();
  for (int first = 1; first < 1100; first += 100) {
    std::vector<TransactItem> rows;
    for (int i = first; i < std::min(first + 100, 1100); ++i) {
      const Page page = *page_of("/" + std::to_string(i));
      Item copy{meta_key(page.pk), row.attributes};
      copy.attributes.set("s3_key", body_key_for(page, "text/html", clock_.now(), random_));
      rows.emplace_back(Put{std::move(copy)});
    }
    ASSERT_TRUE(run(stores_.table->transact(std::move(rows), "rows-" + uuid_v4(random_).substr(0, 30))));
  }
  std::uint64_t seen = 0;
  std::optional<Key> after;
  int samples = 0;
  do {
    EvictOptions nobody{0, {}, {}, partners_};
    auto evicted = run(evict_some(isr_, after, std::move(nobody)));
    ASSERT_TRUE(evicted);
    EXPECT_EQ(evicted->pages, 0U);
    seen += evicted->pages_seen;
    after = evicted->next;
  } while (after && ++samples < 10);
  EXPECT_EQ(seen, 1100U);
  EXPECT_GE(samples, 1);
}

TEST_P(EvictTest, OnlyPagesThatCanEverGoAreCounted) {
  for (const char* key : {"/1", "/2", "/3"})
    published(key);
  ASSERT_TRUE(run(pin(isr_, *page_of("/2"))));
  Attributes foreign{{"s3_key", "isr/theirs.html"}, {"generated_at", 1}, {"revalidate_seconds", 60}};
  Write write = Put{{meta_key(page_of("/theirs")->pk), std::move(foreign)}};
  ASSERT_TRUE(run(stores_.table->write(std::move(write), Durability::machine)));
  std::optional<Key> beginning;
  const auto counted = run(count_some(isr_, std::move(beginning)));
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->pages, 2U);
  EXPECT_FALSE(counted->next);
}

TEST_P(EvictTest, OneNodeEvictsAtATimeAndTellsTheOthersHowManyPagesAreLeft) {
  const auto first = run(acquire_eviction(isr_, "one"));
  ASSERT_TRUE(first && std::holds_alternative<Lease>(*first));
  const auto second = run(acquire_eviction(isr_, "two"));
  ASSERT_TRUE(second && std::holds_alternative<LeaseHeld>(*second));
  EXPECT_EQ(std::get<LeaseHeld>(*second).lock.owner, "one");
  EXPECT_FALSE(*run(noted_pages(isr_)));
  ASSERT_TRUE(run(note_pages(isr_, 41)));
  EXPECT_EQ((*run(noted_pages(isr_)))->pages, 41U);
  EXPECT_EQ((*run(noted_pages(isr_)))->noted_at, isr_.now());
  ASSERT_TRUE(run(release(isr_, std::get<Lease>(*first))));
  const auto third = run(acquire_eviction(isr_, "two"));
  EXPECT_TRUE(third && std::holds_alternative<Lease>(*third));
}

INSTANTIATE_TEST_SUITE_P(Protocol, EvictTest,
                         testing::ValuesIn(protocol_backends().begin(), protocol_backends().begin() + 3),
                         protocol_backend_name);

}  // namespace
}  // namespace facetheory::test
