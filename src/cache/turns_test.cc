#include "facetheory/cache/turns.h"

#include <algorithm>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;

class TurnsTest : public testing::Test {
 protected:
  // Somebody who comes for a turn, keeps it until told, and goes.
  struct Visitor {
    std::string name;
    std::shared_ptr<Turns::Place> place = Turns::place(30s);
    Event go_on = {};
    Event leaves = {};  // Is not patient enough, and is cancelled.
    std::future<void> ended = {};
  };
  using VisitorPointer = std::shared_ptr<Visitor>;

  ~TurnsTest() override {
    for (const VisitorPointer& visitor : visitors_) {
      visitor->go_on.set();
      visitor->leaves.set();
    }
    for (const VisitorPointer& visitor : visitors_)
      if (visitor->ended.valid()) visitor->ended.wait();
  }

  Task<void> visit(VisitorPointer visitor) {
    using namespace boost::asio::experimental::awaitable_operators;
    const auto coming = [&]() -> Task<void> {
      const std::shared_ptr<void> turn = co_await turns_->take(visitor->place);
      note(turn ? visitor->name : "no " + visitor->name);
      if (turn) co_await visitor->go_on.wait(system_clock(), 60s);
    };
    Task<void> first = coming();
    Task<bool> leaving = visitor->leaves.wait(system_clock(), 60s);
    co_await (std::move(first) || std::move(leaving));
  }

  // Comes, and is where it is going to be: it has its turn, queues or was sent away.
  VisitorPointer comes(std::string name, Wanted wanted, Duration patience = 3600s) {
    return comes_to(Turns::place(30s), std::move(name), wanted, patience);
  }
  // Begins once more what came to nothing in that one's turn.
  VisitorPointer comes_again(const VisitorPointer& lost, std::string name) {
    return comes_to(turns_->place_again(30s, *lost->place), std::move(name), kWaiters, 3600s);
  }
  VisitorPointer comes_to(std::shared_ptr<Turns::Place> place, std::string name, Wanted wanted,
                          Duration patience) {
    auto visitor = std::make_shared<Visitor>();
    visitor->name = std::move(name);
    visitor->place = std::move(place);
    turns_->want(visitor->place, wanted, clock_.monotonic() + patience);
    const std::size_t before = turns_->queued() + came().size();
    visitor->ended = test::start(visit(visitor));
    EXPECT_TRUE(eventually([&] { return turns_->queued() + came().size() == before + 1; })) << visitor->name;
    visitors_.push_back(visitor);
    return visitor;
  }
  static void ends(const VisitorPointer& visitor) {
    visitor->go_on.set();
    visitor->ended.get();
  }

  template <typename Condition>
  static bool eventually(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      test::run(system_clock().sleep_for(1ms));
    }
    return false;
  }
  // Who had a turn, or got none, in this order.
  bool came_in_order(const std::vector<std::string>& expected) {
    const bool came_so = eventually([&] { return came() == expected; });
    EXPECT_EQ(came(), expected);
    return came_so;
  }
  void note(std::string name) {
    const std::lock_guard lock(mutex_);
    came_.push_back(std::move(name));
  }
  std::vector<std::string> came() {
    const std::lock_guard lock(mutex_);
    return came_;
  }

  void make(int at_once, std::size_t most_queued = 1000) {
    turns_ = std::make_shared<Turns>(clock_, at_once, most_queued);
  }

  static constexpr Wanted kWaiters = Wanted::by_waiters;
  static constexpr Wanted kBackground = Wanted::in_background;
  test::ManualClock clock_;
  std::shared_ptr<Turns> turns_ = std::make_shared<Turns>(clock_, 1, 1000);
  std::vector<VisitorPointer> visitors_;
  std::mutex mutex_;
  std::vector<std::string> came_;
};

