#include "facetheory/base/run_on.h"

#include <semaphore>
#include <stdexcept>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

namespace asio = boost::asio;

class RunOnTest : public testing::Test {
 protected:
  // Starts `run_on(strand_, task)`; what became of it is in `outcome_` once the loop has run.
  void begin(Task<int> task) {
    const auto caller = [](asio::any_io_executor strand, std::string& outcome,
                           Task<int> awaited) -> Task<void> {
      try {
        outcome = std::to_string(co_await run_on<int>(strand, std::move(awaited)));
      } catch (const boost::system::system_error& error) {
        outcome = error.code() == asio::error::operation_aborted ? "cancelled" : error.what();
      } catch (const std::exception& error) {
        outcome = error.what();
      }
    };
    asio::co_spawn(loop_, caller(strand_, outcome_, std::move(task)),
                   asio::bind_cancellation_slot(cancellation_.slot(), [](const std::exception_ptr&) {}));
  }

  asio::io_context loop_;
  asio::any_io_executor strand_ = asio::make_strand(loop_);
  asio::cancellation_signal cancellation_;
  std::string outcome_ = "(nothing)";
  bool began_ = false;
};

TEST_F(RunOnTest, BringsTheResultBack) {
  const auto task = []() -> Task<int> { co_return 42; };
  begin(task());
  loop_.run();
  EXPECT_EQ(outcome_, "42");
}

TEST_F(RunOnTest, BringsAnExceptionBack) {
  const auto task = []() -> Task<int> {
    throw std::runtime_error("boom");
    co_return 0;
  };
  begin(task());
  loop_.run();
  EXPECT_EQ(outcome_, "boom");
}

TEST_F(RunOnTest, CancelsATaskThatWaits) {
  const auto task = [](bool& began) -> Task<int> {
    began = true;
    asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
    co_await timer.async_wait(asio::use_awaitable);
    co_return 0;
  };
  begin(task(began_));
  while (!began_ && loop_.poll_one() > 0) {
  }
  ASSERT_TRUE(began_);
  cancellation_.emit(asio::cancellation_type::terminal);
  loop_.run();
  EXPECT_EQ(outcome_, "cancelled");
}

TEST_F(RunOnTest, SurvivesACancellationBeforeTheTaskHasBegun) {
  const auto task = [](bool& began) -> Task<int> {
    began = true;
    asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
    co_await timer.async_wait(asio::use_awaitable);
    co_return 0;
  };
  std::binary_semaphore busy(0), go_on(0);
  asio::post(strand_, [&] {
    busy.release();
    go_on.acquire();
  });
  std::thread other([&] { loop_.run_one(); });
  busy.acquire();
  begin(task(began_));
  loop_.poll();  // The caller gets as far as it can; its task has to queue.
  EXPECT_FALSE(began_);
  cancellation_.emit(asio::cancellation_type::terminal);
  go_on.release();
  other.join();
  loop_.run();
  EXPECT_EQ(outcome_, "cancelled");
}

}  // namespace
}  // namespace facetheory
