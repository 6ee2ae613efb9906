#include "facetheory/service/cleanup_run.h"

#include <chrono>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/log.h"
#include "facetheory/isr/released_bodies.h"

namespace facetheory {
namespace {

constexpr std::chrono::minutes kAskAgain{1};

}  // namespace

void CleanupRun::end() {
  stop_source_.request_stop();
  ended_.set();
}

Task<bool> CleanupRun::pause(Duration length) {
  return ended_.wait(parts.isr.clock, length);
}

Task<bool> CleanupRun::settle_whether_to_delete() {
  if (asked_at_ && now() - *asked_at_ < kAskAgain) co_return partners_.may_delete();
  asked_at_ = now();
  partners_ = co_await settle_partners(parts.isr);
  if (auto checked = check_may_delete(partners_); !checked)
    failed("nothing is removed: asking whose the bodies are", checked.error());
  if (!partners_.may_write() && parts.on_stranger) parts.on_stranger();
  co_return partners_.may_delete();
}

void CleanupRun::count(std::uint64_t CleanupTotals::* what, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  done_.*what += number;
}

CleanupTotals CleanupRun::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

std::size_t CleanupRun::released_waiting() const {
  return parts.isr.released != nullptr ? parts.isr.released->size() : 0;
}

void CleanupRun::failed(const char* what, const Error& error) {
  count(&CleanupTotals::errors, 1);
  if (told_failure_ && now() - *told_failure_ < kAskAgain) return;
  told_failure_ = now();
  log(LogLevel::warning, std::string("cleanup: ") + what + " failed and is tried again: " + to_string(error));
}

}  // namespace facetheory