TEST_F(TurnsTest, ComeInTheOrderInWhichTheyWereAskedFor) {
  const auto first = comes("first", kWaiters);
  const auto second = comes("second", kWaiters);
  const auto third = comes("third", kWaiters);
  EXPECT_EQ(came(), std::vector<std::string>{"first"});
  EXPECT_EQ(turns_->queued(), 2U);
  ends(first);
  ASSERT_TRUE(came_in_order({"first", "second"}));
  ends(second);
  ends(third);
  ASSERT_TRUE(came_in_order({"first", "second", "third"}));
  comes("fourth", kWaiters);  // All were given back.
  EXPECT_TRUE(came_in_order({"first", "second", "third", "fourth"}));
}

TEST_F(TurnsTest, WhoeverBeginsAgainWhatCameToNothingGoesBeforeAllWhoCameLater) {
  const auto first = comes("first", kWaiters);
  const auto second = comes("second", kWaiters);
  comes("third", kWaiters);
  ends(first);
  ASSERT_TRUE(came_in_order({"first", "second"}));
  const auto again = comes_again(first, "first again");
  ends(second);
  ASSERT_TRUE(came_in_order({"first", "second", "first again"}));
  ends(again);
  EXPECT_TRUE(came_in_order({"first", "second", "first again", "third"}));
}

TEST_F(TurnsTest, WhoeverBeginsAgainHasAPlaceAlsoWhereTheQueueIsFull) {
  make(1, 1);
  const auto first = comes("first", kWaiters);
  const auto second = comes("second", kWaiters);
  ends(first);
  ASSERT_TRUE(came_in_order({"first", "second"}));
  comes("third", kWaiters);
  comes_again(first, "first again");
  comes_again(first, "twice");  // Its place is taken, so it comes as others do, and there is no room.
  ASSERT_TRUE(came_in_order({"first", "second", "no twice"}));
  ends(second);
  EXPECT_TRUE(came_in_order({"first", "second", "no twice", "first again"}));
}

TEST_F(TurnsTest, WhoeverIsWaitedForGoesBeforeTheBackground) {
  const auto first = comes("first", kWaiters);
  comes("background", kBackground);
  const auto visitor = comes("visitor", kWaiters);
  ends(first);
  ASSERT_TRUE(came_in_order({"first", "visitor"}));
  ends(visitor);
  EXPECT_TRUE(came_in_order({"first", "visitor", "background"}));
}

TEST_F(TurnsTest, TheBackgroundHasOneTurnInFour) {
  VisitorPointer now = comes("first", kWaiters);
  comes("background 1", kBackground);
  comes("background 2", kBackground);
  for (int i = 1; i <= 8; ++i)
    comes("visitor " + std::to_string(i), kWaiters);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(eventually([&] { return came().size() == static_cast<std::size_t>(i) + 1; }));
    const std::string last = came().back();
    for (const VisitorPointer& one : visitors_)
      if (one->name == last) now = one;
    ends(now);
  }
  EXPECT_TRUE(came_in_order({"first", "visitor 1", "visitor 2", "visitor 3", "background 1", "visitor 4",
                             "visitor 5", "visitor 6", "background 2", "visitor 7", "visitor 8"}));
}

TEST_F(TurnsTest, WhatNobodyWantsAnyMoreLeavesTheQueueAtOnce) {
  const auto first = comes("first", kWaiters);
  const auto abandoned = comes("abandoned", kWaiters);
  turns_->want(abandoned->place, Wanted::by_nobody);
  EXPECT_EQ(turns_->queued(), 0U);
  ASSERT_TRUE(came_in_order({"first", "no abandoned"}));
  EXPECT_EQ(turns_->counters().dropped, 1U);
  EXPECT_FALSE(turns_->was_refused(*abandoned->place));
  // And does not queue in the first place; but a turn that is free costs nobody anything.
  comes("nobody's", Wanted::by_nobody);
  ASSERT_TRUE(came_in_order({"first", "no abandoned", "no nobody's"}));
  ends(first);
  comes("nobody's again", Wanted::by_nobody);
  EXPECT_TRUE(came_in_order({"first", "no abandoned", "no nobody's", "nobody's again"}));
}

