#include "facetheory/cache/flights.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include "facetheory/base/duration.h"
#include "facetheory/base/log.h"
#include "facetheory/cache/render_within.h"
#include "facetheory/isr/requests.h"

namespace facetheory {
namespace {

// How long a page that is served as stale queues to be rendered, at least. Whoever asks for it then queues it again.
constexpr std::chrono::seconds kBackgroundPatience{30};
// A step of a flight that takes longer, and is none of those that take long by nature, waits for a store that hangs.
constexpr std::chrono::milliseconds kStorePatience{500};
// A drain gives up overdue flights so often, while the others end.
constexpr std::chrono::seconds kDrainStep{1};

}  // namespace

Flights::Flights(const boost::asio::any_io_executor& executor, std::shared_ptr<StoreGuards> guards,
                 std::shared_ptr<const EngineOptions> options, std::shared_ptr<PageMemory> memory)
    : executor_(executor), shared_(std::move(guards), std::move(options), std::move(memory)) {}

Boarding Flights::board(Errand errand) {
  const ServeRequest& request = errand.request;
  std::string key = request.page.pk;
  if (request.request_id) key += '\n' + *request.request_id + '\n' + request_hash(request.inputs);
  const bool waits = errand.waits_until.has_value();
  give_up_overdue_of(&key);
  std::shared_ptr<Flight> flight;
  Boarding boarding;
  {
    const std::lock_guard lock(shared_.mutex);
    if (draining_) return {};
    std::shared_ptr<Flight>& slot = flights_[key];
    boarding.began = !slot;
    if (slot) {
      slot->joined = true;
      boarding.may_be_published = slot->render.has_ended(lock);
    } else {
      const Duration patience = std::max<Duration>(request.policy.wait_limit, kBackgroundPatience);
      auto place = errand.lost_place ? shared_.turns->place_again(patience, *errand.lost_place)
                                     : Turns::place(patience);
      slot =
          std::make_shared<Flight>(shared_.mutex, request, shared_.isr.clock.monotonic(), std::move(place));
      slot->due = slot->began + kStoresLimit;
    }
    boarding.flight = flight = slot;
    take_seat(*flight, errand);
  }
  if (waits) boarding.seat = std::make_shared<Seat>(shared_from_this(), flight);
  if (!boarding.began) return boarding;
  boost::asio::co_spawn(executor_, fly(shared_from_this(), flight, std::move(key), std::move(errand)),
                        [](std::exception_ptr escaped) {
                          if (escaped) log(LogLevel::error, "a regeneration ended by an exception");
                        });
  return boarding;
}

void Flights::take_seat(Flight& flight, const Errand& errand) {
  if (errand.waits_until) {
    ++flight.waiters;
    flight.waited_until = std::max(flight.waited_until, *errand.waits_until);
  } else {
    flight.for_its_own = true;
  }
  tell_turns(flight);
}

void Flights::leave(Flight& flight) {
  const std::lock_guard lock(shared_.mutex);
  --flight.waiters;
  if (flight.waiters == 0) tell_turns(flight);
}

void Flights::tell_turns(const Flight& flight) const {
  const Wanted otherwise = flight.for_its_own ? Wanted::in_background : Wanted::by_nobody;
  shared_.turns->want(flight.place, flight.waiters > 0 ? Wanted::by_waiters : otherwise, flight.waited_until);
}

void Seat::leave() {
  if (!left_.exchange(true)) flights_->leave(*flight_);
}

bool Flights::waits_for_a_store(const Flight& flight) const {
  if (is_held_up(flight) || flight.elsewhere) return false;
  return flight.render.has_paused_for(kStorePatience, shared_.isr.clock.monotonic());
}

std::int64_t Flights::turn_expected_at() const {
  const auto wait = std::chrono::ceil<std::chrono::seconds>(shared_.turns->expected_wait());
  // Not in the second that is about to end.
  return shared_.isr.now() + 1 + std::max<std::int64_t>(wait.count(), 1);
}

Task<void> Flights::fly(std::shared_ptr<Flights> self, std::shared_ptr<Flight> flight, std::string key,
                        Errand errand) {
  Result<RegenerateOutcome> outcome = Error{};
  try {
    FlightWork work(self->shared_, *flight, std::move(errand));
    outcome = co_await work.run();
  } catch (const std::exception& error) {
    outcome = Error{ErrorCode::internal, error.what()};
  }
  self->count(outcome);
  if (const auto& tell = self->shared_.options->on_regenerated) {
    tell(outcome ? name(*outcome) : "error", self->shared_.isr.clock.monotonic() - flight->began);
  }
  self->land(*flight, key, std::move(outcome));
}

void Flights::land(Flight& flight, const std::string& key, Result<RegenerateOutcome> outcome) {
  {
    const std::lock_guard lock(shared_.mutex);
    if (flight.landed) {
      std::erase_if(given_up_, [&](const auto& one) { return one.get() == &flight; });
      log(LogLevel::warning,
          "the render of " + to_string(flight.page) + " that was given up has ended after all");
      return;
    }
    flight.landed = true;
    flight.outcome.emplace(std::move(outcome));
    flights_.erase(key);
  }
  flight.tell_ended();
}

// --- renders that do not end ------------------------------------------------------------------------------------

void Flights::give_up(const std::shared_ptr<Flight>& flight) {
  const std::string page = to_string(flight->page);
  const std::string age = in_words(shared_.isr.clock.monotonic() - flight->began);
  flight->landed = true;
  flight->outcome.emplace(Error{ErrorCode::unavailable, "the render of " + page + " has hung for " + age});
  given_up_.push_back(flight);
  log(LogLevel::error, "the render of " + page + " began " + age +
                           " ago and should have ended long since: a store or the origin hangs beyond all "
                           "limits, or this program has a mistake; restart it if this stays");
}

void Flights::give_up_overdue() {
  give_up_overdue_of(nullptr);
}

void Flights::give_up_overdue_of(const std::string* key) {
  std::vector<std::shared_ptr<Flight>> hanging;
  {
    const std::lock_guard lock(shared_.mutex);
    const Duration now = shared_.isr.clock.monotonic();
    auto each = key != nullptr ? flights_.find(*key) : flights_.begin();
    const auto end = key != nullptr && each != flights_.end() ? std::next(each) : flights_.end();
    while (each != end) {
      const std::shared_ptr<Flight> flight = each->second;
      const bool is_overdue = now > flight->due;
      if (is_overdue) give_up(flight);
      if (is_overdue) hanging.push_back(flight);
      each = is_overdue ? flights_.erase(each) : std::next(each);
    }
  }
  for (const auto& flight : hanging)
    flight->tell_ended();
}

std::optional<OverdueRender> Flights::overdue() const {
  const std::lock_guard lock(shared_.mutex);
  if (given_up_.empty()) return std::nullopt;
  const Flight& oldest = *given_up_.front();
  return OverdueRender{to_string(oldest.page), shared_.isr.clock.monotonic() - oldest.began,
                       given_up_.size()};
}

void Flights::count(const Result<RegenerateOutcome>& outcome) {
  const std::lock_guard lock(shared_.mutex);
  if (!outcome) {
    ++shared_.counters.table_errors;
    return;
  }
  if (std::holds_alternative<Regenerated>(*outcome)) ++shared_.counters.published;
  const auto* not_stored = std::get_if<NotStored>(&*outcome);
  if (not_stored != nullptr || std::holds_alternative<CalledStale>(*outcome)) ++shared_.counters.not_stored;
  const auto* failed = std::get_if<RenderFailed>(&*outcome);
  if (failed != nullptr && !failed->in_backoff) ++shared_.counters.renders_failed;
  const bool lost = not_stored != nullptr && not_stored->lease_lost;
  if (lost || std::holds_alternative<LeaseLost>(*outcome)) ++shared_.counters.leases_lost;
}

Task<void> Flights::wait_for(std::string pk, Duration limit) {
  std::shared_ptr<Flight> flight;
  {
    const std::lock_guard lock(shared_.mutex);
    if (const auto found = flights_.find(pk); found != flights_.end()) flight = found->second;
  }
  if (flight) co_await flight->ended.wait(shared_.isr.clock, limit);
}

Task<void> Flights::drain() {
  for (;;) {
    std::shared_ptr<Flight> flight;
    {
      const std::lock_guard lock(shared_.mutex);
      draining_ = true;
      if (!flights_.empty()) flight = flights_.begin()->second;
    }
    if (!flight) co_return co_await shared_.guards->wait_for_tries();
    co_await flight->ended.wait(shared_.isr.clock, kDrainStep);
    give_up_overdue();
  }
}

void Flights::add_to(EngineCounters& counters) const {
  const std::lock_guard lock(shared_.mutex);
  counters.renders += shared_.counters.renders;
  counters.renders_failed += shared_.counters.renders_failed;
  counters.published += shared_.counters.published;
  counters.not_stored += shared_.counters.not_stored;
  counters.leases_acquired += shared_.counters.leases_acquired;
  counters.leases_contended += shared_.counters.leases_contended;
  counters.leases_lost += shared_.counters.leases_lost;
  counters.leases_taken_over += shared_.counters.leases_taken_over;
  counters.table_errors += shared_.counters.table_errors;
  const TurnsCounters turns = shared_.turns->counters();
  counters.renders_dropped += turns.dropped;
  counters.renders_refused += turns.refused;
}

void Flights::add_to(EngineGauges& gauges) const {
  gauges.queued_renders = shared_.turns->queued();
  gauges.storing = shared_.storing->count();
  gauges.storing_bytes = shared_.storing->bytes();
  gauges.oldest_queued = shared_.turns->oldest();
  const std::lock_guard lock(shared_.mutex);
  const Duration now = shared_.isr.clock.monotonic();
  gauges.flights = flights_.size() + given_up_.size();
  gauges.overdue_flights = given_up_.size();
  for (const auto& flight : given_up_)
    gauges.oldest_flight = std::max(gauges.oldest_flight, now - flight->began);
  for (const auto& [key, flight] : flights_)
    gauges.oldest_flight = std::max(gauges.oldest_flight, now - flight->began);
}

}  // namespace facetheory
