// StoreGuards: the stores of an engine, left alone for a while after they have failed. For .cc files only, since it
// needs Asio. May be used from any thread.
//
// Bodies are neither read nor written for a while after several reads in a row have failed (guarded_bodies.h). Either
// store is not written to after several writes have failed (write_breaker.h), until one that was tried has succeeded.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/event.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/engine_figures.h"
#include "facetheory/cache/guarded_bodies.h"
#include "facetheory/cache/guarded_table.h"
#include "facetheory/isr/isr.h"

namespace facetheory {

class StoreGuards {
 public:
  // After as many failures in a row as that a store is left alone for that long. What the Isr refers to outlives it.
  StoreGuards(const Isr& isr, int failures, Duration pause);

  // Its stores are the guarded ones. It lives as long as these guards.
  const Isr& isr() const { return isr_; }

  // Why nothing can be stored now, if that is so: a store is left alone, or cannot be written.
  std::optional<Error> storing_rests() const;
  std::optional<Error> table_writes_rest() const { return table_.writes().rests(); }
  std::optional<Error> body_writes_rest() const { return bodies_.writes().rests(); }

  // Tries stores that cannot be written again, on that executor, where it is time to.
  static void try_writing_again(const std::shared_ptr<StoreGuards>& self,
                                const boost::asio::any_io_executor& executor);
  // Returns when none of these tries is under way.
  Task<void> wait_for_tries();

  void add_to(EngineGauges& gauges) const;

 private:
  GuardedTable table_;
  GuardedBodies bodies_;
  const Isr isr_;

  std::mutex mutex_;                           // Guards what follows; never held across an await.
  std::vector<std::shared_ptr<Event>> tries_;  // Those under way; each is set when it has ended.
};

}  // namespace facetheory
