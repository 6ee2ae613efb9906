#include "facetheory/gateway/purge_rate.h"

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::run;

constexpr int kAtOnce = static_cast<int>(PurgeRate::kAtOnce);

class PurgeRateTest : public testing::Test {
 protected:
  ~PurgeRateTest() override {
    rate_.hurry();
    EXPECT_TRUE(all_done());
  }
  void ask(const std::string& page = "page") { asking(page).get(); }
  // Asks, and may have to wait.
  std::future<void> asking(const std::string& page = "page") {
    PurgeRate::Purge purge = [this]() -> Task<Result<void>> {
      ++purges_;
      if (fails_) co_return Error{ErrorCode::unavailable, "the table is away"};
      co_return Result<void>{};
    };
    return test::start(rate_.purge(test::executor(), page, "/" + page, std::move(purge)));
  }
  bool all_done() const {
    for (int i = 0; i < 5'000 && rate_.waiting() > 0; ++i)
      std::this_thread::sleep_for(1ms);
    return rate_.waiting() == 0;
  }

  test::ManualClock clock_;
  PurgeRate rate_{clock_};
  std::atomic<int> purges_ = 0;
  std::atomic<bool> fails_ = false;
};

TEST_F(PurgeRateTest, SoManyAreDoneAtOnceAndOneLaterForAllOthers) {
  for (int i = 0; i < kAtOnce; ++i)
    ask();
  EXPECT_EQ(purges_, kAtOnce);
  EXPECT_EQ(rate_.waiting(), 0);
  for (int i = 0; i < 100; ++i)
    ask();
  EXPECT_EQ(purges_, kAtOnce);
  EXPECT_EQ(rate_.waiting(), 1);
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  clock_.advance(999ms);
  EXPECT_EQ(purges_, kAtOnce);
  clock_.advance(1ms);
  EXPECT_TRUE(all_done());
  EXPECT_EQ(purges_, kAtOnce + 1);
}

TEST_F(PurgeRateTest, AFloodPurgesOnceASecond) {
  for (int i = 0; i < kAtOnce + 1; ++i)
    ask();
  for (int second = 1; second <= 10; ++second) {
    ASSERT_TRUE(clock_.wait_for_sleepers(1));
    clock_.advance(1s);
    ASSERT_TRUE(all_done());
    EXPECT_EQ(purges_, kAtOnce + second);
    for (int i = 0; i < 50; ++i)
      ask();
    EXPECT_EQ(rate_.waiting(), 1);
  }
}

TEST_F(PurgeRateTest, WhatIsAskedForWhileAPurgeIsUnderWayIsNotCoveredByIt) {
  for (int i = 0; i < kAtOnce; ++i)
    ask();
  std::atomic<bool> began = false;
  Event may_end;
  PurgeRate::Purge slow = [&]() -> Task<Result<void>> {
    began = true;
    co_await may_end.wait(clock_, 1h);
    ++purges_;
    co_return Result<void>{};
  };
  run(rate_.purge(test::executor(), "page", "/page", std::move(slow)));
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  clock_.advance(1s);
  for (int i = 0; i < 5'000 && !began; ++i)
    std::this_thread::sleep_for(1ms);
  ask();
  EXPECT_EQ(rate_.waiting(), 2);
  may_end.set();
  for (int i = 0; i < 5'000 && rate_.waiting() > 1; ++i)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(purges_, kAtOnce + 1);
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  clock_.advance(1s);
  EXPECT_TRUE(all_done());
  EXPECT_EQ(purges_, kAtOnce + 2);
}

TEST_F(PurgeRateTest, PagesDoNotCountForEachOther) {
  for (int i = 0; i < kAtOnce; ++i) {
    ask("one");
    ask("other");
  }
  EXPECT_EQ(purges_, 2 * kAtOnce);
  EXPECT_EQ(rate_.waiting(), 0);
}

TEST_F(PurgeRateTest, WhoWaitsGetsMoreAgain) {
  for (int i = 0; i < kAtOnce; ++i)
    ask();
  clock_.advance(3s);
  for (int i = 0; i < 3; ++i)
    ask();
  EXPECT_EQ(purges_, kAtOnce + 3);
  EXPECT_EQ(rate_.waiting(), 0);
  clock_.advance(1h);
  for (int i = 0; i < kAtOnce; ++i)
    ask();
  EXPECT_EQ(purges_, 2 * kAtOnce + 3);
  EXPECT_EQ(rate_.waiting(), 0);
}

TEST_F(PurgeRateTest, NothingIsLostAtTheEnd) {
  for (int i = 0; i < kAtOnce + 5; ++i)
    ask();
  rate_.hurry();
  EXPECT_TRUE(all_done());
  EXPECT_EQ(purges_, kAtOnce + 1);
  ask();
  EXPECT_TRUE(all_done());
  EXPECT_EQ(purges_, kAtOnce + 2);
}

TEST_F(PurgeRateTest, WhoeverAskedWaitsForAPurgeThatHangsNoLongerThanTheirPatience) {
  Event may_end;
  PurgeRate::Purge hanging = [&]() -> Task<Result<void>> {
    co_await may_end.wait(system_clock(), 60s);
    ++purges_;
    co_return Result<void>{};
  };
  auto asked = test::start(rate_.purge(test::executor(), "page", "/page", std::move(hanging)));
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  clock_.advance(1999ms);
  EXPECT_EQ(asked.wait_for(20ms), std::future_status::timeout);
  clock_.advance(1ms);
  asked.get();
  EXPECT_EQ(rate_.late(), 1U);
  EXPECT_EQ(rate_.waiting(), 1);
  EXPECT_EQ(purges_, 0);
  may_end.set();
  EXPECT_TRUE(all_done());
  EXPECT_EQ(purges_, 1);
  EXPECT_EQ(rate_.lost(), 0U);
}

TEST_F(PurgeRateTest, OneThatFailsIsRepeatedAndStandsForThoseThatAreAskedForMeanwhile) {
  fails_ = true;
  auto asked = asking();
  ASSERT_TRUE(clock_.wait_for_sleepers(2));  // Whoever asked, and the pause.
  EXPECT_EQ(purges_, 1);
  ask();
  EXPECT_EQ(purges_, 1);
  fails_ = false;
  clock_.advance(1s);
  asked.get();
  EXPECT_TRUE(all_done());
  EXPECT_EQ(purges_, 2);
  EXPECT_EQ(rate_.late(), 0U);
}

TEST_F(PurgeRateTest, OneThatFailsForTooLongIsLostAndCounted) {
  fails_ = true;
  auto asked = asking();
  ASSERT_TRUE(clock_.wait_for_sleepers(2));
  for (int i = 0; i < 5'000 && rate_.waiting() > 0; ++i) {
    clock_.advance(1s);
    std::this_thread::sleep_for(1ms);
  }
  asked.get();
  EXPECT_EQ(rate_.lost(), 1U);
  EXPECT_EQ(rate_.late(), 1U);
  EXPECT_EQ(rate_.waiting(), 0);
}

TEST_F(PurgeRateTest, WhatFailsAtTheEndIsNotRepeated) {
  fails_ = true;
  auto asked = asking();
  ASSERT_TRUE(clock_.wait_for_sleepers(2));
  rate_.hurry();
  EXPECT_TRUE(all_done());
  asked.get();
  EXPECT_EQ(purges_, 2);
  EXPECT_EQ(rate_.lost(), 1U);
}

TEST_F(PurgeRateTest, SoManyAreUnderWayAndNoMore) {
  fails_ = true;
  std::vector<std::future<void>> all;
  for (int i = 0; i < PurgeRate::kMostUnderWay; ++i)
    all.push_back(asking(std::to_string(i)));
  ASSERT_TRUE(clock_.wait_for_sleepers(2 * static_cast<std::size_t>(PurgeRate::kMostUnderWay)));
  EXPECT_EQ(rate_.lost(), 0U);
  ask("one too many");
  EXPECT_EQ(rate_.lost(), 1U);
  rate_.hurry();
  for (auto& asked : all)
    asked.get();
}

TEST_F(PurgeRateTest, MorePagesThanAreRememberedArePurgedAllTheSame) {
  const int pages = static_cast<int>(PurgeRate::kMostPages) + 10;
  for (int i = 0; i < pages; ++i)
    ask(std::to_string(i));
  EXPECT_EQ(purges_, pages);
  for (int i = 0; i < 2 * kAtOnce; ++i)
    ask("one too many");
  EXPECT_EQ(purges_, pages + 2 * kAtOnce);
  // Those that are as if they had never been asked for make room.
  clock_.advance(1h);
  for (int i = 0; i < 2 * kAtOnce; ++i)
    ask("one too many");
  EXPECT_EQ(purges_, pages + 3 * kAtOnce);
  EXPECT_EQ(rate_.waiting(), 1);
}

}  // namespace
}  // namespace facetheory
