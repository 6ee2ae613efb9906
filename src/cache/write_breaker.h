// WriteBreaker: whether a store may be written to. After several writes in a row have failed it is not written to any
// more, so that nobody waits for it and nothing is gathered that waits to be written; what it has is read all the same.
// Its owner tries again now and then, with a write that changes nothing, and the first one that succeeds ends it. May
// be used from any thread.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"
#include "facetheory/cache/circuit_breaker.h"

namespace facetheory {

class WriteBreaker {
 public:
  // `store` is for people: "the table". The clock outlives it.
  WriteBreaker(std::string store, Clock& clock, int failures, Duration pause)
      : store_(std::move(store)), clock_(clock), failures_(failures), breaker_(failures, pause) {}

  // Why it is not written to; empty: it is.
  std::optional<Error> rests() const {
    const std::lock_guard lock(mutex_);
    if (!breaker_.is_open()) return std::nullopt;
    return Error{ErrorCode::unavailable,
                 store_ + " cannot be written, and is only tried now and then: " + why_};
  }
  // It rests, and is to be tried again now, which is the caller's to do.
  bool take_probe() {
    const std::lock_guard lock(mutex_);
    return breaker_.is_open() && breaker_.let_through(clock_.monotonic());
  }
  // A write that was begun at that time has ended.
  void wrote(const Error* failure, Duration began) {
    const Duration now = clock_.monotonic();
    const std::lock_guard lock(mutex_);
    const bool hung = now - began >= kHangs;
    if (failure == nullptr) {
      breaker_.succeeded();
    } else if (failure->code == ErrorCode::unavailable || failure->code == ErrorCode::ambiguous) {
      why_ = to_string(*failure);
      // Each of those costs somebody seconds. One may be the hiccup of a disk; two are not.
      breaker_.failed(now, hung ? (failures_ + 1) / 2 : 1);
    }
  }

 private:
  static constexpr std::chrono::seconds kHangs{1};

  // Constant after construction.
  const std::string store_;
  Clock& clock_;
  const int failures_;

  mutable std::mutex mutex_;  // Guards what follows.
  CircuitBreaker breaker_;
  std::string why_;  // The last failure.
};

}  // namespace facetheory
