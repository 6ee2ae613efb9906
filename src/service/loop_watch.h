// LoopWatch: notices an event loop that has stopped going on. Each loop is asked for a sign of life at every check; one
// that owes it for too long is told of, in the log and to whoever asks whether this process is ready.
//
// check() belongs to one thread that no loop can hold up (watchdog.h); trouble() to any. For .cc files only, since it
// needs Asio.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"

namespace facetheory {

class LoopWatch {
 public:
  // The longest step of a loop takes some milliseconds, on a machine that swaps some hundred.
  static constexpr std::chrono::seconds kPatience{5};

  // The clock outlives it.
  explicit LoopWatch(Clock& clock) : clock_(clock) {}

  // All loops are added before the first check.
  void add(std::string name, boost::asio::any_io_executor loop);
  // Logs each that has stopped, once, and asks all for a sign of life.
  void check();
  // Which loop has stopped, if one has.
  std::optional<Error> trouble() const;

 private:
  struct Loop {
    std::string name;
    boost::asio::any_io_executor executor;
    std::atomic<bool> owes = false;    // A sign of life.
    std::atomic<Duration> asked_at{};  // Monotonic.
    bool told = false;  // It was told that it has stopped. Only the thread that checks uses it.
  };
  bool has_stopped(const Loop& loop) const;

  Clock& clock_;
  std::vector<std::shared_ptr<Loop>> loops_;  // Constant after the last add().
};

}  // namespace facetheory
