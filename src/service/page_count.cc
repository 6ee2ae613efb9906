#include "facetheory/service/page_count.h"

#include <chrono>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/evict.h"

namespace facetheory {
namespace {

// Pages, where their number is limited: near the limit, and otherwise. Counting takes a twentieth of the time at most.
constexpr std::chrono::seconds kCountEmbeddedAgain{1};
constexpr std::chrono::minutes kCountAgainSoon{1};
constexpr std::chrono::minutes kCountAgain{10};
constexpr int kCountingShare = 20;
constexpr std::uint64_t kWayBeyond = 2;  // Nobody counts further than that many times the limit,
constexpr std::uint64_t kAtLeast = 400;  // and so many pages.

}  // namespace

bool PageCount::is_due() const {
  if (!run_.parts.budget.limits_pages() || run_.now() < look_again_at_) return false;
  if (!counted_at_) return true;
  const Duration since = run_.now() - *counted_at_;
  if (since < took_ * kCountingShare) return false;
  if (const auto version = run_.parts.isr.table.version())
    return since >= kCountEmbeddedAgain && version != version_;
  return since >= lasts();
}

Duration PageCount::lasts() const {
  return run_.parts.budget.is_near_most_pages() ? kCountAgainSoon : kCountAgain;
}

// Where machines share the table one of them counts, and the others take over what it has noted: a thousand of them
// would read a thousand tables. False: this one need not count.
Task<bool> PageCount::is_ours_to_count() {
  co_await learn();
  const bool is_noted = std::chrono::seconds(run_.parts.isr.now() - counted_time_) < lasts();
  const bool ours = !is_noted && co_await right_.hold();
  if (ours) co_return true;
  look_again_at_ = run_.now() + kCountAgainSoon;
  if (is_noted) counted_at_ = run_.now();
  co_return false;
}

Task<void> PageCount::count() {
  const bool embedded = run_.parts.isr.table.disk_use().has_value();
  const std::uint64_t enough = *run_.parts.budget.most_pages() * kWayBeyond + kAtLeast;
  const bool shared = !run_.parts.isr.table.version();
  if (shared && !right_.is_held()) {
    const bool ours = co_await is_ours_to_count();
    if (!ours) co_return;
  } else if (!counted_at_) {
    co_await learn();  // It will do until there is a count of our own.
  }
  const Duration began = run_.now();
  version_ = run_.parts.isr.table.version();
  counted_time_ = run_.parts.isr.now();
  run_.parts.budget.counting();
  std::uint64_t pages = 0;
  std::optional<Key> after;
  do {
    auto some = co_await count_some(run_.parts.isr, std::move(after));
    if (!some) {
      run_.failed("counting pages", some.error());
      counted_at_ = began;  // Not again at once, though nothing may change.
      version_.reset();
      co_return;
    }
    pages += some->pages;
    after = std::move(some->next);
    const Duration breath = std::chrono::microseconds(some->rows * 1'000'000 / run_.parts.config.pace);
    const bool over =
        after && co_await run_.pause(embedded ? Duration(std::chrono::milliseconds(1)) : breath);
    if (over) co_return;
    // It takes longer than a lease lasts, where it is paced.
    if (right_.is_held()) co_await right_.hold();
  } while (after && pages < enough);
  run_.parts.budget.counted(pages);
  counted_at_ = began;
  took_ = run_.now() - began;
  if (!shared) co_return;
  auto noted = co_await note_pages(run_.parts.isr, pages);
  if (!noted) run_.failed("noting the count of pages", noted.error());
}

Task<void> PageCount::learn() {
  if (!run_.parts.budget.limits_pages()) co_return;
  auto noted = co_await noted_pages(run_.parts.isr);
  if (!noted) {
    run_.failed("reading the count of pages", noted.error());
    co_return;
  }
  if (!*noted || (*noted)->noted_at <= counted_time_) co_return;
  counted_time_ = (*noted)->noted_at;
  run_.parts.budget.counting();
  run_.parts.budget.counted((*noted)->pages);
}

}  // namespace facetheory
