// Turns: so many may do something at once; the others queue. For .cc files only, since it needs Asio. May be used from
// any thread.
//
// Turns are for those who wait. Whoever is wanted by waiters goes before what is only to be done some time, in the
// order in which they came; one turn in four goes to the background all the same while it has something to do, so that
// it never starves. What nobody wants any more leaves the queue before it begins; what has begun goes on. An eighth of
// all turns is reserved for those who wait while what nobody waits for holds others: a visitor does not wait for the
// end of renders that were abandoned. A freed reserved turn is given out after a moment, because visitors tend to leave
// together: a turn given to one who is about to leave is lost.
//
// The queue is bounded. Who would not come to a turn before all its waiters have lost patience, as far as the length of
// the queue and the turns of late tell, is refused at once. Whoever had a turn, and has to begin again, is not refused
// when it comes. The class has more than 25 members because queue, turns and the estimate change together, under one
// mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "facetheory/base/event.h"

namespace facetheory {

// Who wants that a turn is taken.
enum class Wanted {
  by_nobody,      // Whoever waited has left: it takes a turn that is free, and does not queue for one.
  in_background,  // Nobody waits for it, but it is to be done some time.
  by_waiters,     // Somebody waits for what is done in that turn.
};

struct TurnsCounters {
  std::uint64_t dropped = 0;  // Left the queue because nobody wanted them any more, or not urgently enough.
  std::uint64_t refused = 0;  // Were not let in, or sent away, because their turn would have come too late.
};

class Turns : public std::enable_shared_from_this<Turns> {
 public:
  // The clock outlives it. `most_queued`: of those who are waited for, and as many of the background.
  Turns(Clock& clock, int at_once, std::size_t most_queued);

  // A place of one who takes turns, one after the other.
  class Place;
  // `patience`: how long it queues without a waiter.
  static std::shared_ptr<Place> place(Duration patience);
  // For whoever begins again what was to be done in the turn of `lost`, and came to nothing through nobody's fault:
  // the first turn that it takes is before those of all who came later than that one.
  std::shared_ptr<Place> place_again(Duration patience, const Place& lost);

  // Says who wants it from now on. `until`: when the last of its waiters gives up; monotonic.
  void want(const std::shared_ptr<Place>& place, Wanted wanted, Duration until = Duration(0));

  // It is one's turn until what this yields is destroyed. Null: there is none for it.
  Task<std::shared_ptr<void>> take(std::shared_ptr<Place> place);

  // Whether its turn has not come: it queues, or was sent away.
  bool is_held_up(const Place& place) const;
  bool was_refused(const Place& place) const;
  // Estimates after how long a newcomer would have its turn.
  Duration expected_wait() const;

  std::size_t queued() const;
  Duration oldest() const;  // How long the oldest has been queueing.
  TurnsCounters counters() const;

 private:
  using Queue = std::map<std::uint64_t, std::shared_ptr<Place>>;  // By number, which is the order of arrival.
  using Woken = std::vector<std::shared_ptr<Event>>;
  class Turn;

  void leave(const std::shared_ptr<Place>& place);
  bool is_in_front(const Place& place) const;
  bool still_queues(Place& place, Duration came);

  // These are called with mutex_ held.
  bool enter(const std::shared_ptr<Place>& place);
  void send_away(Place& place, bool refused, Woken& woken);
  void give(Place& place);
  void give_back(Place& place);
  void set_unwaited(Place& place, bool unwaited);
  void hand_out(Woken& woken);
  void refuse_the_late(Woken& woken);
  Queue& queue_of(const Place& place);
  bool has_room(Wanted wanted) const;
  int unwaited_turns() const;
  Duration expected_wait(std::size_t before, Duration now) const;
  static void wake(const Woken& woken);

  // Constant after construction.
  Clock& clock_;
  const int reserved_;  // They are for those who wait, while others hold turns for nobody.
  const int ordinary_;  // Everybody may have these.
  const std::size_t most_queued_;

  mutable std::mutex mutex_;  // Guards what follows, and what is in the places.
  Queue waited_for_;
  Queue background_;
  std::uint64_t last_number_ = 0;
  int taken_ = 0;
  std::multiset<Duration> unwaited_;        // Since when nobody waits for what is done, of those taken.
  int passed_over_ = 0;                     // Turns that were given to waiters since the background had one.
  std::chrono::milliseconds began_sum_{0};  // When the turns began that are taken, added up.
  Duration lately_{0};                      // How long a turn took, on average of the last ones.
  int measured_ = 0;                        // How many these are.
  Duration measured_at_{0};
  Duration looked_for_late_at_{0};
  TurnsCounters counters_;
};

}  // namespace facetheory
