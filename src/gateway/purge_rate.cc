#include "facetheory/gateway/purge_rate.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include "facetheory/base/log.h"

namespace facetheory {

Task<void> PurgeRate::purge(boost::asio::any_io_executor executor, std::string page, std::string url,
                            Purge purge) {
  Duration wait{0};
  switch (turn_of(page, url, wait)) {
    case Turn::now:
      co_return co_await purge();
    case Turn::covered:
      co_return;
    case Turn::later:
      break;
  }
  boost::asio::co_spawn(executor, purge_later(std::move(page), wait, std::move(purge)),
                        [this](std::exception_ptr escaped) {
                          --waiting_;
                          if (escaped) log(LogLevel::error, "a purge ended by an exception");
                        });
}

PurgeRate::Turn PurgeRate::turn_of(const std::string& page, const std::string& url, Duration& wait) {
  const std::lock_guard lock(mutex_);
  if (pages_.size() >= kMostPages && !pages_.contains(page)) forget_idle();
  if (pages_.size() >= kMostPages && !pages_.contains(page)) return Turn::now;
  Allowance& allowance = pages_.try_emplace(page, Allowance{.at = clock_.monotonic()}).first->second;
  if (allowance.due) return Turn::covered;
  allowance = as_of_now(allowance);
  if (allowance.left >= 1) {
    allowance.left -= 1;
    return Turn::now;
  }
  allowance.due = true;
  ++waiting_;
  wait = std::chrono::duration_cast<Duration>(kRefill * (1 - allowance.left));
  if (allowance.at - told_at_ >= std::chrono::minutes(1)) {
    told_at_ = allowance.at;
    log(LogLevel::warning,
        url +
            " is changed by visitors more than once a second; it is purged once a second for "
            "all of them (routes.unsafe_invalidates says whether they may)");
  }
  return Turn::later;
}

PurgeRate::Allowance PurgeRate::as_of_now(Allowance allowance) const {
  const Duration now = clock_.monotonic();
  const double more =
      std::chrono::duration<double>(now - allowance.at) / std::chrono::duration<double>(kRefill);
  allowance.left = std::min(kAtOnce, allowance.left + more);
  allowance.at = now;
  return allowance;
}

// Those that are as if they had never been asked for. Not more often than it is worth while.
void PurgeRate::forget_idle() {
  const Duration now = clock_.monotonic();
  if (now - looked_for_idle_at_ < kRefill) return;
  looked_for_idle_at_ = now;
  std::erase_if(pages_, [this](const auto& entry) {
    return as_of_now(entry.second).left >= kAtOnce && !entry.second.due;
  });
}

Task<void> PurgeRate::purge_later(std::string page, Duration wait, Purge purge) {
  co_await hurry_.wait(clock_, wait);
  {
    // What changes from now on is not covered any more.
    const std::lock_guard lock(mutex_);
    Allowance& allowance = pages_.at(page);
    allowance = as_of_now(allowance);
    allowance.left = std::max(0.0, allowance.left - 1);
    allowance.due = false;
  }
  co_await purge();
}

}  // namespace facetheory
