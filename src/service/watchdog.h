// Watchdog: a thread that looks after things once a second, whatever else in the process may hang.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace facetheory {

class Watchdog {
 public:
  // `look` runs on the watchdog's thread; it must not throw.
  explicit Watchdog(std::function<void()> look, std::chrono::milliseconds every = std::chrono::seconds(1));
  ~Watchdog() = default;  // Waits for a look that is under way.

 private:
  std::jthread thread_;
};

}  // namespace facetheory
