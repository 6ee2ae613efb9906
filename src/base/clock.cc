#include "facetheory/base/clock.h"

#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/base/waker.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class SystemClock final : public Clock {
 public:
  WallTime now() const override {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  }

  Duration monotonic() const override { return std::chrono::steady_clock::now().time_since_epoch(); }

  Task<bool> wait_for(Duration duration) override {
    asio::steady_timer timer(co_await asio::this_coro::executor, duration);
    error_code cancelled;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    co_return !cancelled;
  }

  Task<bool> wait_until_woken(Duration limit, Waker& waker) override {
    asio::steady_timer timer(co_await asio::this_coro::executor, limit);
    const Waker::Wait wait(waker);
    error_code cancelled;
    // The timer is nobody's but this wait's, and the waker sees to it that it is used by one thread at a time.
    const auto begin = [&](auto handler) {
      waker.wait_begins(
          [&](bool woken) {
            if (woken) timer.expires_at(asio::steady_timer::time_point::min());
            timer.async_wait(std::move(handler));
          },
          [&timer] { timer.cancel(); });
    };
    auto token = asio::redirect_error(asio::use_awaitable, cancelled);
    co_await asio::async_initiate<decltype(token), void(error_code)>(begin, token);
    co_return !cancelled && !waker.was_woken();
  }
};

using Woken = asio::experimental::concurrent_channel<asio::any_io_executor, void(error_code)>;

Task<void> wait_for_waker(Woken& woken) {
  error_code cancelled;
  co_await woken.async_receive(asio::redirect_error(asio::use_awaitable, cancelled));
}

}  // namespace

Task<bool> Clock::wait_until_woken(Duration limit, Waker& waker) {
  using namespace asio::experimental::awaitable_operators;
  Woken woken(co_await asio::this_coro::executor, 1);
  const Waker::Wait waiting(waker);
  waker.wait_begins(
      [&](bool already) {
        if (already) woken.try_send(error_code());
      },
      [&woken] { woken.try_send(error_code()); });
  bool passed = false;
  const auto wait = [&]() -> Task<void> { passed = co_await wait_for(limit); };
  Task<void> first = wait_for_waker(woken);
  Task<void> second = wait();
  co_await (std::move(first) || std::move(second));
  co_return passed && !waker.was_woken();
}

Task<void> Clock::sleep_for(Duration duration) {
  const bool passed = co_await wait_for(duration);
  if (!passed) throw boost::system::system_error(asio::error::operation_aborted);
}

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace facetheory
