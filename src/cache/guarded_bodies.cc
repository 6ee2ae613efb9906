#include "facetheory/cache/guarded_bodies.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {
namespace {

Error left_alone() {
  return {ErrorCode::unavailable,
          "the body store has failed several times in a row and is left alone for a while"};
}

}  // namespace

Task<Result<std::optional<Body>>> GuardedBodies::do_read(std::string key) {
  if (!let_through()) co_return left_alone();
  auto body = co_await read_from(inner(), std::move(key));
  was_read(body ? nullptr : &body.error());
  co_return body;
}

Task<Result<void>> GuardedBodies::do_write(std::string key, Body body) {
  if (auto rest = writes_.rests()) co_return *std::move(rest);
  if (!let_through()) co_return left_alone();
  const Duration began = clock_.monotonic();
  auto written = co_await write_to(inner(), std::move(key), std::move(body));
  was_written(written ? nullptr : &written.error(), began);
  co_return written;
}

Task<void> GuardedBodies::probe() {
  const std::string nobodys(kProbedKey);
  const Duration began = clock_.monotonic();
  Body empty;
  auto written = co_await inner().write(nobodys, std::move(empty));
  was_written(written ? nullptr : &written.error(), began);
  if (!written) co_return;
  [[maybe_unused]] auto removed = co_await inner().remove(nobodys);
}

bool GuardedBodies::let_through() {
  const std::lock_guard lock(mutex_);
  return breaker_.let_through(clock_.monotonic());
}

void GuardedBodies::was_read(const Error* failure) {
  const std::lock_guard lock(mutex_);
  if (failure == nullptr || failure->code == ErrorCode::corrupt) {
    breaker_.succeeded();
  } else if (failure->code == ErrorCode::unavailable) {
    breaker_.failed(clock_.monotonic());
  }
}

void GuardedBodies::was_written(const Error* failure, Duration began) {
  writes_.wrote(failure, began);
  const std::lock_guard lock(mutex_);
  if (failure == nullptr && breaker_.is_open()) breaker_.succeeded();
}

bool GuardedBodies::is_down() const {
  const std::lock_guard lock(mutex_);
  return breaker_.is_open();
}

std::optional<Error> GuardedBodies::rests() const {
  const std::lock_guard lock(mutex_);
  if (breaker_.rests(clock_.monotonic())) return left_alone();
  return std::nullopt;
}

}  // namespace facetheory
