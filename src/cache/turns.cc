#include "facetheory/cache/turns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {
namespace {

constexpr int kShareReserved = 8;  // One turn of so many is reserved for those who wait.
constexpr int kShareOfBackground =
    4;                      // One turn of so many is for the background, if it has something to do.
constexpr int kEnough = 8;  // Turns that ended, to judge by them how long one takes.
constexpr std::chrono::seconds kLate{30};  // What was measured before that says nothing of today's renders.
constexpr std::chrono::milliseconds kBetweenSearches{250};
// How long nobody waits for what holds a turn until one of those that are reserved is given instead of it. A server
// sees within less than that who has left.
constexpr std::chrono::milliseconds kSettled{300};
// Whoever came lately finds out by itself whether that time has passed: nothing else may happen for long. Those in
// front look again and again. Those who would get none of the reserved turns look only once: where thousands come at
// once they would keep the loop from what is under way there, and leases from being refreshed.
constexpr std::chrono::milliseconds kBetweenChecks{100};
constexpr std::chrono::seconds kLately{1};
constexpr std::chrono::seconds kBeyondPatience{1};  // Passes between two checks then.

}  // namespace

// Guarded by the mutex of the Turns, but for what is constant.
class Turns::Place {
 public:
  explicit Place(Duration patient_for) : patience(patient_for) {}

  enum class State {
    outside,    // It wants no turn at the moment.
    queued,     // In the queue, under its number.
    has_turn,   // Since `since`.
    sent_away,  // It got none: nobody wanted it.
    refused,    // It got none: its turn would have come too late.
  };

  const Duration patience;
  State state = State::outside;
  Wanted wanted = Wanted::in_background;
  Duration until{0};  // When the last of its waiters gives up.
  Duration since{0};  // When it came into its state, if that lasts.
  // It has a turn, and nobody has waited for what is done since then.
  std::optional<Duration> unwaited_since = {};
  std::uint64_t number = 0;
  bool keeps_number = false;       // When it enters next.
  std::shared_ptr<Event> changed;  // Set when it is queued no more.
};

