#include "facetheory/base/clock.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace facetheory {
namespace {

class SystemClock final : public Clock {
 public:
  WallTime now() const override {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  }

  Duration monotonic() const override { return std::chrono::steady_clock::now().time_since_epoch(); }

  Task<bool> wait_for(Duration duration) override {
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, duration);
    boost::system::error_code cancelled;
    co_await timer.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
    co_return !cancelled;
  }
};

}  // namespace

Task<void> Clock::sleep_for(Duration duration) {
  const bool passed = co_await wait_for(duration);
  if (!passed) throw boost::system::system_error(boost::asio::error::operation_aborted);
}

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace facetheory
