#include "facetheory/base/log.h"

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    set_log_sink([this](LogLevel level, std::string_view message) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(level, message);
    });
  }
  ~LogTest() override {
    set_log_sink({});
    set_log_level(LogLevel::info);
  }

  std::mutex mutex_;
  std::vector<std::pair<LogLevel, std::string>> lines_;  // guarded by mutex_
};

TEST_F(LogTest, GivesTheSinkEveryLineFromInfoUpwards) {
  log(LogLevel::debug, "d");
  log(LogLevel::info, "i");
  log(LogLevel::warning, "w");
  log(LogLevel::error, "e");
  EXPECT_THAT(lines_, ElementsAre(Pair(LogLevel::info, "i"), Pair(LogLevel::warning, "w"),
                                  Pair(LogLevel::error, "e")));
}

TEST_F(LogTest, DropsWhatIsBelowTheLevel) {
  set_log_level(LogLevel::error);
  log(LogLevel::warning, "w");
  log(LogLevel::error, "e");
  set_log_level(LogLevel::debug);
  log(LogLevel::debug, "d");
  EXPECT_THAT(lines_, ElementsAre(Pair(LogLevel::error, "e"), Pair(LogLevel::debug, "d")));
}

TEST_F(LogTest, WritesToStderrWithoutASink) {
  set_log_sink({});
  testing::internal::CaptureStderr();
  log(LogLevel::debug, "unheard");
  log(LogLevel::warning, "{} is not a format: 100 %s");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, AllOf(HasSubstr("{} is not a format: 100 %s\n"), HasSubstr("warning"),
                          Not(HasSubstr("unheard"))));
  EXPECT_TRUE(lines_.empty());
}

TEST_F(LogTest, WritesDebugLinesToStderrOnceAskedTo) {
  set_log_sink({});
  set_log_level(LogLevel::debug);
  testing::internal::CaptureStderr();
  log(LogLevel::debug, "heard");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("heard"));
}

TEST_F(LogTest, ASinkMayLogAndReplaceItself) {
  std::vector<std::string> inner;
  set_log_sink([&](LogLevel, std::string_view message) {
    inner.emplace_back(message);
    if (inner.size() == 1) {
      log(LogLevel::info, "from the sink");
      set_log_sink(
          [&](LogLevel, std::string_view later) { inner.push_back("second: " + std::string(later)); });
    }
  });
  log(LogLevel::info, "first");
  log(LogLevel::info, "last");
  EXPECT_THAT(inner, ElementsAre("first", "from the sink", "second: last"));
}

TEST_F(LogTest, TakesLinesFromManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int line = 0; line < 100; ++line)
        log(LogLevel::info, "line");
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(lines_.size(), 400U);
}

}  // namespace
}  // namespace facetheory
