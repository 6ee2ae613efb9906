// Work that may wait for a disk, on threads that may. For .cc files only, since it needs Asio.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "facetheory/base/run_on.h"
#include "facetheory/base/task.h"

namespace facetheory {

// Runs blocking work on the pool and resumes the caller, on its own executor, with what it returned.
template <typename Work>
Task<std::invoke_result_t<Work>> on_pool(boost::asio::thread_pool& pool, Work work) {
  namespace asio = boost::asio;
  using Outcome = std::invoke_result_t<Work>;
  auto submit = [&pool, &work](auto handler) {
    auto caller = asio::make_work_guard(handler);
    asio::post(pool,
               [work = std::move(work), caller = std::move(caller), handler = std::move(handler)]() mutable {
                 auto resume = [outcome = work(), handler = std::move(handler)]() mutable {
                   std::move(handler)(std::move(outcome));
                 };
                 asio::post(caller.get_executor(), std::move(resume));
               });
  };
  // Nothing interrupts it: what has begun on a disk is carried through.
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Outcome)>(submit,
                                                                                        asio::use_awaitable);
}

// The result of a task that waits for nothing but the disk, such as a read of an embedded table.
template <typename T>
T finish_here(Task<T> task) {
  thread_local boost::asio::io_context context(1);
  std::optional<T> result;
  boost::asio::co_spawn(context, in_optional(std::move(task)),
                        [&result](const std::exception_ptr& thrown, std::optional<T> value) {
                          if (thrown) std::rethrow_exception(thrown);
                          result = std::move(value);
                        });
  context.restart();
  context.run();
  return *std::move(result);
}

}  // namespace facetheory
