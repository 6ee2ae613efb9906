// GuardedBodies: a body store behind a circuit breaker. After several reads in a row have failed it is not asked but
// for one probe now and then, so that requests do not queue up behind time-outs. For .cc files only, since it needs
// Asio. May be used from any thread.
//
// Failed reads open it. While it is open writes are refused, too, and one that succeeds as a probe ends it as well as a
// read. Failed writes open another (write_breaker.h): a store that cannot be written to is still good for reading.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "facetheory/bodies/forwarding_bodies.h"
#include "facetheory/cache/circuit_breaker.h"
#include "facetheory/cache/write_breaker.h"

namespace facetheory {

class GuardedBodies final : public ForwardingBodies {
 public:
  // The store and the clock outlive it.
  GuardedBodies(BodyStore& inner, Clock& clock, int failures, Duration pause)
      : ForwardingBodies(inner),
        clock_(clock),
        writes_("the body store", clock, failures, pause),
        breaker_(failures, pause) {}

  // It has failed so often that it is hardly asked.
  bool is_down() const;
  // Why nothing would come of asking now; empty: it may be asked, be it as a probe.
  std::optional<Error> rests() const;

  WriteBreaker& writes() { return writes_; }
  const WriteBreaker& writes() const { return writes_; }
  // Writes a body without bytes, and removes it again.
  Task<void> probe();

 private:
  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;

  bool let_through();  // As CircuitBreaker's.
  void was_read(const Error* failure);
  void was_written(const Error* failure, Duration began);

  // Constant after construction.
  Clock& clock_;

  WriteBreaker writes_;

  mutable std::mutex mutex_;  // guards what follows
  CircuitBreaker breaker_;
};

}  // namespace facetheory
