#include "facetheory/base/first_to_end.h"

#include <chrono>
#include <stdexcept>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

class FirstToEnd : public testing::Test {
 protected:
  Task<void> ends_after(std::chrono::milliseconds time, const char* name) {
    asio::steady_timer timer(loop_, time);
    co_await timer.async_wait(asio::use_awaitable);
    said_ += name;
  }
  Task<void> throws_after(std::chrono::milliseconds time) {
    asio::steady_timer timer(loop_, time);
    co_await timer.async_wait(asio::use_awaitable);
    throw std::runtime_error("thrown");
  }
  Task<void> never_ends() {
    asio::steady_timer timer(loop_, asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
  }
  // What became of both, within a second.
  std::string outcome(Task<void> one, Task<void> other) {
    std::string found = "neither ended";
    asio::co_spawn(loop_, first_to_end(std::move(one), std::move(other)), [&](std::exception_ptr thrown) {
      try {
        if (thrown) std::rethrow_exception(thrown);
        found = "ended";
      } catch (const std::exception& error) {
        found = error.what();
      }
    });
    loop_.run_for(1s);
    return found + said_;
  }

  asio::io_context loop_{1};
  std::string said_;
};

TEST_F(FirstToEnd, EndsWithTheFirstAndCancelsTheOther) {
  EXPECT_EQ(outcome(ends_after(1ms, " one"), never_ends()), "ended one");
}

TEST_F(FirstToEnd, EndsWithTheOtherWhereThatIsFirst) {
  EXPECT_EQ(outcome(ends_after(500ms, " one"), ends_after(1ms, " other")), "ended other");
}

TEST_F(FirstToEnd, EndsWithTheFirstAlsoWhenItThrows) {
  EXPECT_EQ(outcome(throws_after(1ms), never_ends()), "thrown");
}

TEST_F(FirstToEnd, ThrowsWhatTheFirstThrewAndNotWhatTheOtherDidWhenItWasCancelled) {
  EXPECT_EQ(outcome(throws_after(1ms), ends_after(500ms, " other")), "thrown");
  loop_.restart();
  EXPECT_EQ(outcome(ends_after(1ms, " one"), throws_after(500ms)), "ended one");
}

}  // namespace
}  // namespace facetheory
