#include "facetheory/base/event.h"

#include <utility>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace facetheory {
namespace {

template <typename Waiter>
Task<void> receive(std::shared_ptr<Waiter> waiter, bool& received) {
  boost::system::error_code cancelled;
  co_await waiter->async_receive(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
  received = !cancelled;
}

}  // namespace

void Event::set() {
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    const std::lock_guard lock(mutex_);
    happened_ = true;
    waiters.swap(waiters_);
  }
  for (const auto& waiter : waiters)
    waiter->try_send(boost::system::error_code());
}

Task<bool> Event::wait(Clock& clock, Duration limit) {
  using namespace boost::asio::experimental::awaitable_operators;
  const auto waiter = std::make_shared<Waiter>(co_await boost::asio::this_coro::executor, 1);
  {
    const std::lock_guard lock(mutex_);
    if (happened_) co_return true;
    if (limit <= Duration(0)) co_return false;
    waiters_.push_back(waiter);
  }
  bool received = false;
  Task<void> happened = receive(waiter, received);
  Task<bool> elapsed = clock.wait_for(limit);
  co_await (std::move(happened) || std::move(elapsed));
  const boost::asio::cancellation_state state = co_await boost::asio::this_coro::cancellation_state;
  const std::lock_guard lock(mutex_);
  std::erase(waiters_, waiter);
  if (state.cancelled() != boost::asio::cancellation_type::none)
    throw boost::system::system_error(boost::asio::error::operation_aborted);
  co_return received || happened_;
}

}  // namespace facetheory
