// Event: something happens once, and everybody who waits for it goes on. For .cc files only, since it needs Asio.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>

#include "facetheory/base/clock.h"

namespace facetheory {

// A limit for those who wait beside something that ends in time by limits of its own, and says so.
inline constexpr std::chrono::hours kUntilToldOtherwise{24};

// May be used from any thread; must outlive those who wait.
class Event {
 public:
  void set();

  // True: it happened; false: the limit has passed first. Cancelling the wait throws, as that of a timer does.
  Task<bool> wait(Clock& clock, Duration limit);

 private:
  using Waiter = boost::asio::experimental::concurrent_channel<boost::asio::any_io_executor,
                                                               void(boost::system::error_code)>;
  std::mutex mutex_;  // guards what follows
  bool happened_ = false;
  std::vector<std::shared_ptr<Waiter>> waiters_;
};

}  // namespace facetheory
