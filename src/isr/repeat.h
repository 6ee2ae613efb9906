// Repeating what may have happened. An `ambiguous` transaction is repeated under its client token, with the very
// same items; whether a failed condition is then the echo of the first attempt, the caller finds out by reading.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"

namespace facetheory {

inline constexpr int kAttempts = 4;
// No attempt begins later than that after the first. What takes so long to fail hangs, and somebody waits for it.
inline constexpr std::chrono::seconds kTryingLimit{1};

// Counts the attempts at something, and says whether there is another.
class Attempts {
 public:
  explicit Attempts(const Isr& isr) : isr_(isr), began_(isr.clock.monotonic()) {}

  // Whether there is one more after the one that has just ended.
  bool has_next() const { return before_ + 1 < kAttempts && isr_.clock.monotonic() - began_ < kTryingLimit; }
  Task<void> next();  // It begins, after a moment;
  void next_at_once() { ++before_; }

 private:
  const Isr& isr_;
  const Duration began_;
  int before_ = 0;
};

// 25 ms, doubled with every attempt (0, 1, ...) up to 500 ms; at random between half of that and all.
Task<void> pause(const Isr& isr, int attempt);

// A consistent read that is worth several attempts, because an answer was lost and something hangs on it.
Task<Result<std::optional<Item>>> get_repeatedly(const Isr& isr, Key key);

// One write that has the same effect however often it is carried out (its condition names a token of ours). It
// is repeated a few times; once an attempt may have happened `echo` is true, and a failed condition can be the echo
// of it. `unavailable` only when no attempt can have done anything.
Task<Result<WriteOutcome>> write_repeatedly(const Isr& isr, Write write, Durability durability, bool& echo);

// Whether it may go better the next time.
inline bool may_pass(const Error& error) {
  return error.code == ErrorCode::ambiguous || error.code == ErrorCode::unavailable;
}

// After the last attempt at something that others kept changing.
Error restless(const Page& page);

struct Transacted {
  TransactOutcome outcome;
  bool echo = false;  // An earlier attempt may have been carried out.
};

// `ambiguous` when no attempt got an answer; `unavailable` only when all of them certainly did nothing. The items are
// made for each attempt, since their conditions may name the time, until one may have been carried out: from then on
// they stay the same.
Task<Result<Transacted>> transact_repeatedly(const Isr& isr, std::function<std::vector<TransactItem>()> make);
Task<Result<Transacted>> transact_repeatedly(const Isr& isr, std::vector<TransactItem> items);

}  // namespace facetheory
