// PurgeRate: how often visitors can have one page purged.
//
// An unsafe request that succeeds makes the pages that it names invalid (RFC 9111, 4.4), and anybody can send one where
// the origin lets him. Each purge costs transactions and a render, and undoes the render that is under way: a flood of
// them would keep a page from ever being stored. So each page has so many at once, which no honest site uses up; beyond
// them one purge a second stands for all changes that came before it. Nobody is kept waiting for it, and so for up to a
// second a page may be served that is older than such a change.
//
// Whoever changed something waits for the purge only so long: a table that hangs must not keep the origin's answer from
// him. The purge goes on by itself, and is repeated while it fails, for some minutes; then it is lost, which the log
// tells. So many are under way at once and no more: what is beyond is lost at once.
//
// The class has more than 25 members because the allowance of a page and the purge that it delays are one decision,
// under one mutex. May be used from any thread, and outlives the executors that purges were given. For .cc files only,
// since it needs Asio.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"

namespace facetheory {

class PurgeRate {
 public:
  static constexpr double kAtOnce = 20;
  static constexpr Duration kRefill = std::chrono::seconds(1);  // Until there is one more.
  static constexpr std::size_t kMostPages =
      10'000;  // That are remembered. Beyond, pages are purged as often as asked.

  static constexpr int kMostUnderWay = 1'000;
  static constexpr Duration kPatience = std::chrono::seconds(2);  // Whoever asked for it waits no longer.
  // The last attempt comes so long after the first.
  static constexpr Duration kTries = std::chrono::minutes(10);

  // May be called again after it has failed. As long as it is called, what it uses is there.
  using Purge = std::function<Task<Result<void>>()>;

  explicit PurgeRate(Clock& clock) : clock_(clock) {}

  // Has that page purged, on that executor, and waits for it no longer than that; or has it done later, and does not
  // wait. One that is to be done later, or again, stands for all that are asked for until it begins. `url` is for the
  // log.
  Task<void> purge(boost::asio::any_io_executor executor, std::string page, std::string url, Purge purge,
                   Duration patience = kPatience);

  // Has done now what was to be done later, from now on, too; and what fails is not repeated.
  void hurry() { hurry_.set(); }
  // How many are not done yet.
  int waiting() const { return waiting_; }
  // How many, since the start, were not done when whoever asked was answered, and how many were given up.
  std::uint64_t late() const { return late_; }
  std::uint64_t lost() const { return lost_; }

 private:
  struct Allowance {
    double left = kAtOnce;
    Duration at{0};    // When that was so.
    bool due = false;  // A purge will be done later, and has not begun.
  };
  enum class Turn { now, later, covered };

  // Counts one that is asked for, and says when it is its turn. How long until there is one more is in `wait`.
  Turn take_turn(const std::string& page, const std::string& url, Duration& wait);
  Allowance as_of_now(Allowance allowance) const;
  void forget_idle();
  void spawn(const boost::asio::any_io_executor& executor, std::string page, std::string url, Duration wait,
             Purge purge, std::shared_ptr<Event> done);
  Task<void> carry_out(std::string page, std::string url, Duration wait, Purge purge);
  Task<bool> try_again(const std::string& page, const std::string& url, const Error& error, int attempt,
                       Duration until);
  // Whether purges of that page are covered by one that has not begun.
  void set_due(const std::string& page, bool due);
  void lose(const std::string& url, const std::string& why);

  Clock& clock_;
  Event hurry_;
  std::atomic<int> waiting_ = 0;
  std::atomic<std::uint64_t> late_ = 0;
  std::atomic<std::uint64_t> lost_ = 0;

  std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Allowance> pages_;
  Duration looked_for_idle_at_ = -std::chrono::hours(1);
  Duration told_at_ = -std::chrono::hours(1);       // When the log had a line about one that is done later,
  Duration told_lost_at_ = -std::chrono::hours(1);  // and about one that was lost.
};

}  // namespace facetheory
