#include "facetheory/service/store_warnings.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/log.h"

#include "tests/support/manual_clock.h"

namespace facetheory {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StoreWarningsTest : public testing::Test {
 protected:
  StoreWarningsTest() {
    set_log_sink([this](LogLevel, std::string_view line) { log_.emplace_back(line); });
  }
  ~StoreWarningsTest() override { set_log_sink({}); }

  const Error full_{ErrorCode::exhausted, "the disk is full"};
  test::ManualClock clock_;
  std::vector<std::string> log_, told_;
  StoreObserver observer_ = with_warnings(
      [this](std::string_view operation, const Error* failed, Duration) {
        told_.push_back(std::string(operation) + (failed == nullptr ? " ok" : " failed"));
      },
      "the body store", clock_);
};

TEST_F(StoreWarningsTest, AFailureIsToldWithItsReason) {
  observer_("write", &full_, Duration(0));
  EXPECT_THAT(log_,
              ElementsAre(AllOf(HasSubstr("the body store failed (write)"), HasSubstr("the disk is full"))));
}

TEST_F(StoreWarningsTest, ASuccessIsNot) {
  observer_("write", nullptr, Duration(0));
  EXPECT_THAT(log_, ElementsAre());
}

TEST_F(StoreWarningsTest, EachOperationIsToldOfOnceAMinute) {
  observer_("write", &full_, Duration(0));
  clock_.advance(seconds(59));
  observer_("write", &full_, Duration(0));
  EXPECT_EQ(log_.size(), 1U);
  observer_("read", &full_, Duration(0));
  EXPECT_EQ(log_.size(), 2U);
  clock_.advance(seconds(1));
  observer_("write", &full_, Duration(0));
  EXPECT_EQ(log_.size(), 3U);
}

TEST_F(StoreWarningsTest, TheObserverIsToldOfEverything) {
  observer_("write", &full_, Duration(0));
  observer_("write", &full_, Duration(0));
  observer_("read", nullptr, Duration(0));
  EXPECT_THAT(told_, ElementsAre("write failed", "write failed", "read ok"));
}

}  // namespace
}  // namespace facetheory
