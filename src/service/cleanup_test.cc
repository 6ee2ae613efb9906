#include "facetheory/service/cleanup.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "facetheory/base/fault.h"
#include "facetheory/base/log.h"
#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/isr/history.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/table/faulty_table.h"
#include "facetheory/table/measured_table.h"
#include "facetheory/table/memory_table.h"
#include "facetheory/table/open_table.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

void publish_page(const Isr& isr, const std::string& cache_key, const std::string& bytes = "page") {
  const Page page = *page_of(cache_key);
  const auto lease = std::get<Lease>(*test::run(acquire(isr, page, seconds(30))));
  Rendered rendered;
  rendered.body.bytes = bytes;
  if (auto published = test::run(publish(isr, lease, rendered, {})); !published)
    throw std::runtime_error(to_string(published.error()));
}

std::size_t count_pages(const Isr& isr) {
  std::size_t pages = 0;
  static_cast<void>(test::run(for_each_page(isr, [&](const PageView&) { return ++pages > 0; })));
  return pages;
}

// Stores in memory, whose operations are counted, under a clock that goes on with every sleep.
class CleanupTest : public testing::Test {
 protected:
  CleanupTest() { clock_.advance_on_sleep(); }

  void publish_pages(int count) {
    ASSERT_TRUE(test::run(settle_partners(isr_)).may_delete());
    for (int i = 0; i < count; ++i)
      publish_page(isr_, "/" + std::to_string(i));
  }

  std::atomic<int> scans_ = 0;
  test::ManualClock clock_{std::chrono::floor<milliseconds>(std::chrono::system_clock::now())};
  MemoryBodies bodies_{clock_};
  MeasuredTable table_{std::make_shared<MemoryTable>(),
                       [this](std::string_view operation, const Error*, Duration) {
                         if (operation == "scan") ++scans_;
                       }};
  Isr isr_{table_, bodies_, clock_};
};

TEST_F(CleanupTest, PagesThatWereThereBeforeTheStartCountAgainstTheirLimit) {
  publish_pages(9);
  StorageBudget budget({}, 10);
  Cleanup cleanup({.isr = isr_, .budget = budget});
  EXPECT_TRUE(comes_true([&] { return budget.pages() == 9; }));
  EXPECT_EQ(cleanup.snapshot().pages, 9U);
  EXPECT_EQ(cleanup.snapshot().pages_limit, 10U);
}

TEST_F(CleanupTest, PagesThatAnotherProcessHasAddedAreCountedWithoutASweep) {
  publish_pages(9);
  StorageBudget budget({}, 10);
  Cleanup cleanup({.isr = isr_, .budget = budget});
  ASSERT_TRUE(comes_true([&] { return budget.pages() == 9; }));
  const Isr other{table_, bodies_};  // Whose leases do not end as quickly as this clock goes.
  for (const char* key : {"/more", "/and more", "/and another", "/and one more"})
    publish_page(other, key);
  EXPECT_TRUE(comes_true([&] { return cleanup.snapshot().done.pages_evicted == 3; }));
  EXPECT_EQ(count_pages(isr_), 10U);
}

TEST_F(CleanupTest, PagesThatCannotBeEvictedDoNotCount) {
  publish_pages(20);
  for (int i = 0; i < 18; ++i)
    ASSERT_TRUE(test::run(pin(isr_, *page_of("/" + std::to_string(i)))));
  StorageBudget budget({}, 5);
  Cleanup cleanup({.isr = isr_, .budget = budget});
  EXPECT_TRUE(comes_true([&] { return budget.pages() == 2; }));
  EXPECT_TRUE(budget.admit(1));
}

