// What live answers keep, together and each.
#include "facetheory/gateway/live_answer.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kKiB = 1024;

class LiveAnswerTest : public testing::Test {
 protected:
  std::shared_ptr<LiveAnswer> answer() {
    auto made = std::make_shared<LiveAnswer>(clock_, memory_);
    EXPECT_TRUE(made->claim());
    made->begin({});
    EXPECT_TRUE(std::holds_alternative<LiveHead>(test::run(made->next())));
    return made;
  }
  // What can be taken of it until it has no more bytes at the moment, which its end must say.
  static std::string bytes_of(LiveAnswer& answer) {
    std::string all;
    for (;;) {
      auto next = test::run(answer.next());
      auto* piece = std::get_if<std::string>(&next);
      if (piece == nullptr) return all;
      EXPECT_LE(piece->size(), 64 * kKiB);
      all += *piece;
    }
  }
  static bool is_let_go(LiveAnswer& answer) {
    answer.end({});
    const auto next = test::run(answer.next());
    const auto* failure = std::get_if<LiveFailure>(&next);
    EXPECT_EQ(failure != nullptr, answer.was_let_go());
    return failure != nullptr && failure->why.by == CutOff::by_gateway &&
           failure->why.error == LiveAnswer::too_slow().error;
  }

  test::ManualClock clock_;
  std::shared_ptr<LiveMemory> memory_ = std::make_shared<LiveMemory>(1024 * kKiB);
};

TEST_F(LiveAnswerTest, GivesWhatItWasGivenInPiecesOfWhichNoneIsLarge) {
  const auto live = answer();
  std::string all;
  for (int i = 0; i < 10; ++i) {
    const std::string piece(50 * kKiB + static_cast<std::size_t>(i), static_cast<char>('a' + i));
    live->give(piece);
    all += piece;
  }
  EXPECT_EQ(memory_->unread(), all.size());
  live->end({});
  EXPECT_EQ(bytes_of(*live), all);
  EXPECT_EQ(memory_->unread(), 0U);
}

TEST_F(LiveAnswerTest, BeyondTheLimitWhoeverHasTakenNothingForLongestIsLetGo) {
  const auto slow = answer();
  const auto fast = answer();
  const auto newcomer = answer();
  slow->give(std::string(400 * kKiB, 's'));
  clock_.advance(1s);
  fast->give(std::string(400 * kKiB, 'f'));
  clock_.advance(1s);
  EXPECT_TRUE(std::holds_alternative<std::string>(test::run(fast->next())));
  newcomer->give(std::string(400 * kKiB, 'n'));
  EXPECT_EQ(memory_->let_go(), 1U);
  EXPECT_EQ(memory_->unread(), (400 + 400 - 64) * kKiB);
  test::run(slow->until_let_go());
  EXPECT_TRUE(slow->is_wanted());  // The render goes on.
  slow->give("more of it");
  EXPECT_TRUE(is_let_go(*slow));
  EXPECT_FALSE(slow->has_failed());
  fast->end({});
  EXPECT_EQ(bytes_of(*fast).size(), (400 - 64) * kKiB);
  newcomer->end({});
  EXPECT_EQ(bytes_of(*newcomer).size(), 400 * kKiB);
}

// A client that keeps up has little to take, and is not the one who fills the memory.
TEST_F(LiveAnswerTest, WhoeverHasLittleToTakeIsNotLetGo) {
  const auto little = answer();
  little->give(std::string(60 * kKiB, 'l'));
  clock_.advance(10s);
  const auto much = answer();
  much->give(std::string(1000 * kKiB, 'm'));
  EXPECT_TRUE(is_let_go(*much));
  EXPECT_FALSE(is_let_go(*little));
}

TEST_F(LiveAnswerTest, WhoeverLeavesOrEndsGivesBackWhatItKept) {
  const auto leaving = answer();
  leaving->give(std::string(100 * kKiB, 'l'));
  leaving->leave();
  EXPECT_EQ(memory_->unread(), 0U);
  answer()->give(std::string(100 * kKiB, 'e'));
  EXPECT_EQ(memory_->unread(), 0U);
}

TEST_F(LiveAnswerTest, WhoseRenderIsInterruptedHasNotFailed) {
  const auto live = std::make_shared<LiveAnswer>(clock_, memory_);
  live->interrupt();
  live->fail();
  EXPECT_TRUE(std::holds_alternative<LiveFailure>(test::run(live->next())));
  EXPECT_FALSE(live->has_failed());
}

TEST_F(LiveAnswerTest, IsRefusedBeforeAnythingWasGiven) {
  const auto live = std::make_shared<LiveAnswer>(clock_, memory_);
  live->refuse();
  live->fail();
  EXPECT_TRUE(std::holds_alternative<LiveRefusal>(test::run(live->next())));
  EXPECT_FALSE(live->has_failed());
}

}  // namespace
}  // namespace facetheory
