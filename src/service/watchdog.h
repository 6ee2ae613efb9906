// Watchdog: a thread that checks things once a second, whatever else in the process may hang.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace facetheory {

class Watchdog {
 public:
  // `check` runs on the watchdog's thread; it must not throw.
  explicit Watchdog(std::function<void()> check, std::chrono::milliseconds every = std::chrono::seconds(1));
  ~Watchdog() = default;  // Waits for a check that is under way.

 private:
  std::jthread thread_;
};

}  // namespace facetheory