TEST_F(TurnsTest, WhoIsWaitedForOnlyNowGoesBeforeTheBackgroundAndKeepsItsPlaceAmongThoseWhoAre) {
  const auto first = comes("first", kWaiters);
  const auto joined = comes("joined", kBackground);
  const auto left = comes("left", kWaiters);
  const auto visitor = comes("visitor", kWaiters);
  turns_->want(joined->place, kWaiters, clock_.monotonic() + 3600s);
  turns_->want(left->place, kBackground);
  ends(first);
  ASSERT_TRUE(came_in_order({"first", "joined"}));
  ends(joined);
  ASSERT_TRUE(came_in_order({"first", "joined", "visitor"}));
  ends(visitor);
  EXPECT_TRUE(came_in_order({"first", "joined", "visitor", "left"}));
}

TEST_F(TurnsTest, AnEighthIsKeptForThoseWhoWaitWhileOthersAreHeldForNobody) {
  make(8);
  for (int i = 0; i < 7; ++i)
    comes("abandoned", kWaiters);
  const auto eighth = comes("eighth", kWaiters);
  EXPECT_EQ(turns_->queued(), 1U);  // Seven are for everybody.
  // One of the seven has been abandoned while it was under way: its turn is as good as free, once.
  turns_->want(visitors_[0]->place, Wanted::by_nobody);
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  clock_.advance(200ms);  // Others may be about to leave, the eighth among them.
  EXPECT_EQ(turns_->queued(), 1U);
  ASSERT_TRUE(clock_.wait_for_sleepers(1));
  clock_.advance(100ms);
  ASSERT_TRUE(eventually([&] { return came().back() == "eighth"; }));
  turns_->want(visitors_[1]->place, Wanted::by_nobody);
  comes("ninth", kWaiters);
  EXPECT_EQ(turns_->queued(), 1U);
  comes("background", kBackground);
  clock_.advance(1s);
  EXPECT_EQ(turns_->queued(), 2U);
  // Those who were abandoned end: only then there is room for others.
  ends(visitors_[0]);
  ends(visitors_[1]);
  EXPECT_TRUE(eventually([&] { return turns_->queued() == 1; }));
}

TEST_F(TurnsTest, ThoseBehindManyOthersDoNotLookAgainAndAgain) {
  make(8);
  for (int i = 0; i < 7; ++i)
    comes("rendered", kWaiters);
  for (int i = 0; i < 20; ++i)
    comes("queued", kWaiters);
  ASSERT_TRUE(clock_.wait_for_sleepers(20));
  const auto sleeps = clock_.sleeps();
  EXPECT_EQ(std::count(sleeps.begin(), sleeps.end(), Duration(100ms)), 2);  // One turn is reserved.
  EXPECT_EQ(std::count(sleeps.begin(), sleeps.end(), Duration(1s)), 18);
}

TEST_F(TurnsTest, AVisitorNeedNotWaitForTheBackgroundToEnd) {
  make(8);
  for (int i = 0; i < 10; ++i)
    comes("background", kBackground);
  EXPECT_EQ(turns_->queued(), 3U);
  clock_.advance(300ms);
  comes("visitor", kWaiters);
  EXPECT_EQ(came().back(), "visitor");
}

TEST_F(TurnsTest, WhoIsInterruptedWhileQueueingLosesNoTurn) {
  const auto first = comes("first", kWaiters);
  const auto impatient = comes("impatient", kWaiters);
  comes("patient", kWaiters);
  impatient->leaves.set();
  impatient->ended.get();
  EXPECT_EQ(turns_->queued(), 1U);
  ends(first);
  EXPECT_TRUE(came_in_order({"first", "patient"}));
}

TEST_F(TurnsTest, WhoIsInterruptedInTheMomentHisTurnComesGivesItOn) {
  for (int i = 0; i < 200; ++i) {
    came_.clear();
    const auto first = comes("first", kWaiters);
    const auto impatient = comes("impatient", kWaiters);
    const auto patient = comes("patient", kWaiters);
    first->go_on.set();
    impatient->leaves.set();
    impatient->go_on.set();
    ASSERT_TRUE(eventually([&] { return !came().empty() && came().back() == "patient"; })) << i;
    ends(patient);
    first->ended.get();
    impatient->ended.get();
    ASSERT_EQ(turns_->queued(), 0U);
    visitors_.clear();
  }
}

