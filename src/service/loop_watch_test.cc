#include "facetheory/service/loop_watch.h"

#include <future>
#include <string>
#include <vector>

#include <boost/asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/log.h"
#include "facetheory/base/loop_thread.h"

#include "tests/support/manual_clock.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class LoopWatchTest : public testing::Test {
 protected:
  LoopWatchTest() {
    set_log_sink([this](LogLevel, std::string_view line) { lines_.emplace_back(line); });
    watch_.add("serving 1", loop_.executor());
    watch_.add("background", other_.executor());
  }
  ~LoopWatchTest() override { set_log_sink({}); }

  // What was posted to it has run.
  static void settle(LoopThread& loop) {
    std::promise<void> done;
    boost::asio::post(loop.executor(), [&] { done.set_value(); });
    done.get_future().get();
  }
  void check_for(std::chrono::seconds duration) {
    for (auto second = 0s; second < duration; second += 1s) {
      watch_.check();
      settle(other_);
      clock_.advance(1s);
    }
  }

  std::vector<std::string> lines_;
  test::ManualClock clock_;
  LoopThread loop_{"serving"};
  LoopThread other_{"background"};
  LoopWatch watch_{clock_};
};

TEST_F(LoopWatchTest, LoopsThatGoOnAreNoTrouble) {
  for (int i = 0; i < 20; ++i) {
    watch_.check();
    settle(loop_);
    settle(other_);
    clock_.advance(1s);
  }
  EXPECT_FALSE(watch_.trouble());
  EXPECT_TRUE(lines_.empty());
}

TEST_F(LoopWatchTest, ALoopThatHasStoppedIsToldOfOnceAndAgainWhenItGoesOn) {
  std::promise<void> gate;
  boost::asio::post(loop_.executor(), [opened = gate.get_future().share()] { opened.wait(); });
  check_for(5s);
  EXPECT_FALSE(watch_.trouble());
  check_for(5s);
  ASSERT_TRUE(watch_.trouble());
  EXPECT_THAT(watch_.trouble()->message, HasSubstr("\"serving 1\" has stopped"));
  EXPECT_THAT(lines_, testing::ElementsAre(HasSubstr("\"serving 1\" has stopped")));

  gate.set_value();
  settle(loop_);
  EXPECT_FALSE(watch_.trouble());
  watch_.check();
  EXPECT_THAT(lines_.back(), HasSubstr("\"serving 1\" goes on again"));
  EXPECT_EQ(lines_.size(), 2U);
}

// A process that was stopped, or a clock that jumps, is nobody's fault.
TEST_F(LoopWatchTest, ALoopIsNotToldOfBeforeItCouldAnswer) {
  watch_.check();
  settle(loop_);
  settle(other_);
  clock_.advance(1h);
  watch_.check();
  EXPECT_FALSE(watch_.trouble());
  EXPECT_TRUE(lines_.empty());
}

}  // namespace
}  // namespace facetheory
