// The bridge from a test to a coroutine: run(task) drives it on one background event loop and returns its result.
// All types share one instantiation of Asio's machinery, in run.cc: it is the slowest thing to compile in a test.
#pragma once

#include <future>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "facetheory/base/task.h"

namespace facetheory::test {

// The event loop of this test program, running on a thread of its own until the program ends.
boost::asio::any_io_executor executor();

// Starts the task; the future has what it throws.
std::future<void> start(Task<void> task);

// co_spawn makes an empty T when the coroutine throws, and a Result cannot be empty.
template <typename T>
Task<std::optional<T>> as_optional(Task<T> task) {
  co_return co_await std::move(task);
}

// `result` outlives the task.
template <typename T>
Task<void> store(Task<T> task, std::optional<T>& result) {
  result.emplace(co_await std::move(task));
}

template <typename T>
T run(Task<T> task) {
  if constexpr (std::is_void_v<T>) {
    start(std::move(task)).get();
  } else {
    std::optional<T> result;
    start(store(std::move(task), result)).get();
    return *std::move(result);
  }
}

// Starts all of them, then waits for all of them; results in the same order.
template <typename T>
std::vector<T> run_all(std::vector<Task<T>> tasks) {
  std::vector<std::optional<T>> stored(tasks.size());
  std::vector<std::future<void>> futures;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    futures.push_back(start(store(std::move(tasks[i]), stored[i])));
  for (std::future<void>& future : futures)
    future.wait();
  std::vector<T> results;
  for (std::size_t i = 0; i < futures.size(); ++i) {
    futures[i].get();
    results.push_back(*std::move(stored[i]));
  }
  return results;
}

}  // namespace facetheory::test