TEST_F(TurnsTest, TheBackgroundQueuesForAsLongAsItsPatience) {
  comes("first", kWaiters);
  comes("background", kBackground);
  comes("visitor", kWaiters);
  ASSERT_TRUE(clock_.wait_for_sleepers(2));
  clock_.advance(29s);
  EXPECT_EQ(turns_->queued(), 2U);
  EXPECT_EQ(turns_->oldest(), 29s);
  ASSERT_TRUE(clock_.wait_for_sleepers(2));  // Both have looked, and queue on.
  clock_.advance(1s);
  ASSERT_TRUE(came_in_order({"first", "no background"}));
  EXPECT_EQ(turns_->queued(), 1U);  // Whoever has waiters leaves with them.
  EXPECT_EQ(turns_->counters().dropped, 1U);
}

TEST_F(TurnsTest, TheQueueIsBounded) {
  make(1, 2);
  comes("first", kWaiters);
  comes("background 1", kBackground);
  comes("background 2", kBackground);
  comes("visitor 1", kWaiters);
  comes("visitor 2", kWaiters);
  const auto third = comes("visitor 3", kWaiters);
  const auto background = comes("background 3", kBackground);
  EXPECT_TRUE(came_in_order({"first", "no visitor 3", "no background 3"}));
  EXPECT_TRUE(turns_->was_refused(*third->place));
  EXPECT_FALSE(turns_->was_refused(*background->place));
  EXPECT_EQ(turns_->counters().refused, 1U);
  EXPECT_EQ(turns_->counters().dropped, 1U);
}

TEST_F(TurnsTest, WhoseTurnWouldComeTooLateIsRefusedAtOnce) {
  comes("first", kWaiters);
  comes("second", kWaiters, 30s);
  comes("third", kWaiters, 30s);
  clock_.advance(10s);  // So long the first one takes at least, and so will the others.
  EXPECT_EQ(turns_->expected_wait(), 20s);
  const auto late = comes("late", kWaiters, 15s);
  comes("patient", kWaiters, 25s);
  EXPECT_TRUE(came_in_order({"first", "no late"}));
  EXPECT_TRUE(turns_->was_refused(*late->place));
  EXPECT_EQ(turns_->queued(), 3U);
}

TEST_F(TurnsTest, WhoseTurnTurnsOutToComeTooLateIsSentAwayEarly) {
  make(8);
  std::vector<VisitorPointer> first;
  for (int i = 0; i < 7; ++i)
    first.push_back(comes("first", kWaiters));
  std::vector<VisitorPointer> queued;
  for (int i = 0; i < 28; ++i)
    queued.push_back(comes("queued", kWaiters, 30s));
  clock_.advance(10s);
  for (const auto& each : first)
    ends(each);
  ASSERT_TRUE(eventually([&] { return turns_->queued() == 21; }));
  ends(queued[0]);  // The eighth that is measured: now it is known what a turn takes.
  // Those who are left have 20 s: seven turns at once, of nearly 9 s each.
  EXPECT_TRUE(eventually([&] { return turns_->counters().refused > 0; }));
  EXPECT_EQ(turns_->queued() + turns_->counters().refused, 20U);
  EXPECT_GE(turns_->queued(), 14U);
  EXPECT_TRUE(turns_->was_refused(*queued.back()->place));
}

TEST_F(TurnsTest, WhatTurnsTookLongAgoSaysNothingOfToday) {
  for (int i = 0; i < 8; ++i) {
    const auto slow = comes("slow", kWaiters);
    clock_.advance(10s);
    ends(slow);
  }
  comes("now", kWaiters);
  comes("next", kWaiters);
  EXPECT_EQ(turns_->expected_wait(), 10s);
  clock_.advance(31s);
  EXPECT_EQ(turns_->expected_wait(), 31s);  // Only what is seen of the one that has the turn.
}

}  // namespace
}  // namespace facetheory
