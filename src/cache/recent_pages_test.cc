#include "facetheory/cache/recent_pages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "facetheory/base/random.h"

namespace facetheory {
namespace {

std::string name(std::uint64_t number) {
  return "page " + std::to_string(number);
}

TEST(RecentPages, FindsWhatWasPutLast) {
  RecentPages<int> pages(10);
  EXPECT_EQ(pages.find("a"), nullptr);
  pages.put("a", 1);
  pages.put("a", 2);
  ASSERT_NE(pages.find("a"), nullptr);
  EXPECT_EQ(*pages.find("a"), 2);
  EXPECT_EQ(pages.size(), 1U);
  pages.erase("a");
  pages.erase("a");
  EXPECT_EQ(pages.find("a"), nullptr);
}

TEST(RecentPages, ForgetsWhatWasNeverFound) {
  RecentPages<int> pages(3);
  for (const char* pk : {"a", "b", "c"})
    pages.put(pk, 1);
  pages.find("a");
  pages.put("d", 1);
  EXPECT_EQ(pages.size(), 3U);
  EXPECT_NE(pages.look_at("a"), nullptr);
  EXPECT_EQ(pages.look_at("b"), nullptr);
  EXPECT_NE(pages.look_at("d"), nullptr);
}

// Nor are all of them looked at for that: whoever asks for a page waits meanwhile.
TEST(RecentPages, OneGoesEvenWhereAllWereFound) {
  struct Counted {
    int* looked_at = nullptr;
    bool touched = true;
    bool is_touched() const { return touched; }
    bool take_touch() {
      ++*looked_at;
      return std::exchange(touched, false);
    }
  };
  int looked_at = 0;
  RecentPages<Counted> pages(2'000);
  for (std::uint64_t i = 0; i < 2'000; ++i)
    pages.put(name(i), Counted{&looked_at});
  pages.put("another", Counted{&looked_at});
  EXPECT_EQ(pages.size(), 2'000U);
  EXPECT_NE(pages.look_at("another"), nullptr);
  EXPECT_LT(looked_at, 100);
}

TEST(RecentPages, ForgetsAsManyAsTheNextOneCosts) {
  RecentPages<int> pages(10);
  for (const char* pk : {"a", "b", "c"})
    pages.put(pk, 1, 3);
  EXPECT_EQ(pages.cost(), 9U);
  pages.put("d", 1, 5);
  EXPECT_EQ(pages.cost(), 8U);
  EXPECT_EQ(pages.size(), 2U);
  EXPECT_NE(pages.find("c"), nullptr);
  pages.put("c", 2, 1);
  EXPECT_EQ(pages.cost(), 6U);
  pages.put("e", 1, 100);  // At least one.
  EXPECT_EQ(pages.size(), 1U);
  pages.clear();
  EXPECT_EQ(pages.cost(), 0U);
}

TEST(RecentPages, WhatIsReplacedStaysInItsPlaceWhateverItCosts) {
  RecentPages<int> pages(100);
  for (std::uint64_t i = 0; i < 10; ++i)
    pages.put(name(i), 1, 10);
  for (const std::size_t cost : {50U, 5U, 100U, 300U, 20U}) {
    EXPECT_EQ(pages.put(name(9), 2, cost), 2);
    EXPECT_TRUE(pages.cost() <= 100 || pages.size() == 1) << cost;
  }
  EXPECT_EQ(*pages.look_at(name(9)), 2);
}

TEST(RecentPages, WhatWasInUseAndIsErasedComesBackAsSuch) {
  RecentPages<int> pages(100);
  pages.put("in use", 1);
  EXPECT_EQ(pages.warmth("in use"), Warmth::unused);
  pages.find("in use");
  pages.erase("in use");
  EXPECT_EQ(pages.warmth("in use"), Warmth::absent);
  pages.put("in use", 1);
  EXPECT_EQ(pages.warmth("in use"), Warmth::used);
}

TEST(RecentPages, GoesDownToACapacityInSteps) {
  RecentPages<int> pages(100);
  for (std::uint64_t i = 0; i < 100; ++i)
    pages.put(name(i), 1);
  EXPECT_FALSE(pages.set_capacity(50, 20));
  EXPECT_EQ(pages.size(), 80U);
  EXPECT_FALSE(pages.set_capacity(50, 20));
  EXPECT_TRUE(pages.set_capacity(50, 20));
  EXPECT_EQ(pages.size(), 50U);
}

// Against a map that does the same without ever running out of room.
TEST(RecentPages, LosesNothingAndFindsNothingElse) {
  RecentPages<std::uint64_t> pages(1'000);
  std::unordered_map<std::string, std::uint64_t> all;
  SeededRandom random(1);
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    const std::string pk = name(uniform(random, 3'000));
    switch (uniform(random, 4)) {
      case 0:
        pages.put(pk, i, 1 + uniform(random, 3), [&](std::string_view leaves, std::uint64_t known) {
          EXPECT_EQ(all.at(std::string(leaves)), known);
          all.erase(std::string(leaves));
        });
        all[pk] = i;
        break;
      case 1:
        pages.erase(pk);
        all.erase(pk);
        break;
      default:
        const std::uint64_t* const found = pages.find(pk);
        ASSERT_EQ(found != nullptr, all.contains(pk));
        if (found != nullptr) {
          ASSERT_EQ(*found, all[pk]);
        }
    }
    ASSERT_EQ(pages.size(), all.size());
    ASSERT_LE(pages.cost(), 1'000U);
  }
}

// --- what is rarely asked for goes first --------------------------------------------------------------------------

// What RecentPages is compared with: the one that was asked for longest ago goes.
class LeastRecentlyUsed {
 public:
  explicit LeastRecentlyUsed(std::size_t capacity) : capacity_(capacity) {}

  bool has(std::uint64_t page) {
    const auto found = places_.find(page);
    if (found != places_.end()) order_.splice(order_.begin(), order_, found->second);
    return found != places_.end();
  }
  void keep(std::uint64_t page) {
    if (order_.size() == capacity_) {
      places_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(page);
    places_[page] = order_.begin();
  }

 private:
  const std::size_t capacity_;
  std::list<std::uint64_t> order_;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places_;
};

class OursInUse {
 public:
  explicit OursInUse(std::size_t capacity) : pages_(capacity) {}
  bool has(std::uint64_t page) { return pages_.find(name(page)) != nullptr; }
  void keep(std::uint64_t page) { pages_.put(name(page), 0); }

 private:
  RecentPages<int> pages_;
};

constexpr std::uint64_t kSite = 5'000;

// Visitors ask by Zipf's law: the page of rank r with a weight of 1/r.
class Visitors {
 public:
  Visitors() {
    for (std::uint64_t rank = 1; rank <= kSite; ++rank)
      weights_.push_back((weights_.empty() ? 0.0 : weights_.back()) + 1.0 / static_cast<double>(rank));
  }
  std::uint64_t next() {
    constexpr std::uint64_t kSteps = 1 << 30;
    const double drawn = weights_.back() * static_cast<double>(uniform(random_, kSteps)) / kSteps;
    return static_cast<std::uint64_t>(std::lower_bound(weights_.begin(), weights_.end(), drawn) -
                                      weights_.begin());
  }

 private:
  SeededRandom random_{1};
  std::vector<double> weights_;
};

// The share of visitors whose page is there. Between each two of them a crawler asks for `crawled` pages, in turn.
template <typename Cache>
double hits_of_visitors(std::size_t capacity, std::uint64_t crawled) {
  constexpr int kRequests = 60'000;
  Cache cache(capacity);
  Visitors visitors;
  std::uint64_t next_crawled = 0;
  int hits = 0;
  for (int i = 0; i < 2 * kRequests; ++i) {
    const std::uint64_t page = visitors.next();
    const bool hit = cache.has(page);
    if (!hit) cache.keep(page);
    if (i >= kRequests && hit) ++hits;  // Not while it fills.
    for (std::uint64_t j = 0; j < crawled; ++j, ++next_crawled) {
      if (!cache.has(next_crawled % kSite)) cache.keep(next_crawled % kSite);
    }
  }
  return static_cast<double>(hits) / kRequests;
}

TEST(RecentPages, KeepsWhatVisitorsAskForWhileACrawlerAsksForEverything) {
  for (const std::size_t capacity : {kSite / 20, kSite / 5}) {
    const double quiet = hits_of_visitors<OursInUse>(capacity, 0);
    const double crawled = hits_of_visitors<OursInUse>(capacity, 2);
    const double quiet_lru = hits_of_visitors<LeastRecentlyUsed>(capacity, 0);
    const double crawled_lru = hits_of_visitors<LeastRecentlyUsed>(capacity, 2);
    // Nothing is lost without a crawler, and with one, less than half of what the other one loses.
    EXPECT_GT(quiet, quiet_lru) << capacity;
    EXPECT_LT(quiet - crawled, 0.5 * (quiet_lru - crawled_lru)) << capacity;
    EXPECT_GT(crawled, crawled_lru + 0.1) << capacity;
  }
}

}  // namespace
}  // namespace facetheory
