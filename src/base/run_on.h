// Running a task on another executor: a strand, say. For .cc files only, since it needs Asio's coroutines.
//
// Not plain co_spawn: its coroutine ends the program (std::terminate) when the caller is cancelled in the moment
// between spawning and the first step on the other executor, because that step throws where nobody catches.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "facetheory/base/task.h"

namespace facetheory {

// co_spawn makes a default value when the task throws, which a T may not have.
template <typename T>
Task<std::optional<T>> in_optional(Task<T> task) {
  co_return co_await std::move(task);
}

// Awaits the task there and comes back. `executor` runs one thing at a time, in order of arrival. Cancelling the
// caller cancels the task, as Asio cancels, once it has begun.
template <typename T>
Task<T> run_on(boost::asio::any_io_executor executor, Task<T> task) {
  auto cancellation = std::make_shared<boost::asio::cancellation_signal>();  // Touched over there only.
  const boost::asio::cancellation_state caller = co_await boost::asio::this_coro::cancellation_state;
  boost::asio::cancellation_slot slot = caller.slot();
  if (slot.is_connected()) {
    slot.assign([executor, cancellation](boost::asio::cancellation_type type) {
      boost::asio::post(executor, [cancellation, type] { cancellation->emit(type); });
    });
  }
  auto spawned = boost::asio::co_spawn(
      executor, in_optional(std::move(task)),
      boost::asio::bind_cancellation_slot(cancellation->slot(), boost::asio::use_awaitable));
  std::optional<T> result = co_await std::move(spawned);
  if (slot.is_connected()) slot.clear();
  co_return *std::move(result);
}

}  // namespace facetheory
