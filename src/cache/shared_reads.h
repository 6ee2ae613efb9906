// SharedReads: of many who want to read the same at the same time, one reads, and the others wait for what it finds.
// For .cc files only, since it needs Asio. May be used from any thread.
#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "facetheory/base/event.h"
#include "facetheory/base/result.h"

namespace facetheory {

// Nobody waits longer for somebody else's read; one's own ends when the store says so.
inline constexpr std::chrono::seconds kSharedReadPatience{10};

template <typename T>
class SharedReads {
 public:
  // `read` makes a Task<Result<T>>. What somebody else's read has found counts if `useful` says so; otherwise, and when
  // that one was interrupted, there is another read.
  template <typename Read, typename Useful>
  Task<Result<T>> get(Clock& clock, std::string key, Duration patience, Read read, Useful useful) {
    const Duration deadline = clock.monotonic() + patience;
    for (;;) {
      const auto [reading, ours] = take_part(key);
      if (ours) co_return co_await read_for_all(std::move(key), reading, std::move(read));
      const bool ended = co_await reading->ended.wait(clock, deadline - clock.monotonic());
      if (!ended) co_return Error{ErrorCode::unavailable, "the store does not answer"};
      if (reading->found && useful(*reading->found)) co_return *reading->found;
    }
  }

  // Whoever comes from now on waits for no read that is under way.
  void part(const std::string& key) {
    const std::lock_guard lock(mutex_);
    readings_.erase(key);
  }

 private:
  struct Reading {
    Event ended;
    std::optional<Result<T>> found;  // Empty in the end: whoever read was interrupted.
  };

  std::pair<std::shared_ptr<Reading>, bool> take_part(const std::string& key) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Reading>& slot = readings_[key];
    const bool ours = !slot;
    if (ours) slot = std::make_shared<Reading>();
    return {slot, ours};
  }

  // Ends the reading however it ends: a client that goes away must not leave the others waiting.
  template <typename Read>
  Task<Result<T>> read_for_all(std::string key, std::shared_ptr<Reading> reading, Read read) {
    std::exception_ptr interrupted;
    try {
      reading->found.emplace(co_await read());
    } catch (...) {
      interrupted = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      const auto found = readings_.find(key);
      if (found != readings_.end() && found->second == reading) readings_.erase(found);
    }
    reading->ended.set();
    if (interrupted) std::rethrow_exception(interrupted);
    co_return *reading->found;
  }

  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_ptr<Reading>> readings_;
};

}  // namespace facetheory
