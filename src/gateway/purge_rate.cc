#include "facetheory/gateway/purge_rate.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include "facetheory/base/log.h"

namespace facetheory {

Task<void> PurgeRate::purge(boost::asio::any_io_executor executor, std::string page, std::string url,
                            Purge purge, Duration patience) {
  if (waiting_ >= kMostUnderWay) co_return lose(url, std::to_string(kMostUnderWay) + " purges are under way");
  Duration wait{0};
  switch (take_turn(page, url, wait)) {
    case Turn::covered:
      co_return;
    case Turn::later:
      co_return spawn(executor, std::move(page), std::move(url), wait, std::move(purge), nullptr);
    case Turn::now:
      break;
  }
  const auto done = std::make_shared<Event>();
  spawn(executor, std::move(page), std::move(url), Duration(0), std::move(purge), done);
  const bool in_time = co_await done->wait(clock_, patience);
  if (!in_time) ++late_;
}

void PurgeRate::spawn(const boost::asio::any_io_executor& executor, std::string page, std::string url,
                      Duration wait, Purge purge, std::shared_ptr<Event> done) {
  ++waiting_;
  boost::asio::co_spawn(executor, carry_out(std::move(page), std::move(url), wait, std::move(purge)),
                        [this, done = std::move(done)](std::exception_ptr escaped) {
                          --waiting_;
                          if (done) done->set();
                          if (escaped) log(LogLevel::error, "a purge ended by an exception");
                        });
}

PurgeRate::Turn PurgeRate::take_turn(const std::string& page, const std::string& url, Duration& wait) {
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

// Forgets those that are as if they had never been asked for; not more often than it is worth while.
void PurgeRate::forget_idle() {
  const Duration now = clock_.monotonic();
  if (now - looked_for_idle_at_ < kRefill) return;
  looked_for_idle_at_ = now;
  std::erase_if(pages_, [this](const auto& entry) {
    return as_of_now(entry.second).left >= kAtOnce && !entry.second.due;
  });
}

Task<void> PurgeRate::carry_out(std::string page, std::string url, Duration wait, Purge purge) {
  if (wait > Duration(0)) {
    co_await hurry_.wait(clock_, wait);
    // What changes from now on is not covered any more.
    const std::lock_guard lock(mutex_);
    Allowance& allowance = pages_.at(page);
    allowance = as_of_now(allowance);
    allowance.left = std::max(0.0, allowance.left - 1);
    allowance.due = false;
  }
  const Duration until = clock_.monotonic() + kTries;
  for (int attempt = 0;; ++attempt) {
    const auto purged = co_await purge();
    if (purged) co_return;
    const bool again = co_await try_again(page, url, purged.error(), attempt, until);
    if (!again) co_return;
  }
}

// Waits until it is time to; false: it is lost.
Task<bool> PurgeRate::try_again(const std::string& page, const std::string& url, const Error& error,
                                int attempt, Duration until) {
  constexpr std::chrono::seconds kLongestPause{16};
  const Duration pause = std::min<Duration>(std::chrono::seconds(1 << std::min(attempt, 4)), kLongestPause);
  const std::string why = to_string(error);
  const bool hurries = co_await hurry_.wait(clock_, Duration(0));
  if (hurries || clock_.monotonic() + pause > until) {
    lose(url, why);
    co_return false;
  }
  if (attempt == 0) log(LogLevel::warning, url + " could not be invalidated, and is tried again: " + why);
  set_due(page, true);
  co_await hurry_.wait(clock_, pause);
  set_due(page, false);
  co_return true;
}

void PurgeRate::set_due(const std::string& page, bool due) {
  const std::lock_guard lock(mutex_);
  if (const auto found = pages_.find(page); found != pages_.end()) found->second.due = due;
}

void PurgeRate::lose(const std::string& url, const std::string& why) {
  ++lost_;
  {
    const std::lock_guard lock(mutex_);
    const Duration now = clock_.monotonic();
    if (now - told_lost_at_ < std::chrono::minutes(1)) return;
    told_lost_at_ = now;
  }
  log(LogLevel::error,
      url +
          " was changed and could not be invalidated, so that an older page may be served until its "
          "window ends: " +
          why + "; such purges are told once a minute and counted in facetheory_purges_lost_total");
}

}  // namespace facetheory
