// The bridge from a test to a coroutine: run(task) drives it on one background event loop and returns its
// result.
#pragma once

#include <future>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "facetheory/base/task.h"

namespace facetheory::test {

// The event loop of this test program, running on a thread of its own until the program ends.
boost::asio::any_io_executor executor();

// co_spawn makes an empty T when the coroutine throws, which a Result cannot be.
template <typename T>
Task<std::optional<T>> as_optional(Task<T> task) {
  co_return co_await std::move(task);
}

template <typename T>
T run(Task<T> task) {
  if constexpr (std::is_void_v<T>) {
    boost::asio::co_spawn(executor(), std::move(task), boost::asio::use_future).get();
  } else {
    return *boost::asio::co_spawn(executor(), as_optional(std::move(task)), boost::asio::use_future).get();
  }
}

// Starts all of them, then waits for all of them; results in the same order.
template <typename T>
std::vector<T> run_all(std::vector<Task<T>> tasks) {
  std::vector<std::future<std::optional<T>>> futures;
  futures.reserve(tasks.size());
  for (Task<T>& task : tasks) {
    futures.push_back(
        boost::asio::co_spawn(executor(), as_optional(std::move(task)), boost::asio::use_future));
  }
  std::vector<T> results;
  results.reserve(futures.size());
  for (auto& future : futures)
    results.push_back(*future.get());
  return results;
}

}  // namespace facetheory::test
