#include "facetheory/base/event.h"

#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

namespace facetheory {

void Event::set() {
  std::vector<std::shared_ptr<Waker>> waiters;
  {
    const std::lock_guard lock(mutex_);
    happened_ = true;
    waiters.swap(waiters_);
  }
  for (const auto& waiter : waiters)
    waiter->wake();
}

Task<bool> Event::wait(Clock& clock, Duration limit) {
  const auto waiter = std::make_shared<Waker>();
  {
    const std::lock_guard lock(mutex_);
    if (happened_) co_return true;
    if (limit <= Duration(0)) co_return false;
    waiters_.push_back(waiter);
  }
  [[maybe_unused]] const bool passed = co_await clock.wait_until_woken(limit, *waiter);
  const boost::asio::cancellation_state state = co_await boost::asio::this_coro::cancellation_state;
  const std::lock_guard lock(mutex_);
  std::erase(waiters_, waiter);
  if (state.cancelled() != boost::asio::cancellation_type::none)
    throw boost::system::system_error(boost::asio::error::operation_aborted);
  co_return happened_;
}

}  // namespace facetheory
