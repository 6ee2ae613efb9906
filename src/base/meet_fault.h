// One operation meeting one fault: what the faulty table and the faulty body store have in common. For .cc
// files only, since it needs Asio's awaitable.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/fault.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"

namespace facetheory {

enum class OperationKind {
  read,   // It has no effect that anybody would have to find out about: a lost answer is `unavailable`,
  write,  // and here `ambiguous`.
};

// Passes the operation on, or not, as the script wants it. `operation` is a literal, the script's name for it. A task
// that is never awaited never begins, so that a fault which prevents the operation just drops it.
template <typename T>
Task<Result<T>> meet_fault(FaultScript& script, std::string_view operation, OperationKind kind, Clock& clock,
                           Task<Result<T>> task) {
  const Fault fault = script.next(operation);
  if (fault == Fault::delay) co_await clock.sleep_for(script.delay());
  if (fault == Fault::none || fault == Fault::delay) co_return co_await std::move(task);
  if (fault == Fault::lose_answer) {
    auto done = co_await std::move(task);
    if (!done) co_return done;  // It failed by itself; there is no good answer to lose.
  }
  const bool lost = fault == Fault::lose_request || fault == Fault::lose_answer;
  co_return Error{lost && kind == OperationKind::write ? ErrorCode::ambiguous : ErrorCode::unavailable,
                  "injected into " + std::string(operation) + ": " + std::string(name(fault))};
}

}  // namespace facetheory
