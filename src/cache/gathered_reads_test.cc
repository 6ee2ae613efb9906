// Reads that are wanted at about the same time, in simulated time: every step is taken on one thread.
#include "facetheory/cache/gathered_reads.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Key key_of_page(int number) {
  return {"page " + std::to_string(number), "META"};
}

class GatheredReadsTest : public testing::Test {
 protected:
  // Takes 5 ms. Every row is there, but those of pages below zero.
  Task<GatheredReads::Items> read(std::vector<Key> keys) {
    requests_.push_back(keys);
    const std::optional<Error> fails = fails_;
    co_await clock_.sleep_for(takes_);
    if (fails) co_return *fails;
    std::vector<std::optional<Item>> items;
    for (const Key& key : keys) {
      if (poisoned_ && key == *poisoned_) co_return Error{ErrorCode::corrupt, "a row cannot be read"};
      items.push_back(key.pk.starts_with("page -") ? std::nullopt : std::optional(Item{key, {}}));
    }
    co_return items;
  }

  struct Asked {
    std::vector<Key> keys;
    std::optional<GatheredReads::Items> found;
    Duration took{0};
    boost::asio::cancellation_signal leaves;
  };
  std::shared_ptr<Asked> ask(std::vector<int> pages) {
    auto asked = std::make_shared<Asked>();
    for (const int page : pages)
      asked->keys.push_back(key_of_page(page));
    boost::asio::co_spawn(
        loop_, serve(asked),
        boost::asio::bind_cancellation_slot(asked->leaves.slot(), [](const std::exception_ptr&) {}));
    settle();
    return asked;
  }
  Task<void> serve(std::shared_ptr<Asked> asked) {
    const Duration came = clock_.monotonic();
    std::vector<Key> keys = asked->keys;
    auto found = co_await reads_.get_all(std::move(keys));
    asked->found.emplace(std::move(found));
    asked->took = clock_.monotonic() - came;
  }
  void settle() {
    loop_.restart();
    while (loop_.poll() > 0)
      loop_.restart();
  }
  void pass(Duration time) {
    for (const Duration end = clock_.monotonic() + time; clock_.monotonic() < end;) {
      clock_.advance(100us);
      settle();
    }
  }
  // What was asked for was found, each in its place.
  static void has_own_rows(const Asked& asked) {
    ASSERT_TRUE(asked.found);
    ASSERT_TRUE(*asked.found) << to_string(asked.found->error());
    ASSERT_EQ((*asked.found)->size(), asked.keys.size());
    for (std::size_t i = 0; i < asked.keys.size(); ++i) {
      const std::optional<Item>& item = (**asked.found)[i];
      EXPECT_EQ(item.has_value(), !asked.keys[i].pk.starts_with("page -"));
      if (item) {
        EXPECT_EQ(item->key, asked.keys[i]);
      }
    }
  }

  boost::asio::io_context loop_{1};
  test::ManualClock clock_;
  std::vector<std::vector<Key>> requests_;
  Duration takes_ = 5ms;
  std::optional<Error> fails_;
  std::optional<Key> poisoned_;
  GatheredReads reads_{clock_, [this](std::vector<Key> keys) { return read(std::move(keys)); }};
};

TEST_F(GatheredReadsTest, ReadBesideWhichNoneIsUnderWayGoesAtOnce) {
  const auto first = ask({1});
  EXPECT_THAT(requests_, SizeIs(1));
  pass(5ms);
  EXPECT_EQ(first->took, 5ms);
  const auto second = ask({2});
  EXPECT_THAT(requests_, SizeIs(2));
  pass(5ms);
  EXPECT_EQ(second->took, 5ms);
  has_own_rows(*second);
}

TEST_F(GatheredReadsTest, ReadsBesideOneThatIsUnderWayGoTogetherAMillisecondLaterAtTheMost) {
  const auto first = ask({1, 2});
  const auto second = ask({3, 2});
  pass(400us);
  const auto third = ask({-4});
  EXPECT_THAT(requests_, SizeIs(1));
  pass(600us);
  ASSERT_THAT(requests_, SizeIs(2));
  EXPECT_THAT(requests_[1], ElementsAre(key_of_page(3), key_of_page(2), key_of_page(-4)));
  pass(5ms);
  EXPECT_THAT(requests_, SizeIs(2));
  EXPECT_EQ(first->took, 5ms);
  EXPECT_EQ(second->took, 6ms);
  EXPECT_EQ(third->took, 5600us);
  has_own_rows(*first);
  has_own_rows(*second);
  has_own_rows(*third);
}

