#include "facetheory/service/storage_budget.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(StorageBudget, WithoutLimitsEverythingIsAdmitted) {
  StorageBudget budget({}, {});
  budget.measured({1000 * kMiB, 1000 * kMiB});
  EXPECT_TRUE(budget.admit(64 * kMiB));
  EXPECT_EQ(budget.bytes_to_free(), 0U);
  EXPECT_EQ(budget.pages_to_free(), 0U);
}

TEST(StorageBudget, EvictsFromFourFifthsOnAndRefusesATenthLater) {
  StorageBudget budget(104 * kMiB, {});
  budget.measured({79 * kMiB, 80 * kMiB});
  EXPECT_EQ(budget.bytes_to_free(), 0U);
  budget.measured({81 * kMiB, 82 * kMiB});
  EXPECT_GT(budget.bytes_to_free(), 5 * kMiB);
  EXPECT_TRUE(budget.admit(100));
  budget.measured({92 * kMiB, 82 * kMiB});
  EXPECT_FALSE(budget.admit(100));
  EXPECT_EQ(budget.refused(), 1U);
}

TEST(StorageBudget, WhatWasAdmittedCountsUntilItIsMeasured) {
  StorageBudget budget(100 * kMiB, {});
  budget.measured({});
  int admitted = 0;
  while (budget.admit(kMiB) && admitted < 200)
    ++admitted;
  EXPECT_GT(admitted, 80);
  EXPECT_LT(admitted, 90);
  budget.measured({});
  EXPECT_TRUE(budget.admit(kMiB));
}

TEST(StorageBudget, KeepsMoreFreeWhereTheFilesFillTheBudget) {
  StorageBudget budget(100 * kMiB, {});
  budget.measured({60 * kMiB, 70 * kMiB});
  EXPECT_EQ(budget.bytes_to_free(), 0U);
  budget.measured({60 * kMiB, 100 * kMiB});
  EXPECT_GT(budget.bytes_to_free(), 10 * kMiB);
  EXPECT_FALSE(budget.admit(100));
  budget.measured({45 * kMiB, 120 * kMiB});
  EXPECT_TRUE(budget.admit(100));
}

TEST(StorageBudget, WhatIsSetAsideIsNotTheStores) {
  StorageBudget budget(138 * kMiB, {});
  budget.measured({81 * kMiB, 82 * kMiB});
  EXPECT_EQ(budget.bytes_to_free(), 0U);
  budget.set_aside(34 * kMiB);
  EXPECT_EQ(budget.aside(), 34 * kMiB);
  EXPECT_EQ(budget.disk(), 138 * kMiB);
  EXPECT_GT(budget.bytes_to_free(), 5 * kMiB);
  budget.measured({92 * kMiB, 92 * kMiB});
  EXPECT_FALSE(budget.admit(100));
  budget.measured({94 * kMiB, 94 * kMiB});
  EXPECT_TRUE(budget.is_disk_full());
}

TEST(StorageBudget, HalfOfTheDiskIsTheStoresWhateverIsSetAside) {
  StorageBudget budget(100 * kMiB, {});
  budget.set_aside(90 * kMiB);
  EXPECT_EQ(budget.aside(), 50 * kMiB);
  EXPECT_TRUE(budget.admit(kMiB));
  StorageBudget unlimited({}, {});
  unlimited.set_aside(90 * kMiB);
  EXPECT_EQ(unlimited.aside(), 0U);
}

TEST(StorageBudget, PagesBeyondTheirNumberAreToGoAndNewOnesAreRefusedALittleLater) {
  StorageBudget budget({}, 100);
  budget.counted(100);
  EXPECT_EQ(budget.pages_to_free(), 0U);
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(budget.admit(1));
  EXPECT_EQ(budget.pages_to_free(), 5U);
  EXPECT_FALSE(budget.admit(1));
  budget.evicted(5);
  EXPECT_TRUE(budget.admit(1));
}

TEST(StorageBudget, SmallNumberOfPagesCanBeOversteppedToo) {
  for (const std::uint64_t most : {1U, 10U, 19U}) {
    StorageBudget budget({}, most);
    budget.counted(most);
    EXPECT_TRUE(budget.admit(1)) << most;
    EXPECT_EQ(budget.pages_to_free(), 1U) << most;
    EXPECT_FALSE(budget.admit(1)) << most;
  }
}

TEST(StorageBudget, WhatIsAdmittedWhilePagesAreCountedIsAddedToTheCount) {
  StorageBudget budget({}, 100);
  budget.counted(50);
  EXPECT_TRUE(budget.admit(1));
  budget.counting();
  EXPECT_TRUE(budget.admit(1));
  EXPECT_TRUE(budget.admit(1));
  budget.counted(51);
  EXPECT_EQ(budget.pages(), 53U);
}

TEST(StorageBudget, SaysWhetherTheDiskOrTheirNumberKeepsPagesOut) {
  StorageBudget budget(100 * kMiB, 10);
  budget.counted(11);
  EXPECT_FALSE(budget.admit(1));
  EXPECT_EQ(budget.refused_as_full(), 0U);
  budget.measured({89 * kMiB, 89 * kMiB});
  EXPECT_FALSE(budget.is_disk_full());
  budget.measured({99 * kMiB, 99 * kMiB});
  EXPECT_FALSE(budget.admit(1));
  EXPECT_EQ(budget.refused_as_full(), 1U);
  EXPECT_TRUE(budget.is_disk_full());
}

}  // namespace
}  // namespace facetheory
