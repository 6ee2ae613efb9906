// Two tasks at once, until the first of them ends, by whatever way. For .cc files only, since it needs Asio's
// coroutines.
//
// Not Asio's `one || other` by itself: there a task that throws has not ended, and the other one is waited for. Where
// that is one that waits for the client to leave, say, nobody is ever answered.
#pragma once

#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "facetheory/base/task.h"

namespace facetheory {

// The other one is cancelled, and has ended too when this returns. What the first to end threw, this throws.
inline Task<void> first_to_end(Task<void> one, Task<void> other) {
  using namespace boost::asio::experimental::awaitable_operators;
  bool ended = false;
  std::exception_ptr thrown;  // The first to end threw it.
  const auto run = [&](Task<void> task) -> Task<void> {
    std::exception_ptr caught;
    try {
      co_await std::move(task);
    } catch (...) {
      caught = std::current_exception();
    }
    if (!std::exchange(ended, true)) thrown = caught;
  };
  Task<void> first = run(std::move(one));
  Task<void> second = run(std::move(other));
  co_await (std::move(first) || std::move(second));
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace facetheory
