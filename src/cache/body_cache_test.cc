#include "facetheory/cache/body_cache.h"

#include <gtest/gtest.h>

#include "facetheory/base/random.h"

namespace facetheory {
namespace {

std::shared_ptr<const KeptBody> body(std::size_t size, char fill = 'x') {
  Body made;
  made.bytes.assign(size, fill);
  return std::make_shared<const KeptBody>(std::move(made));
}

void insert(BodyCache& cache, std::string key, std::shared_ptr<const KeptBody> body) {
  const std::size_t size = body->memory();
  cache.insert(std::move(key), std::move(body), size);
}

std::string key(int number) {
  return "body-" + std::to_string(number);
}

TEST(BodyCache, FindsWhatWasInserted) {
  BodyCache cache(100'000);
  EXPECT_EQ(cache.find("a"), nullptr);
  const auto kept = body(10);
  insert(cache, "a", kept);
  EXPECT_EQ(cache.find("a"), kept);
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_GE(cache.bytes(), 10U);
}

TEST(BodyCache, TellsHowMuchABodyIsWantedWithoutCountingThat) {
  BodyCache cache(100'000);
  EXPECT_EQ(cache.warmth("a"), Warmth::absent);
  std::atomic<bool> touched = false;
  cache.insert("a", body(10), 10, &touched);
  insert(cache, "b", body(10));
  EXPECT_EQ(cache.warmth("a"), Warmth::unused);
  EXPECT_EQ(cache.warmth("a"), Warmth::unused);
  touched = true;
  EXPECT_EQ(cache.warmth("a"), Warmth::used);
  cache.find("b");
  EXPECT_EQ(cache.warmth("b"), Warmth::used);
}

TEST(BodyCache, KeepsWhatSomebodyTouchedWithoutAskingForIt) {
  BodyCache cache(20'000);
  std::atomic<bool> touched = false;
  cache.insert("a", body(1'000), 1'000, &touched);
  for (int i = 0; i < 50; ++i) {
    touched = true;
    insert(cache, key(i), body(1'000));
  }
  EXPECT_NE(cache.find("a"), nullptr);
  cache.insert("b", body(1'000), 1'000, &touched);
  touched = false;
  for (int i = 50; i < 100; ++i)
    insert(cache, key(i), body(1'000));
  EXPECT_EQ(cache.find("b"), nullptr);
}

TEST(BodyCache, NeverExceedsItsBudget) {
  BodyCache cache(50'000);
  SeededRandom random(1);
  for (int i = 0; i < 5'000; ++i) {
    insert(cache, key(i), body(uniform(random, 12'000)));
    ASSERT_LE(cache.bytes(), 50'000U);
    if (uniform(random, 3) == 0) cache.find(key(static_cast<int>(uniform(random, 5'000))));
    if (uniform(random, 7) == 0) cache.erase(key(static_cast<int>(uniform(random, 5'000))));
  }
}

TEST(BodyCache, CountsWhatItHolds) {
  BodyCache cache(100'000);
  insert(cache, "a", body(1'000));
  insert(cache, "b", body(1'000));
  cache.erase("a");
  cache.erase("a");
  cache.erase("b");
  EXPECT_EQ(cache.bytes(), 0U);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(BodyCache, DoesNotKeepABodyThatWouldDriveOutAllOthers) {
  BodyCache cache(10'000);
  insert(cache, "small", body(100));
  insert(cache, "large", body(9'000));
  EXPECT_EQ(cache.find("large"), nullptr);
  EXPECT_NE(cache.find("small"), nullptr);
}

TEST(BodyCache, CountsWhatItWasToldABodyTakes) {
  BodyCache cache(100'000);
  cache.insert("compressed, too", body(10), 20'000);
  EXPECT_GE(cache.bytes(), 20'000U);
  cache.insert("too much", body(10), 26'000);
  EXPECT_EQ(cache.find("too much"), nullptr);
}

TEST(BodyCache, WhatIsInUseSurvivesAScan) {
  BodyCache cache(100'000);
  for (int i = 0; i < 20; ++i)
    insert(cache, key(i), body(2'000));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i)
      cache.find(key(i));
  }
  // A crawler asks for ten times as much as fits, once each, while the twenty stay in use.
  for (int i = 1'000; i < 1'500; ++i) {
    insert(cache, key(i), body(2'000));
    if (i % 5 == 0) cache.find(key(i / 5 % 20));
  }
  int kept = 0;
  for (int i = 0; i < 20; ++i)
    kept += cache.find(key(i)) != nullptr ? 1 : 0;
  EXPECT_EQ(kept, 20);
}

TEST(BodyCache, WhatComesBackSoonAfterItsEvictionStays) {
  BodyCache cache(30'000);
  for (int i = 0; i < 15; ++i)
    insert(cache, key(i), body(2'000));
  ASSERT_EQ(cache.find(key(0)), nullptr);  // Evicted, and remembered.
  insert(cache, key(0), body(2'000));
  for (int i = 100; i < 109; ++i)
    insert(cache, key(i), body(2'000));
  EXPECT_NE(cache.find(key(0)), nullptr);
}

TEST(BodyCache, HoldsANewBudget) {
  BodyCache cache(100'000);
  for (int i = 0; i < 40; ++i)
    insert(cache, key(i), body(2'000));
  ASSERT_EQ(cache.size(), 40U);
  EXPECT_FALSE(cache.set_budget(20'000, 5));
  EXPECT_GE(cache.size(), 35U);
  while (!cache.set_budget(20'000, 5))
    ASSERT_GT(cache.size(), 0U);
  EXPECT_LE(cache.bytes(), 20'000U);
  EXPECT_GE(cache.size(), 7U);
  EXPECT_TRUE(cache.set_budget(100'000, 5));
  for (int i = 100; i < 130; ++i)
    insert(cache, key(i), body(2'000));
  EXPECT_GE(cache.size(), 37U);
}

TEST(BodyCache, HandsOutBodiesThatOutliveTheirEviction) {
  BodyCache cache(10'000);
  insert(cache, "a", body(1'000, 'a'));
  const auto held = cache.find("a");
  for (int i = 0; i < 100; ++i)
    insert(cache, key(i), body(1'000));
  EXPECT_EQ(held->bytes(), std::string(1'000, 'a'));
}

TEST(BodyCache, KeepsTheFirstOfTwoUnderOneKey) {
  BodyCache cache(10'000);
  const auto first = body(10);
  insert(cache, "a", first);
  insert(cache, "a", body(10));
  EXPECT_EQ(cache.find("a"), first);
  EXPECT_EQ(cache.size(), 1U);
}

}  // namespace
}  // namespace facetheory
