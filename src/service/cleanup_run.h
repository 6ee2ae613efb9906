// CleanupRun: what the jobs of a cleanup share: when to end, whether anything may be removed, and what was done so far.
// On the cleanup's thread, but for what is counted and end(). For .cc files only, since it needs Asio.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/isr/partners.h"
#include "facetheory/metrics/metrics.h"
#include "facetheory/service/cleanup_parts.h"

namespace facetheory {

class CleanupRun {
 public:
  explicit CleanupRun(CleanupParts with) : parts(std::move(with)) {}

  const CleanupParts parts;
  std::atomic<std::int64_t> last_sweep = 0;  // When it ended, of whatever node; 0: not known.
  std::atomic<bool> sweeping = false;

  // Adds to what was done. From any thread.
  void count(std::uint64_t CleanupTotals::* what, std::uint64_t number);
  CleanupTotals done() const;

  Duration now() const { return parts.isr.clock.monotonic(); }

  void end();  // From any thread.
  bool has_ended() const { return stop_source_.stop_requested(); }
  std::stop_token ending() const { return stop_source_.get_token(); }
  // Waits that long. True: the cleanup is to end.
  Task<bool> pause(Duration length);

  // Settles whether table and bodies belong together, so that bodies may be removed. Asks the stores, and introduces
  // them, once a minute at most: somebody may have given the bodies to another table meanwhile.
  Task<bool> settle_whether_to_delete();
  const PartnerReport& partners() const { return partners_; }

  // How many bodies wait that a publish has released.
  std::size_t released_waiting() const;

  // Counts the failure, and logs it once a minute at most: a store that is down fails again and again.
  void failed(const char* what, const Error& error);

 private:
  Event ended_;
  std::stop_source stop_source_;
  std::optional<Duration> asked_at_;  // Whether anything may be removed.
  PartnerReport partners_;
  std::optional<Duration> told_failure_;
  mutable std::mutex mutex_;
  CleanupTotals done_;  // Guarded by mutex_.
};

}  // namespace facetheory
