#include "facetheory/table/recent_commits.h"

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

RowSet rows(std::initializer_list<Key> keys) {
  RowSet set;
  for (const Key& key : keys)
    set.add(key);
  return set;
}

Key numbered(std::uint64_t number) {
  return {"page " + std::to_string(number), "META"};
}

TEST(RowSetTest, MeetsWhateverHasARowInCommon) {
  RowSet many;
  for (std::uint64_t i = 0; i < 100; ++i)
    many.add(numbered(i));
  for (std::uint64_t i = 0; i < 100; ++i)
    EXPECT_TRUE(rows({numbered(i)}).meets(many)) << i;
  EXPECT_TRUE(many.meets(many));
  EXPECT_FALSE(RowSet().meets(many));
}

TEST(RowSetTest, SeldomMeetsOthers) {
  const RowSet one = rows({{"a", "META"}});
  int met = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i)
    met += rows({numbered(i)}).meets(one) ? 1 : 0;
  EXPECT_LT(met, 10'000 / 256 * 2);
  EXPECT_GT(met, 0);
}

TEST(RowSetTest, TellsRowsOfOnePartitionApart) {
  int met = 0;
  for (std::uint64_t i = 0; i < 1000; ++i)
    met += rows({{numbered(i).pk, "META"}}).meets(rows({{numbered(i).pk, "LOCK"}})) ? 1 : 0;
  EXPECT_LT(met, 20);
}

class RecentCommitsTest : public ::testing::Test {
 protected:
  const RowSet ours_ = rows({{"a", "META"}});
  const RowSet others_ = rows({{"b", "META"}});
  RecentCommits commits_;
};

TEST_F(RecentCommitsTest, VouchesForRowsThatNoCommitChanged) {
  ASSERT_FALSE(ours_.meets(others_));
  commits_.note(8, others_);
  commits_.note(9, others_);
  EXPECT_TRUE(commits_.left_alone(ours_, 7, 9));
  EXPECT_TRUE(commits_.left_alone(ours_, 9, 9));
  commits_.note(10, ours_);
  EXPECT_TRUE(commits_.left_alone(ours_, 7, 9));
  EXPECT_FALSE(commits_.left_alone(ours_, 7, 10));
  EXPECT_FALSE(commits_.left_alone(ours_, 9, 10));
  EXPECT_TRUE(commits_.left_alone(ours_, 10, 10));
  EXPECT_TRUE(commits_.left_alone(others_, 9, 10));
}

TEST_F(RecentCommitsTest, VouchesForNothingThatItDoesNotKnow) {
  EXPECT_FALSE(commits_.left_alone(ours_, 0, 1));
  commits_.note(8, others_);
  commits_.note(10, others_);
  EXPECT_FALSE(commits_.left_alone(ours_, 7, 9)) << "9 is another process's";
  EXPECT_FALSE(commits_.left_alone(ours_, 7, 10));
  EXPECT_TRUE(commits_.left_alone(ours_, 9, 10));
  EXPECT_FALSE(commits_.left_alone(ours_, 10, 11)) << "not noted yet";
  EXPECT_FALSE(commits_.left_alone(ours_, 10, 9)) << "backwards";
}

TEST_F(RecentCommitsTest, ForgetsWhatWasLongAgo) {
  for (std::uint64_t number = 1; number <= 200; ++number)
    commits_.note(number, others_);
  EXPECT_TRUE(commits_.left_alone(ours_, 200 - RecentCommits::kKept, 200));
  EXPECT_FALSE(commits_.left_alone(ours_, 200 - RecentCommits::kKept - 1, 200));
  EXPECT_FALSE(commits_.left_alone(ours_, 10, 20));
  EXPECT_FALSE(commits_.left_alone(ours_, 0, ~std::uint64_t{0}));
}

// Every seventh commit changes our row; whoever asks while others are noted is never told otherwise.
TEST_F(RecentCommitsTest, IsRightWhileItIsWritten) {
  constexpr std::uint64_t kLast = 300'000;
  std::atomic<std::uint64_t> newest = 0;
  const std::jthread writer([&] {
    for (std::uint64_t number = 1; number <= kLast; ++number) {
      commits_.note(number, number % 7 == 0 ? ours_ : others_);
      newest.store(number, std::memory_order_release);
    }
  });
  std::uint64_t vouched = 0;
  for (std::uint64_t to = 0; to < kLast;) {
    to = newest.load(std::memory_order_acquire);
    for (std::uint64_t back = 0; back < 10 && back <= to; ++back) {
      if (!commits_.left_alone(ours_, to - back, to)) continue;
      ++vouched;
      ASSERT_EQ((to - back) / 7, to / 7) << to - back << " to " << to;
    }
  }
  EXPECT_GT(vouched, 0u);
}

}  // namespace
}  // namespace facetheory