TEST_F(GatheredReadsTest, ReadsThatHaveGatheredGoAsSoonAsTheOneUnderWayHasEnded) {
  ask({1});
  pass(4700us);
  const auto second = ask({2});
  pass(300us);
  EXPECT_THAT(requests_, SizeIs(2));
  pass(5ms);
  EXPECT_EQ(second->took, 5300us);
}

TEST_F(GatheredReadsTest, RowThatManyWantIsAskedForOnce) {
  ask({0});
  std::vector<std::shared_ptr<Asked>> all;
  for (int page = 1; page <= 30; ++page)
    all.push_back(ask({page, 1000, 1001}));
  pass(10ms);
  ASSERT_THAT(requests_, SizeIs(2));
  EXPECT_THAT(requests_[1], SizeIs(32));
  for (const auto& one : all)
    has_own_rows(*one);
}

TEST_F(GatheredReadsTest, NoRequestHasMoreKeysThanDynamoDbTakes) {
  ask({0});
  std::vector<std::shared_ptr<Asked>> all;
  for (int page = 1; page <= 240; page += 2)
    all.push_back(ask({page, page + 1}));
  EXPECT_THAT(requests_, SizeIs(3));  // Those that are full wait no longer.
  pass(10ms);
  ASSERT_THAT(requests_, SizeIs(4));
  EXPECT_THAT(requests_[1], SizeIs(100));
  EXPECT_THAT(requests_[2], SizeIs(100));
  EXPECT_THAT(requests_[3], SizeIs(40));
  for (const auto& one : all)
    has_own_rows(*one);
}

TEST_F(GatheredReadsTest, ReadOfMoreKeysThanThatIsTheTablesBusiness) {
  std::vector<int> pages(150);
  for (int i = 0; i < 150; ++i)
    pages[static_cast<std::size_t>(i)] = i;
  const auto asked = ask(pages);
  pass(5ms);
  EXPECT_THAT(requests_, SizeIs(1));
  has_own_rows(*asked);
}

TEST_F(GatheredReadsTest, RowThatCannotBeReadFailsThoseAloneWhoWantIt) {
  poisoned_ = key_of_page(2);
  ask({0});
  const auto second = ask({1, 5});
  const auto third = ask({2});
  const auto fourth = ask({3});
  pass(20ms);
  has_own_rows(*second);
  has_own_rows(*fourth);
  ASSERT_TRUE(third->found);
  EXPECT_EQ(third->found->error().code, ErrorCode::corrupt);
  EXPECT_THAT(requests_, SizeIs(5));  // The first, all three, and each by itself.
}

TEST_F(GatheredReadsTest, ThrottledRequestIsTriedOnceMoreByEachForItself) {
  ask({0});
  fails_ = Error{ErrorCode::unavailable, "throttled"};
  const auto second = ask({1});
  const auto third = ask({2});
  pass(2ms);
  fails_.reset();
  pass(20ms);
  has_own_rows(*second);
  has_own_rows(*third);
}

TEST_F(GatheredReadsTest, TableThatDoesNotAnswerIsNotAskedTwice) {
  ask({0});
  takes_ = 2s;
  fails_ = Error{ErrorCode::unavailable, "no answer"};
  const auto second = ask({1});
  const auto third = ask({2});
  pass(3s);
  EXPECT_THAT(requests_, SizeIs(2));
  ASSERT_TRUE(second->found && third->found);
  EXPECT_EQ(second->found->error().message, "no answer");
  EXPECT_EQ(third->found->error().message, "no answer");
  EXPECT_LT(third->took, 2002ms);
}

TEST_F(GatheredReadsTest, WhoeverReadsForAllMayLeaveAndTheOthersAreAnswered) {
  ask({0});
  const auto leaving = ask({1});
  const auto second = ask({2});
  const auto third = ask({3});
  leaving->leaves.emit(boost::asio::cancellation_type::terminal);
  settle();
  pass(20ms);
  EXPECT_FALSE(leaving->found);
  has_own_rows(*second);
  has_own_rows(*third);
  // And while its request is under way.
  takes_ = 100ms;
  const auto reading = ask({4});
  pass(1ms);
  const auto together = ask({5});
  const auto follows = ask({6});
  pass(10ms);
  together->leaves.emit(boost::asio::cancellation_type::terminal);
  settle();
  pass(300ms);
  EXPECT_FALSE(together->found);
  has_own_rows(*reading);
  has_own_rows(*follows);
  // Nothing is thought to be under way any more.
  takes_ = 5ms;
  const auto alone = ask({7});
  pass(5ms);
  EXPECT_EQ(alone->took, 5ms);
}

}  // namespace
}  // namespace facetheory
