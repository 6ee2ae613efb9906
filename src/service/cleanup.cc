#include "facetheory/service/cleanup.h"

#include <algorithm>
#include <future>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "facetheory/base/log.h"
#include "facetheory/base/loop_thread.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/service/cleanup_run.h"
#include "facetheory/service/eviction.h"
#include "facetheory/service/released_removal.h"
#include "facetheory/service/sweeping.h"

namespace facetheory {

namespace asio = boost::asio;

class Cleanup::State {
 public:
  explicit State(CleanupParts parts) : run_(std::move(parts)) {}

  void start();
  bool stop(std::chrono::steady_clock::time_point deadline);
  CleanupSnapshot snapshot() const;

 private:
  CleanupRun run_;
  ReleasedRemoval released_{run_};
  Eviction eviction_{run_, released_};
  Sweeping sweeping_{run_};

  LoopThread thread_{"cleanup", Urgency::leisurely};
  std::vector<std::future<void>> tasks_;
};

void Cleanup::State::start() {
  const auto begin = [this](Task<void> task) {
    tasks_.push_back(asio::co_spawn(thread_.executor(), std::move(task), asio::use_future));
  };
  begin(released_.remove_when_due());
  begin(eviction_.keep_within_budget());
  begin(sweeping_.sweep_now_and_then());
}

bool Cleanup::State::stop(std::chrono::steady_clock::time_point deadline) {
  run_.end();
  while (!tasks_.empty()) {
    if (tasks_.back().wait_until(deadline) != std::future_status::ready) return false;
    try {
      tasks_.back().get();
    } catch (const std::exception& error) {
      log(LogLevel::error, std::string("cleanup ended early: ") + error.what());
    }
    tasks_.pop_back();
  }
  return true;
}

CleanupSnapshot Cleanup::State::snapshot() const {
  const Isr& isr = run_.parts.isr;
  const StorageBudget& budget = run_.parts.budget;
  CleanupSnapshot snapshot;
  snapshot.done = run_.done();
  snapshot.pages_refused = budget.refused();
  if (isr.released != nullptr) {
    snapshot.bodies_waiting = isr.released->size();
    snapshot.bodies_forgotten = isr.released->forgotten();
  }
  const DiskUse use = budget.use();
  snapshot.disk_used = use.used;
  snapshot.disk_occupied = use.occupied;
  snapshot.disk_limit = budget.disk().value_or(0);
  snapshot.pages = budget.limits_pages() ? budget.pages() : 0;
  snapshot.pages_limit = budget.most_pages().value_or(0);
  snapshot.sweeping = run_.sweeping;
  const std::int64_t last = run_.last_sweep;
  if (last > 0) snapshot.since_sweep = std::chrono::seconds(std::max<std::int64_t>(isr.now() - last, 0));
  return snapshot;
}

Cleanup::Cleanup(CleanupParts parts) : state_(std::make_unique<State>(std::move(parts))) {
  state_->start();
}

Cleanup::~Cleanup() {
  // Not time_point::max(), which a wait may turn into a time that has passed.
  while (!state_->stop(std::chrono::steady_clock::now() + std::chrono::hours(1)))
    continue;
}

bool Cleanup::stop(std::chrono::steady_clock::time_point deadline) {
  return state_->stop(deadline);
}

CleanupSnapshot Cleanup::snapshot() const {
  return state_->snapshot();
}

}  // namespace facetheory
