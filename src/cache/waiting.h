// Waiting: one request that waits for its page to be rendered. It boards a flight, and another one where that had
// nothing for it. For .cc files only, since it needs Asio.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <variant>

#include "facetheory/base/clock.h"
#include "facetheory/base/counted.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/engine_parts.h"
#include "facetheory/cache/flight.h"
#include "facetheory/cache/flights.h"
#include "facetheory/cache/landing.h"
#include "facetheory/cache/served.h"

namespace facetheory {

class Waiting {
 public:
  // What these refer to outlives it.
  Waiting(EngineParts& parts, const WaitingRequest& waiting)
      : parts_(parts),
        flights_(*parts.flights),
        clock_(parts.isr.clock),
        waiting_(waiting),
        landing_(parts, waiting_),
        counted_(parts.waiters) {}

  Task<Waited> run();

 private:
  struct BoardAnother {};  // Nothing of that flight is for this request.
  // There is no render for this request in its time.
  struct NoneInTime {
    Error failure;
  };
  // What becomes of one flight that is waited for.
  using Ride = std::variant<Result<Served>, TryAgain, BoardAnother, NoneInTime>;

  Task<Ride> ride(bool just_read);
  Task<std::optional<Served>> stale_while_elsewhere(Flight& flight);
  Task<std::optional<Served>> early_answer(Flight& flight);
  Task<std::optional<Served>> answer_while_rendered(Flight& flight);
  Task<std::optional<Served>> answer_while_stored(Flight& flight);

  Task<Ride> ride_is_late(const Boarding& boarding);
  Ride ride_had_no_turn(const Flight& flight) const;
  Task<Ride> ride_has_ended(const Boarding& boarding);
  bool is_of_no_use(const Boarding& boarding) const;

  // Whoever does not wait at all wants the page for the next one.
  std::optional<Duration> waits_until() const;
  Duration time_left() const { return waiting_.deadline - clock_.monotonic(); }
  bool has_time() const { return clock_.monotonic() < waiting_.deadline; }
  NoneInTime none_in_time() const;
  NoneInTime too_many(const Flight& flight) const;

  EngineParts& parts_;
  Flights& flights_;
  Clock& clock_;
  const WaitingRequest waiting_;
  Landing landing_;
  const Counted<std::atomic<std::size_t>> counted_;
};

}  // namespace facetheory
