// Waker: ends somebody's wait early, from any thread. For one wait, which Clock::wait_until_woken() is given.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace facetheory {

class Waker {
 public:
  // Ends the wait, or has it end as soon as it begins.
  void wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    if (end_) end_();
  }

  bool was_woken() const {
    const std::lock_guard lock(mutex_);
    return woken_;
  }

  // For a clock. Begins the wait by `begin(woken)` and has it ended by `end()`: never both at the same time, nor `end`
  // when the Wait is gone.
  template <typename Begin>
  void wait_begins(const Begin& begin, std::function<void()> end) {
    const std::lock_guard lock(mutex_);
    begin(woken_);
    end_ = std::move(end);
  }
  // In the coroutine that waits: the wait has ended when this goes, also where the coroutine is destroyed meanwhile.
  class Wait {
   public:
    explicit Wait(Waker& waker) : waker_(waker) {}
    ~Wait() { waker_.has_ended(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Waker& waker_;
  };

 private:
  void has_ended() {
    const std::lock_guard lock(mutex_);
    end_ = nullptr;
  }

  mutable std::mutex mutex_;  // guards what follows
  bool woken_ = false;
  std::function<void()> end_;  // Empty: nobody waits.
};

}  // namespace facetheory
