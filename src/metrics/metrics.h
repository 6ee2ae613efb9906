// Metrics: what Prometheus reads at /metrics. docs/metrics.md lists the families; a test compares the two.
//
// What a hit counts is counted in an object of its event loop (LoopMetrics): no lock, and no cache line that another
// core writes to. Everything else is rarer and counted by atomics. All is added up when somebody asks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "facetheory/base/clock.h"
#include "facetheory/base/engine_counts.h"
#include "facetheory/base/on_loop.h"
#include "facetheory/base/store_observer.h"
#include "facetheory/metrics/access_record.h"
#include "facetheory/metrics/tally.h"

namespace facetheory {

// These are the values of x-facetheory-isr, the most frequent first. "refused" is what the gateway answered all by
// itself (400, 431, no tenant), "own" likewise where nothing was wrong (OPTIONS *); "other" whatever is not in this
// list.
inline constexpr std::array<std::string_view, 12> kRequestStates = {
    "hit",      "stale",  "miss",   "wait-hit", "pass", "stale-metadata-error",
    "uncached", "absent", "failed", "refused",  "own",  "other"};

// These are the outcomes that EngineOptions::on_regenerated tells.
inline constexpr std::array<std::string_view, 16> kRegenerationOutcomes = {"published",
                                                                           "already_fresh",
                                                                           "not_stored",
                                                                           "failed",
                                                                           "in_backoff",
                                                                           "lease_held",
                                                                           "lease_lost",
                                                                           "replayed",
                                                                           "request_in_progress",
                                                                           "request_mismatch",
                                                                           "request_failed",
                                                                           "refused",
                                                                           "no_turn",
                                                                           "called_stale",
                                                                           "error",
                                                                           "other"};

// What one event loop counts. On that loop's thread only, which whoever counts has checked.
class alignas(kFarApart) LoopMetrics {
 public:
  LoopMetrics();

  // A request has ended. `status` 0: the client went away before there was an answer. `bytes` of the body, as sent.
  void answered(OnLoop here, std::string_view state, int status, std::uint64_t bytes, Duration took);
  // The same request's answer was cut off after it had begun.
  void cut_off(OnLoop here, CutOff by);

 private:
  friend class Metrics;
  std::array<DurationTally, kRequestStates.size()> requests_;
  std::array<Tally, 6> responses_;  // By the first digit of the status.
  std::array<Tally, 4> cut_off_;    // By CutOff.
  Tally bytes_;
};

// What is counted of one origin. It may be used from any thread.
class OriginMetrics {
 public:
  OriginMetrics();

  void began() { began_.add(); }
  // Each request that began ends in one of these. `took`: until the answer was complete.
  void answered(int status, Duration took);
  void failed(Duration took);  // No answer, or half of one.

  void set_up(bool up) { up_.store(up, std::memory_order_relaxed); }

 private:
  friend class Metrics;
  std::array<Tally, 6> answers_;  // By the first digit of the status; 0: failed.
  DurationTally durations_;
  Tally began_;
  std::atomic<bool> up_ = true;
};

// One request to an origin; unless it is answered it has failed.
class OriginTiming {
 public:
  // Counts nothing without metrics. The clock must outlive it.
  OriginTiming(OriginMetrics* metrics, Clock& clock)
      : metrics_(metrics), clock_(clock), began_(clock.monotonic()) {
    if (metrics_ != nullptr) metrics_->began();
  }
  ~OriginTiming() {
    if (metrics_ != nullptr) metrics_->failed(clock_.monotonic() - began_);
  }
  OriginTiming(const OriginTiming&) = delete;
  OriginTiming& operator=(const OriginTiming&) = delete;

  void answered(int status) {
    if (metrics_ != nullptr) metrics_->answered(status, clock_.monotonic() - began_);
    metrics_ = nullptr;
  }

 private:
  OriginMetrics* metrics_;
  Clock& clock_;
  const Duration began_;
};

// The engine as it is now, with what stands around it in a gateway.
struct EngineSnapshot {
  EngineCounters counted = {};
  EngineGauges now = {};
  std::uint64_t page_bytes_limit = 0;                  // What bodies may take in memory.
  std::uint64_t lent_bytes = 0, lent_bytes_limit = 0;  // FixedMemory's.
  std::uint64_t table_writes_pending = 0, body_writes_pending = 0;
  std::uint64_t purges_pending = 0, purges_late = 0, purges_lost = 0;
};

// The server as it is now.
struct ServerSnapshot {
  std::uint64_t connections = 0;
  std::uint64_t connections_accepted = 0, connections_refused = 0;  // Refused: beyond the limit.
  std::uint64_t access_log_lines_lost = 0;
};

// What a cleanup has done since it began.
struct CleanupTotals {
  std::uint64_t released_removed = 0, evicted_removed = 0, swept_removed = 0;  // Bodies, by why they went.
  std::uint64_t bytes_swept = 0;
  std::uint64_t rows_expired = 0, rows_evicted = 0;
  std::uint64_t pages_evicted = 0;
  std::uint64_t errors = 0;
};

// The cleanup as it is now, with the budget that it works for.
struct CleanupSnapshot {
  CleanupTotals done = {};
  std::uint64_t pages_refused = 0;  // They were not stored, since there was no room.
  std::uint64_t bodies_waiting = 0, bodies_forgotten = 0;
  std::uint64_t disk_used = 0, disk_occupied = 0, disk_limit = 0;
  std::uint64_t disk_spilled = 0;            // By answers that are ready and have no room in memory.
  std::uint64_t pages = 0, pages_limit = 0;  // Counted only where there is a limit.
  bool sweeping = false;
  Duration since_sweep{0};  // Since the last one ended, of whatever node; 0: not known.
};

// Called for each scrape, on the thread of Metrics::text().
struct MetricsSources {
  std::string version;
  std::function<EngineSnapshot()> engine = {};
  std::function<ServerSnapshot()> server = {};
  std::function<CleanupSnapshot()> cleanup = {};
};

enum class ObservedStore { table, bodies };

// May be used from any thread.
class Metrics {
 public:
  explicit Metrics(MetricsSources sources);
  ~Metrics();

  // Makes the counters of one more event loop. What these two give lives as long as the Metrics.
  LoopMetrics& add_loop();
  // Gives that origin's counters, the same ones for the same name.
  OriginMetrics& origin(std::string_view name);

  // Counts a regeneration; EngineOptions::on_regenerated calls it.
  void regenerated(std::string_view outcome, Duration took);

  // MeasuredTable and MeasuredBodies call what it returns, which must not be called once this is gone.
  StoreObserver store_observer(ObservedStore store);

  // All families in Prometheus's text format, version 0.0.4.
  std::string text() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace facetheory
