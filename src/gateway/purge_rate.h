// PurgeRate: how often visitors can have one page purged.
//
// An unsafe request that succeeds makes the pages that it names invalid (RFC 9111, 4.4), and anybody can send one where the
// origin lets him. Each purge costs transactions and a render, and undoes the render that is under way: a flood of them would
// keep a page from ever being stored. So each page has so many at once, which no honest site uses up; beyond them one
// purge a second stands for all changes that came before it. Nobody is kept waiting for it, and so for up to a second
// a page may be served that is older than such a change.
//
// May be used from any thread, and outlives the executors that purges were given. For .cc files only, since it needs
// Asio.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/task.h"

namespace facetheory {

class PurgeRate {
 public:
  static constexpr double kAtOnce = 20;
  static constexpr Duration kRefill = std::chrono::seconds(1);  // Until there is one more.
  static constexpr std::size_t kMostPages =
      10'000;  // That are remembered. Beyond, pages are purged as often as asked.

  using Purge = std::function<Task<void>()>;

  explicit PurgeRate(Clock& clock) : clock_(clock) {}

  // Awaits the purge of that page, or has it done later, on that executor, and does not wait for it. One that is to be done
  // later stands for all that are asked for until it begins. `url` is for the log.
  Task<void> purge(boost::asio::any_io_executor executor, std::string page, std::string url, Purge purge);

  // Those that are to be done later are done now, also in future.
  void hurry() { hurry_.set(); }
  // How many of them are not done yet.
  int waiting() const { return waiting_; }

 private:
  struct Allowance {
    double left = kAtOnce;
    Duration at{0};    // When that was so.
    bool due = false;  // A purge will be done later, and has not begun.
  };
  enum class Turn { now, later, covered };

  // How long until there is one more is in `wait`.
  Turn turn_of(const std::string& page, const std::string& url, Duration& wait);
  Allowance as_of_now(Allowance allowance) const;
  void forget_idle();
  Task<void> purge_later(std::string page, Duration wait, Purge purge);

  Clock& clock_;
  Event hurry_;
  std::atomic<int> waiting_ = 0;

  std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Allowance> pages_;
  Duration looked_for_idle_at_ = -std::chrono::hours(1);
  Duration told_at_ = -std::chrono::hours(1);  // When the log had a line about it.
};

}  // namespace facetheory
