// One operation of a store, measured: what the measured table and the measured body store have in common. For .cc files
// only, since it needs Asio's awaitable.
#pragma once

#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"
#include "facetheory/base/store_observer.h"

namespace facetheory {

// Time counts from when the task is awaited. A task that is dropped while it waits (its executor is gone) is not told
// of.
template <typename T>
Task<Result<T>> measure(const StoreObserver& observer, std::string_view operation, const Clock& clock,
                        Task<Result<T>> task) {
  const Duration begin = clock.monotonic();
  try {
    Result<T> result = co_await std::move(task);
    observer(operation, result ? nullptr : &result.error(), clock.monotonic() - begin);
    co_return result;
  } catch (...) {
    const Error cancelled{ErrorCode::unavailable, "no answer in time"};
    observer(operation, &cancelled, clock.monotonic() - begin);
    throw;
  }
}

}  // namespace facetheory
