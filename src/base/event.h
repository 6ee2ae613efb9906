// Event: something happens once, and everybody who waits for it goes on.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/waker.h"

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
  std::mutex mutex_;  // guards what follows
  bool happened_ = false;
  std::vector<std::shared_ptr<Waker>> waiters_;
};

}  // namespace facetheory
