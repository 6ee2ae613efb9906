#include "tests/conformance/retrying_bodies.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory::test {
namespace {

constexpr int kAttempts = 30;

template <typename T>
bool repeat(const Result<T>& result) {
  return !result &&
         (result.error().code == ErrorCode::unavailable || result.error().code == ErrorCode::ambiguous);
}

}  // namespace

Task<Result<void>> RetryingBodies::do_write(std::string key, Body body) {
  for (int attempt = 1;; ++attempt) {
    auto result = co_await inner().write(key, body);
    if (!repeat(result) || attempt == kAttempts) co_return result;
  }
}

Task<Result<std::optional<Body>>> RetryingBodies::do_read(std::string key) {
  for (int attempt = 1;; ++attempt) {
    auto result = co_await inner().read(key);
    if (!repeat(result) || attempt == kAttempts) co_return result;
  }
}

Task<Result<void>> RetryingBodies::do_remove(std::string key) {
  for (int attempt = 1;; ++attempt) {
    auto result = co_await inner().remove(key);
    if (!repeat(result) || attempt == kAttempts) co_return result;
  }
}

Task<Result<void>> RetryingBodies::do_remove_all(std::vector<std::string> keys) {
  for (std::string& key : keys) {
    auto removed = co_await do_remove(std::move(key));
    if (!removed) co_return removed;
  }
  co_return Result<void>{};
}

Task<Result<BodyPage>> RetryingBodies::do_list(std::optional<std::string> after, std::size_t limit) {
  for (int attempt = 1;; ++attempt) {
    auto result = co_await inner().list(after, limit);
    if (!repeat(result) || attempt == kAttempts) co_return result;
  }
}

}  // namespace facetheory::test