// As on DynamoDB, which cannot tell whether anything has changed.
TEST_F(CleanupTest, OfTheNodesThatShareATableOneCountsAndTheOthersLearnOfIt) {
  test::ManualClock clock{clock_.now()};
  MeasuredTable table{
      std::make_shared<FaultyTable>(std::make_shared<MemoryTable>(), std::make_shared<FaultScript>(), clock),
      [this](std::string_view operation, const Error*, Duration) {
        if (operation == "scan") ++scans_;
      }};
  const Isr isr{table, bodies_, clock};
  ASSERT_TRUE(test::run(settle_partners(isr)).may_delete());
  for (int i = 0; i < 9; ++i)
    publish_page(isr, "/" + std::to_string(i));
  constexpr std::size_t kNodes = 5;
  std::vector<std::unique_ptr<StorageBudget>> budgets;
  std::vector<std::unique_ptr<Cleanup>> nodes;
  for (std::size_t i = 0; i < kNodes; ++i) {
    budgets.push_back(std::make_unique<StorageBudget>(std::nullopt, 100));
    nodes.push_back(std::make_unique<Cleanup>(CleanupParts{.isr = isr, .budget = *budgets.back()}));
  }
  for (Duration passed{}; passed < minutes(4); passed += seconds(1)) {
    ASSERT_TRUE(clock.wait_for_sleepers(3 * kNodes));
    clock.advance(seconds(1));
  }
  for (const auto& budget : budgets)
    EXPECT_EQ(budget->pages(), 9U);
  EXPECT_EQ(scans_, 1);
}

// On a table whose leases are no change of it: on another one, each refresh of the cleanup's own lease would have the
// pages counted again.
TEST_F(CleanupTest, TableIsNotLookedThroughAgainAndAgainForPagesThatCannotGo) {
  // Moved by hand: the leases must not end while the cleanup is watched.
  test::ManualClock clock{clock_.now()};
  const test::TemporaryDirectory folder;
  MeasuredTable table{*open_table("lmdb:" + folder.path().string(), test::executor()),
                      [this](std::string_view operation, const Error*, Duration) {
                        if (operation == "scan") ++scans_;
                      }};
  const Isr isr{table, bodies_, clock};
  ASSERT_TRUE(test::run(settle_partners(isr)).may_delete());
  for (int i = 0; i < 10; ++i) {
    publish_page(isr, "/" + std::to_string(i));
    auto lease = test::run(acquire(isr, *page_of("/" + std::to_string(i)), seconds(3600)));
    ASSERT_TRUE(lease && std::holds_alternative<Lease>(*lease));
  }
  StorageBudget budget({}, 5);
  Cleanup cleanup({.isr = isr, .budget = budget});
  for (Duration passed{}; passed < minutes(30); passed += seconds(5)) {
    ASSERT_TRUE(clock.wait_for_sleepers(3));  // All three jobs: none is overtaken by the clock.
    clock.advance(seconds(5));
  }
  EXPECT_GT(scans_, 0);
  EXPECT_LT(scans_, 100);
  EXPECT_EQ(cleanup.snapshot().done.pages_evicted, 0U);
}

TEST_F(CleanupTest, SomebodyIsToldWhenTheBodiesTurnOutToBeAnotherTables) {
  publish_pages(6);
  StorageBudget budget({}, 5);
  std::atomic<int> told = 0;
  CleanupParts parts{.isr = isr_, .budget = budget};
  parts.on_stranger = [&] { ++told; };
  parts.config.interval = minutes(1);
  Cleanup cleanup(std::move(parts));
  ASSERT_TRUE(comes_true([&] { return cleanup.snapshot().done.pages_evicted == 1; }));
  EXPECT_EQ(told, 0);
  MemoryTable others;
  const Isr other{others, bodies_, clock_};
  ASSERT_TRUE(test::run(adopt_bodies(other)));
  EXPECT_TRUE(comes_true([&] { return told > 0; }));
}

TEST_F(CleanupTest, CountThatFailsIsTakenAgain) {
  publish_pages(9);
  auto script = std::make_shared<FaultScript>();
  script->queue("scan", Fault::fail, 2);
  const std::shared_ptr<Table> same(&table_, [](Table*) {});
  FaultyTable faulty(same, script, clock_);
  const Isr isr{faulty, bodies_, clock_};
  StorageBudget budget({}, 10);
  Cleanup cleanup({.isr = isr, .budget = budget});
  EXPECT_TRUE(comes_true([&] { return budget.pages() == 9; }));
}