// Taken or waited for: whoever is interrupted while waiting may have got it meanwhile.
class Turns::Turn {
 public:
  Turn(std::shared_ptr<Turns> turns, std::shared_ptr<Place> place)
      : turns_(std::move(turns)), place_(std::move(place)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { turns_->leave(place_); }

 private:
  const std::shared_ptr<Turns> turns_;
  const std::shared_ptr<Place> place_;
};

Turns::Turns(Clock& clock, int at_once, std::size_t most_queued)
    : clock_(clock),
      reserved_(at_once / kShareReserved),
      ordinary_(at_once - reserved_),
      most_queued_(most_queued) {}

std::shared_ptr<Turns::Place> Turns::place(Duration patience) {
  return std::make_shared<Place>(patience);
}

std::shared_ptr<Turns::Place> Turns::place_again(Duration patience, const Place& lost) {
  auto again = place(patience);
  const std::lock_guard lock(mutex_);
  again->number = lost.number;
  again->keeps_number = again->number != 0;
  return again;
}

Task<std::shared_ptr<void>> Turns::take(std::shared_ptr<Place> place) {
  const std::shared_ptr<void> turn = std::make_shared<Turn>(shared_from_this(), place);
  const Duration came = clock_.monotonic();
  std::shared_ptr<Event> changed;
  {
    const std::lock_guard lock(mutex_);
    if (!enter(place)) co_return nullptr;
    changed = place->changed;
  }
  while (changed) {
    const Duration so_far = clock_.monotonic() - came;
    // Who is waited for stays beyond that, but may become one who is not.
    Duration wait = so_far < place->patience ? place->patience - so_far : kBeyondPatience;
    if (so_far < kLately) wait = std::min(wait, is_in_front(*place) ? kBetweenChecks : kLately - so_far);
    co_await changed->wait(clock_, wait);
    if (!still_queues(*place, came)) changed = nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    if (place->state != Place::State::has_turn) co_return nullptr;
  }
  co_return turn;
}

// Whether a place that queues since it came still does: it may have lost patience, or got its turn.
bool Turns::still_queues(Place& place, Duration came) {
  Woken woken;
  bool queued = false;
  {
    const std::lock_guard lock(mutex_);
    const bool lost_patience = clock_.monotonic() - came >= place.patience;
    if (place.state == Place::State::queued && place.wanted != Wanted::by_waiters && lost_patience)
      send_away(place, false, woken);
    hand_out(woken);
    queued = place.state == Place::State::queued;
  }
  wake(woken);
  return queued;
}

// Whether it may be among those who get the turns that are reserved.
bool Turns::is_in_front(const Place& place) const {
  const std::lock_guard lock(mutex_);
  auto each = waited_for_.begin();
  for (int before = 0; before <= reserved_ && each != waited_for_.end(); ++before, ++each) {
    if (each->second.get() == &place) return true;
  }
  return false;
}

// False: it has no turn and will not get one.
bool Turns::enter(const std::shared_ptr<Place>& place) {
  const bool is_queued = waited_for_.contains(place->number) || background_.contains(place->number);
  const bool comes_again = std::exchange(place->keeps_number, false) && !is_queued;
  if (!comes_again) place->number = ++last_number_;
  const bool waited_for = place->wanted == Wanted::by_waiters;
  if (has_room(place->wanted) && waited_for_.empty() && (waited_for || background_.empty())) {
    give(*place);
    return true;
  }
  const Duration now = clock_.monotonic();
  const bool too_late = waited_for && now + expected_wait(waited_for_.size(), now) > place->until;
  Woken nobody;
  if (place->wanted == Wanted::by_nobody) {
    send_away(*place, false, nobody);
    return false;
  }
  if (!comes_again && (too_late || queue_of(*place).size() >= most_queued_)) {
    send_away(*place, waited_for, nobody);
    return false;
  }
  place->state = Place::State::queued;
  place->since = now;
  place->changed = std::make_shared<Event>();
  queue_of(*place).emplace(place->number, place);
  return true;
}

void Turns::want(const std::shared_ptr<Place>& place, Wanted wanted, Duration until) {
  Woken woken;
  {
    const std::lock_guard lock(mutex_);
    if (place->state == Place::State::queued) {
      queue_of(*place).erase(place->number);
    } else if (place->state == Place::State::has_turn) {
      set_unwaited(*place, wanted != Wanted::by_waiters);
    }
    place->wanted = wanted;
    place->until = until;
    if (place->state == Place::State::queued) {
      if (wanted == Wanted::by_nobody) {
        send_away(*place, false, woken);
      } else {
        queue_of(*place).emplace(place->number, place);
      }
    }
    hand_out(woken);
  }
  wake(woken);
}

void Turns::leave(const std::shared_ptr<Place>& place) {
  Woken woken;
  {
    const std::lock_guard lock(mutex_);
    if (place->state == Place::State::queued) {
      queue_of(*place).erase(place->number);
      place->state = Place::State::outside;
    } else if (place->state == Place::State::has_turn) {
      give_back(*place);
      hand_out(woken);
      refuse_the_late(woken);
    }
  }
  wake(woken);
}

void Turns::send_away(Place& place, bool refused, Woken& woken) {
  if (place.state == Place::State::queued) {
    queue_of(place).erase(place.number);
    woken.push_back(place.changed);
  }
  place.state = refused ? Place::State::refused : Place::State::sent_away;
  ++(refused ? counters_.refused : counters_.dropped);
}

void Turns::give(Place& place) {
  place.state = Place::State::has_turn;
  place.since = clock_.monotonic();
  began_sum_ += std::chrono::floor<std::chrono::milliseconds>(place.since);
  ++taken_;
  set_unwaited(place, place.wanted != Wanted::by_waiters);
}

void Turns::set_unwaited(Place& place, bool unwaited) {
  if (unwaited == place.unwaited_since.has_value()) return;
  if (unwaited) {
    place.unwaited_since = clock_.monotonic();
    unwaited_.insert(*place.unwaited_since);
  } else {
    unwaited_.erase(unwaited_.find(*place.unwaited_since));
    place.unwaited_since.reset();
  }
}

void Turns::give_back(Place& place) {
  const Duration now = clock_.monotonic();
  const Duration took = now - place.since;
  if (now - measured_at_ > kLate) measured_ = 0;
  measured_at_ = now;
  measured_ = std::min(measured_ + 1, kEnough);
  lately_ += (took - lately_) / measured_;
  began_sum_ -= std::chrono::floor<std::chrono::milliseconds>(place.since);
  --taken_;
  set_unwaited(place, false);
  place.state = Place::State::outside;
}

bool Turns::has_room(Wanted wanted) const {
  return taken_ < ordinary_ + (wanted == Wanted::by_waiters ? unwaited_turns() : 0);
}

// How many of those that are reserved may be given instead of turns that nobody waits for.
int Turns::unwaited_turns() const {
  const auto settled = unwaited_.upper_bound(clock_.monotonic() - kSettled);
  int turns = 0;
  for (auto each = unwaited_.begin(); each != settled && turns < reserved_; ++each)
    ++turns;
  return turns;
}

void Turns::hand_out(Woken& woken) {
  for (;;) {
    const bool shared = !waited_for_.empty() && !background_.empty();
    const bool to_background = shared ? passed_over_ >= kShareOfBackground - 1 : waited_for_.empty();
    Queue& queue = to_background ? background_ : waited_for_;
    // Its share the background has of all turns that are there for those who wait.
    if (queue.empty() || !has_room(shared ? Wanted::by_waiters : queue.begin()->second->wanted)) return;
    passed_over_ = to_background || background_.empty() ? 0 : passed_over_ + 1;
    const std::shared_ptr<Place> next = queue.begin()->second;
    queue.erase(queue.begin());
    give(*next);
    woken.push_back(next->changed);
  }
}

// A late refusal helps nobody: whoever is told early can go elsewhere, or come back in time.
void Turns::refuse_the_late(Woken& woken) {
  const Duration now = clock_.monotonic();
  if (measured_ < kEnough || now - looked_for_late_at_ < kBetweenSearches) return;
  looked_for_late_at_ = now;
  std::size_t before = 0;
  for (auto each = waited_for_.begin(); each != waited_for_.end();) {
    const std::shared_ptr<Place> place = (each++)->second;
    if (now + expected_wait(before, now) <= place->until) {
      ++before;
    } else {
      send_away(*place, true, woken);
    }
  }
}

Turns::Queue& Turns::queue_of(const Place& place) {
  return place.wanted == Wanted::by_waiters ? waited_for_ : background_;
}

// Turns take at least as long as those have lasted that are taken.
Duration Turns::expected_wait(std::size_t before, Duration now) const {
  const bool is_known = measured_ >= kEnough && now - measured_at_ <= kLate;
  const Duration so_far = taken_ > 0 ? now - began_sum_ / taken_ : Duration(0);
  const Duration one = std::max(is_known ? lately_ : Duration(0), so_far);
  const auto rounds = static_cast<double>(before) / static_cast<double>(std::max(ordinary_, 1));
  return std::chrono::duration_cast<Duration>(one * rounds);
}

void Turns::wake(const Woken& woken) {
  for (const auto& event : woken)
    event->set();
}

bool Turns::is_held_up(const Place& place) const {
  const std::lock_guard lock(mutex_);
  return place.state == Place::State::queued || place.state == Place::State::refused ||
         place.state == Place::State::sent_away;
}

bool Turns::was_refused(const Place& place) const {
  const std::lock_guard lock(mutex_);
  return place.state == Place::State::refused;
}

Duration Turns::expected_wait() const {
  const std::lock_guard lock(mutex_);
  return expected_wait(waited_for_.size(), clock_.monotonic());
}

std::size_t Turns::queued() const {
  const std::lock_guard lock(mutex_);
  return waited_for_.size() + background_.size();
}

Duration Turns::oldest() const {
  const std::lock_guard lock(mutex_);
  const Duration now = clock_.monotonic();
  Duration oldest{0};
  for (const Queue* queue : {&waited_for_, &background_}) {
    if (!queue->empty()) oldest = std::max(oldest, now - queue->begin()->second->since);
  }
  return oldest;
}

TurnsCounters Turns::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace facetheory
