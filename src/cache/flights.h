// Flights: the regenerations of one process, one per page at a time (and per idempotency key). Each runs on its own,
// for whoever began it and whoever has joined since. This is the book of them: who is aboard, what has landed, and what
// should have landed long ago. What one of them does meanwhile is flight_work.h. For .cc files only, since it needs
// Asio. May be used from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/engine_figures.h"
#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/flight.h"
#include "facetheory/cache/flight_work.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/store_guards.h"
#include "facetheory/cache/turns.h"
#include "facetheory/isr/regenerate_outcome.h"

namespace facetheory {

class Flights;

// Somebody waits for a flight. As long as any of its seats is taken, and before its turn has come, the flight is worth
// queueing for.
class Seat {
 public:
  Seat(std::shared_ptr<Flights> flights, std::shared_ptr<Flight> flight)
      : flights_(std::move(flights)), flight_(std::move(flight)) {}
  ~Seat() { leave(); }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  void leave();  // Once or more often, from any thread.

 private:
  const std::shared_ptr<Flights> flights_;
  const std::shared_ptr<Flight> flight_;
  std::atomic<bool> left_ = false;
};

struct Boarding {
  std::shared_ptr<Flight> flight;   // Null: no flight begins any more.
  bool began = false;               // It began with this errand's renderer; it was joined otherwise.
  bool may_be_published = false;    // It was possible already when it was joined.
  std::shared_ptr<Seat> seat = {};  // Null: nobody waits for that errand.
};

class Flights : public std::enable_shared_from_this<Flights> {
 public:
  Flights(const boost::asio::any_io_executor& executor, std::shared_ptr<StoreGuards> guards,
          std::shared_ptr<const EngineOptions> options, std::shared_ptr<PageMemory> memory);

  // The flight of this page, joined or begun.
  Boarding board(Errand errand);

  // Whether the flight has not had its turn: it queues for it, or was sent away.
  bool is_held_up(const Flight& flight) const { return shared_.turns->is_held_up(*flight.place); }
  bool was_refused(const Flight& flight) const { return shared_.turns->was_refused(*flight.place); }
  // A store has not answered it for a while: it neither queues nor renders, nor waits for somebody else.
  bool waits_for_a_store(const Flight& flight) const;
  // When there may be a turn for somebody who is sent away now; in seconds since 1970.
  std::int64_t turn_expected_at() const;

  // Waits, up to that long, for the flight that is under way for this page, if there is one.
  Task<void> wait_for(std::string pk, Duration limit);

  // Lets none begin any more and waits for all.
  Task<void> drain();

  // Gives up the flights that should have ended long ago, and logs each once: whoever waits for one is answered without
  // it, and the next request begins another. What hangs there has its turn until it ends after all, so that a store or
  // an origin that hangs is not asked by ever more.
  void give_up_overdue();
  // The oldest of those that were given up and still hang.
  std::optional<OverdueRender> overdue() const;

  void add_to(EngineCounters& counters) const;
  void add_to(EngineGauges& gauges) const;

 private:
  friend class Seat;
  void leave(Flight& flight);
  void take_seat(Flight& flight, const Errand& errand);  // The mutex is held.
  void tell_turns(const Flight& flight) const;           // Likewise.

  static Task<void> fly(std::shared_ptr<Flights> self, std::shared_ptr<Flight> flight, std::string key,
                        Errand errand);
  void count(const Result<RegenerateOutcome>& outcome);
  void land(Flight& flight, const std::string& key, Result<RegenerateOutcome> outcome);
  void give_up_overdue_of(const std::string* key);  // The flight of that key, or without one all; if overdue.
  void give_up(const std::shared_ptr<Flight>& flight);  // The mutex is held; the caller sets its events.

  const boost::asio::any_io_executor executor_;
  FlightsShared shared_;

  // Guarded by the mutex in shared_.
  std::map<std::string, std::shared_ptr<Flight>> flights_;
  std::vector<std::shared_ptr<Flight>> given_up_;  // They have not ended yet.
  bool draining_ = false;
};

}  // namespace facetheory