TEST_F(CleanupTest, WarningNamesTheRemedyWherePagesFromBeforeThePartnershipTakeAllTheRoom) {
  for (int i = 0; i < 9; ++i)
    publish_page(isr_, "/" + std::to_string(i));
  ASSERT_TRUE(test::run(settle_partners(isr_)).own_since);
  std::mutex mutex;
  std::string said;
  set_log_sink([&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    said += line;
  });
  {
    StorageBudget budget({}, 5);
    Cleanup cleanup({.isr = isr_, .budget = budget});
    EXPECT_TRUE(comes_true([&] {
      const std::lock_guard lock(mutex);
      return said.find("run `facetheory gc --adopt` once") != std::string::npos;
    }));
    EXPECT_EQ(cleanup.snapshot().done.pages_evicted, 0U);
    // Then there is room, without a restart.
    ASSERT_TRUE(test::run(adopt_bodies(isr_)));
    EXPECT_TRUE(comes_true([&] { return cleanup.snapshot().done.pages_evicted == 4; }));
  }
  set_log_sink({});
}

TEST(CleanupOfAFleet, OneExcessIsEvictedOnce) {
  MemoryTable table;
  MemoryBodies bodies;
  const Isr isr{table, bodies};
  ASSERT_TRUE(test::run(settle_partners(isr)).may_delete());
  for (int i = 0; i < 400; ++i)
    publish_page(isr, "/" + std::to_string(i));
  StorageBudget budgets[] = {{{}, 300}, {{}, 300}, {{}, 300}};
  std::vector<std::unique_ptr<Cleanup>> fleet;
  for (StorageBudget& budget : budgets)
    fleet.push_back(std::make_unique<Cleanup>(CleanupParts{.isr = isr, .budget = budget}));
  EXPECT_TRUE(comes_true([&] {
    return std::all_of(std::begin(budgets), std::end(budgets),
                       [](const StorageBudget& budget) { return budget.pages() == 300; });
  }));
  EXPECT_EQ(count_pages(isr), 300U);
}

TEST(CleanupOfADisk, BodiesThatWereReleasedGoBeforeAnyPage) {
  const test::TemporaryDirectory place;
  const auto table = *open_table("lmdb:" + (place.path() / "table").string(), test::executor());
  const auto bodies = *open_bodies("lmdb:" + (place.path() / "bodies").string(), test::executor());
  ReleasedBodies released;
  const Isr isr{*table, *bodies, system_clock(), system_random(), {}, {}, &released};
  ASSERT_TRUE(test::run(settle_partners(isr)).may_delete());
  // Eighteen pages of a megabyte, rendered three times: two thirds are nobody's any more.
  for (int render = 0; render < 3; ++render) {
    for (int i = 0; i < 18; ++i)
      publish_page(isr, "/" + std::to_string(i), std::string(1'000'000, static_cast<char>('a' + render)));
  }
  ASSERT_EQ(released.size(), 36U);
  const auto use = *table->disk_use() + **test::run(bodies->disk_use());
  StorageBudget budget(use.used * 100 / 85, {});  // Too much, and not so much that nobody can wait.
  CleanupParts parts{.isr = isr, .budget = budget};
  parts.config.released_after = hours(1);
  Cleanup cleanup(std::move(parts));
  EXPECT_TRUE(comes_true([&] { return budget.use().used > 0 && budget.bytes_to_free() == 0; }));
  EXPECT_GE(cleanup.snapshot().done.released_removed, 1U);
  EXPECT_EQ(cleanup.snapshot().done.pages_evicted, 0U);
  EXPECT_EQ(count_pages(isr), 18U);
}

}  // namespace
}  // namespace facetheory
