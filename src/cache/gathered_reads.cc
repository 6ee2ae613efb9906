#include "facetheory/cache/gathered_reads.h"

#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/cache/shared_reads.h"

namespace facetheory {
namespace {

// A request that failed after less than that was refused; one that took longer may not have been answered at all.
constexpr std::chrono::milliseconds kSoon{500};

}  // namespace

Task<GatheredReads::Items> GatheredReads::get_all(std::vector<Key> keys) {
  if (keys.size() > kMostKeys) co_return co_await read_(std::move(keys));
  const Duration deadline = clock_.monotonic() + kSharedReadPatience;
  for (;;) {
    const auto [gathering, part] = take_part(keys);
    if (part == Part::follows) {
      const bool ended = co_await gathering->ended.wait(clock_, deadline - clock_.monotonic());
      if (!ended) co_return Error{ErrorCode::unavailable, "the store does not answer"};
    } else {
      co_await read_for_all(gathering, part);
    }
    if (!gathering->found) continue;
    const Items& found = *gathering->found;
    if (found) co_return gathering->keys.part_of(*found, keys);
    if (!gathering->is_worth_another_try) co_return found.error();
    co_return co_await read_(std::move(keys));
  }
}

std::pair<std::shared_ptr<GatheredReads::Gathering>, GatheredReads::Part> GatheredReads::take_part(
    const std::vector<Key>& keys) {
  const auto join = [&](Gathering& gathering) {
    ++gathering.readers;
    gathering.keys.add(keys);
  };
  const std::lock_guard lock(mutex_);
  // Counted as if it knew none of the rows: that is quick, and nearly true.
  if (open_ && open_->keys.size() + keys.size() > kMostKeys) {
    open_->due.set();
    open_.reset();
  }
  if (open_) {
    join(*open_);
    std::shared_ptr<Gathering> joined = open_;
    if (joined->keys.size() >= kMostKeys) {
      joined->due.set();
      open_.reset();
    }
    return {std::move(joined), Part::follows};
  }
  auto begun = std::make_shared<Gathering>();
  join(*begun);
  if (under_way_ == 0) {
    ++under_way_;
    return {std::move(begun), Part::reads_at_once};
  }
  open_ = begun;
  return {std::move(begun), Part::reads};
}

Task<void> GatheredReads::read_for_all(std::shared_ptr<Gathering> gathering, Part part) {
  bool is_under_way = part == Part::reads_at_once;
  std::exception_ptr interrupted;
  try {
    if (!is_under_way) {
      co_await gathering->due.wait(clock_, kLongestGather);
      close(gathering);
      is_under_way = true;
    }
    const Duration began = clock_.monotonic();
    std::vector<Key> keys = gathering->keys.all();
    gathering->found.emplace(co_await read_(std::move(keys)));
    const bool soon = clock_.monotonic() - began < kSoon;
    gathering->is_worth_another_try = !*gathering->found && gathering->readers > 1 && soon;
  } catch (...) {
    interrupted = std::current_exception();
  }
  end(*gathering, is_under_way);
  if (interrupted) std::rethrow_exception(interrupted);
}

// Nobody takes part any more.
void GatheredReads::close(const std::shared_ptr<Gathering>& gathering) {
  const std::lock_guard lock(mutex_);
  if (open_ == gathering) open_.reset();
  ++under_way_;
}

void GatheredReads::end(Gathering& gathering, bool was_under_way) {
  std::shared_ptr<Gathering> next;
  {
    const std::lock_guard lock(mutex_);
    if (open_.get() == &gathering) open_.reset();
    if (was_under_way) --under_way_;
    next = open_;
  }
  gathering.ended.set();
  if (next) next->due.set();
}

}  // namespace facetheory
