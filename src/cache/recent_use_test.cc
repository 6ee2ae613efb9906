#include "facetheory/cache/recent_use.h"

#include <chrono>
#include <memory>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

using namespace std::chrono_literals;

class RecentUseTest : public testing::Test {
 protected:
  const std::unique_ptr<RecentUse> uses_ =
      std::make_unique<RecentUse>(10min);  // It is too large for some stacks.
};

TEST_F(RecentUseTest, KnowsWhatWasNotedAndHardlyAnythingElse) {
  EXPECT_FALSE(uses_->was_noted(7));
  uses_->note(7);
  EXPECT_TRUE(uses_->was_noted(7));
  std::uint64_t hash = 1;
  for (int i = 0; i < 10'000; ++i)
    uses_->note(hash = hash * 6364136223846793005 + 1442695040888963407);
  int others = 0;
  for (int i = 0; i < 10'000; ++i)
    others += uses_->was_noted(hash = hash * 6364136223846793005 + 1442695040888963407) ? 1 : 0;
  EXPECT_LT(others, 300);
}

TEST_F(RecentUseTest, ForgetsItAfterOneToTwoSpans) {
  uses_->look_at_clock(5h);
  uses_->note(7);
  EXPECT_TRUE(uses_->was_noted(7));
  uses_->look_at_clock(5h + 11min);
  EXPECT_TRUE(uses_->was_noted(7));
  uses_->note(8);
  uses_->look_at_clock(5h + 12min);
  EXPECT_TRUE(uses_->was_noted(7));
  uses_->look_at_clock(5h + 22min);
  EXPECT_FALSE(uses_->was_noted(7));
  EXPECT_TRUE(uses_->was_noted(8));
  uses_->look_at_clock(5h + 33min);
  EXPECT_FALSE(uses_->was_noted(8));
}

// Nobody has asked for hours.
TEST_F(RecentUseTest, KnowsWhatWasNotedJustNowWhenItIsAskedForTheFirstTime) {
  for (int minute = 0; minute < 600; ++minute)
    uses_->look_at_clock(std::chrono::minutes(minute));
  uses_->note(7);
  EXPECT_TRUE(uses_->was_noted(7));
}

}  // namespace
}  // namespace facetheory
