// The network between a party and the truth. A request travels, is carried out, and its answer travels; each of
// these is a step of its own, and the weather decides what goes wrong on the way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/bodies/body_store.h"
#include "facetheory/table/table.h"

#include "tests/simulation/checker.h"
#include "tests/simulation/party.h"
#include "tests/simulation/truth.h"

namespace facetheory::simulation {

// Chances per thousand requests.
struct Weather {
  int unavailable = 0;   // Throttled, or in conflict: nothing happens.
  int lost_request = 0;  // `ambiguous`, and it never arrives.
  int lost_answer = 0;   // `ambiguous`, though it arrived.
  int delayed = 0;       // `ambiguous` now; it arrives later, up to `longest_delay`.
  int repeated = 0;      // A transaction arrives a second time.
  int stale = 0;         // An eventually consistent read sees an earlier value.
  int slow = 100;        // It takes long, and still has an answer.
  Millis longest_delay = 40'000;
  Millis behind = 3'000;  // So far back do stale reads look.
};

class Network {
 public:
  Network(Scheduler& scheduler, Checker& checker, Truth& truth)
      : scheduler_(scheduler), checker_(checker), truth_(truth) {}

  // The party's own view.
  std::unique_ptr<Table> table_of(Party& party);
  std::unique_ptr<BodyStore> bodies_of(Party& party);

  void set_weather(Weather weather) { weather_ = weather; }
  // Nobody's requests get through until then: all are `unavailable`.
  void take_down(bool table, bool bodies, Millis until) {
    if (table) table_down_until_ = until;
    if (bodies) bodies_down_until_ = until;
  }

 private:
  friend class SimulatedTable;
  friend class SimulatedBodies;

  enum class Kind { read, write, transaction, body_read, body_write };
  struct Journey {
    enum class Fate { answered, unavailable, ambiguous } fate = Fate::answered;
    Millis arrives = kNever;  // Never: the request is lost.
    Millis answered = kNever;
    Millis again = kNever;
  };

  template <typename T>
  Task<Result<T>> call(Party& party, Sender sender, Kind kind, std::string what,
                       std::function<Result<T>(const Sender&)> carry_out);
  Sender sender_of(const Party& party) const {
    return {party.id, party.foreign, party.operation, scheduler_.now(), party.clock.own_now()};
  }
  Journey plan(Kind kind);
  void say(const Party& party, const std::string& what);

  Scheduler& scheduler_;
  Checker& checker_;
  Truth& truth_;
  Weather weather_;
  Millis table_down_until_ = 0;
  Millis bodies_down_until_ = 0;
};

}  // namespace facetheory::simulation
