// Calls of a store that end in time for whoever awaits them: what the limited table and the limited body store have in
// common. For .cc files only, since it needs Asio's coroutines.
//
// Not a race with a timer: cancelling a call on its way to another executor is not safe everywhere. Beyond its limit a
// call goes on until its own end, with nobody waiting for it.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/result.h"

namespace facetheory {

// Written by the coroutine that calls before `ended` is set, read by the one that waits afterwards.
template <typename T>
struct LimitedCall {
  Event ended;
  std::optional<Result<T>> outcome;
};

// `kept` is what the task uses: it lives until the task has ended.
template <typename T>
Task<void> call_to_the_end(std::shared_ptr<void> kept, std::shared_ptr<LimitedCall<T>> call,
                           Task<Result<T>> task) {
  try {
    call->outcome.emplace(co_await std::move(task));
  } catch (const std::exception& error) {
    call->outcome.emplace(Error{ErrorCode::internal, error.what()});
  }
  kept.reset();
  call->ended.set();
}

// Empty: it has not ended within the limit. It runs on that executor.
template <typename T>
Task<std::optional<Result<T>>> call_within(boost::asio::any_io_executor executor, Clock& clock,
                                           Duration limit, std::shared_ptr<void> kept, Task<Result<T>> task) {
  auto call = std::make_shared<LimitedCall<T>>();
  boost::asio::co_spawn(executor, call_to_the_end(std::move(kept), call, std::move(task)),
                        boost::asio::detached);
  const bool ended = co_await call->ended.wait(clock, limit);
  if (!ended) co_return std::nullopt;
  co_return std::move(call->outcome);
}

}  // namespace facetheory
