#include "facetheory/cache/flights.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/base/log.h"
#include "facetheory/isr/marks.h"
#include "facetheory/isr/rendered_elsewhere.h"
#include "facetheory/isr/verdict.h"

namespace facetheory {
namespace {

// How long a page that is served as stale queues to be rendered, at least. Whoever asks for it then queues it again.
constexpr std::chrono::seconds kBackgroundPatience{30};
// What a flight may take beside its render and the queue, for leases and stores. All of these have limits of their own,
// which are far less: who takes longer hangs.
constexpr std::chrono::seconds kStoresLimit{120};
// A step of a flight that takes longer, and is none of those that take long by nature, waits for a store that hangs.
constexpr std::chrono::milliseconds kStorePatience{500};
constexpr std::chrono::seconds kDrainStep{
    1};  // Overdue flights are looked for so often while the others end.

bool marked_stale(const Isr& isr, const Pointer& pointer) {
  const std::int64_t now = isr.now();
  return judge(pointer.meta, now).state == PageState::fresh &&
         judge(pointer.meta, pointer.marks, now, isr.settings.clock_skew).state == PageState::stale;
}

std::string in_words(Duration duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (milliseconds % 1000 == 0) return std::to_string(milliseconds / 1000) + " s";
  return std::to_string(milliseconds) + " ms";
}

}  // namespace

Task<Result<Rendered>> render_within(Clock& clock, Duration limit, Renderer renderer, RenderContext context) {
  using namespace boost::asio::experimental::awaitable_operators;
  std::stop_source stop;
  const std::stop_callback when_lost(context.lost, [stop]() mutable { stop.request_stop(); });
  context.lost = stop.get_token();
  std::optional<Result<Rendered>> rendered;
  std::exception_ptr thrown;
  bool late = false;
  const auto render = [&]() -> Task<void> {
    try {
      auto made = co_await renderer(std::move(context));
      if (!late) rendered.emplace(std::move(made));
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  const auto limiting = [&]() -> Task<void> {
    const bool over = co_await clock.wait_for(limit);
    if (!over || rendered || thrown) co_return;
    late = true;
    stop.request_stop();
  };
  Task<void> first = render();
  Task<void> second = limiting();
  co_await (std::move(first) || std::move(second));
  if (late) co_return Error{ErrorCode::unavailable, "not rendered within " + in_words(limit)};
  if (thrown) std::rethrow_exception(thrown);
  co_return *std::move(rendered);
}

MetaRow would_be(const Isr& isr, const Rendered& rendered) {
  MetaRow meta;
  meta.generated_at = isr.now();
  meta.revalidate_seconds = rendered.revalidate.count();
  meta.etag = rendered.etag;
  meta.tags = rendered.tags;
  return meta;
}

Flights::Flights(const boost::asio::any_io_executor& executor, std::shared_ptr<StoreGuards> guards,
                 std::shared_ptr<const EngineOptions> options, std::shared_ptr<PageMemory> memory)
    : guards_(std::move(guards)),
      isr_(guards_->isr()),
      options_(std::move(options)),
      memory_(std::move(memory)),
      executor_(executor),
      turns_(std::make_shared<Turns>(isr_.clock, options_->renders, options_->queued_renders)),
      storing_(std::make_shared<PendingWrites>(options_->storing, options_->storing_bytes)) {}

Boarding Flights::board(Errand errand) {
  const ServeRequest& request = errand.request;
  std::string key = request.page.pk;
  if (request.request_id) key += '\n' + *request.request_id + '\n' + request_hash(request.inputs);
  const bool waits = errand.waits_until.has_value();
  give_up_overdue(&key);
  std::shared_ptr<Flight> flight;
  Boarding boarding;
  {
    const std::lock_guard lock(mutex_);
    if (draining_) return {};
    std::shared_ptr<Flight>& slot = flights_[key];
    boarding.began = !slot;
    if (slot) {
      slot->joined = true;
      boarding.may_be_published = slot->render == Flight::Render::ended;
    } else {
      const Duration patience = std::max<Duration>(request.policy.wait_limit, kBackgroundPatience);
      slot = std::make_shared<Flight>(request, isr_.clock.monotonic(), Turns::place(patience));
      slot->due = slot->began + kStoresLimit;
      slot->step_began = slot->began;
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
  const std::lock_guard lock(mutex_);
  --flight.waiters;
  if (flight.waiters == 0) tell_turns(flight);
}

void Flights::tell_turns(const Flight& flight) const {
  const Wanted otherwise = flight.for_its_own ? Wanted::in_background : Wanted::by_nobody;
  turns_->want(flight.place, flight.waiters > 0 ? Wanted::by_waiters : otherwise, flight.waited_until);
}

void Seat::leave() {
  if (!left_.exchange(true)) flights_->leave(*flight_);
}

bool Flights::has_rendered_page(const Flight& flight) const {
  const std::lock_guard lock(mutex_);
  return flight.rendered && flight.rendered->as == RenderedAs::page;
}

bool Flights::found_no_room(const Flight& flight) const {
  const std::lock_guard lock(mutex_);
  return flight.no_room;
}

std::pair<BodyPointer, MetaRow> Flights::rendered_page(Flight& flight) const {
  const std::lock_guard lock(mutex_);
  if (!flight.rendered || flight.rendered->as != RenderedAs::page) return {};
  prepare_rendered(flight);
  return {flight.rendered->body, flight.rendered->would_be};
}

bool Flights::waits_for_a_store(const Flight& flight) const {
  if (is_held_up(flight) || flight.elsewhere) return false;
  const std::lock_guard lock(mutex_);
  return flight.render != Flight::Render::under_way &&
         isr_.clock.monotonic() - flight.step_began >= kStorePatience;
}

bool Flights::take_renderer_back(Flight& flight) {
  const std::lock_guard lock(mutex_);
  if (flight.render == Flight::Render::under_way || flight.render == Flight::Render::ended) return false;
  flight.render = Flight::Render::taken_back;
  return true;
}

bool Flights::was_renderer_taken_back(const Flight& flight) const {
  const std::lock_guard lock(mutex_);
  return flight.render == Flight::Render::taken_back;
}

std::int64_t Flights::turn_expected_at() const {
  const auto wait = std::chrono::ceil<std::chrono::seconds>(turns_->expected_wait());
  return isr_.now() + 1 + std::max<std::int64_t>(wait.count(), 1);  // Not in the second that is about to end.
}

Task<void> Flights::fly(std::shared_ptr<Flights> self, std::shared_ptr<Flight> flight, std::string key,
                        Errand errand) {
  Result<RegenerateOutcome> outcome = Error{};
  try {
    outcome = co_await self->regenerate_for(*flight, std::move(errand));
  } catch (const std::exception& error) {
    outcome = Error{ErrorCode::internal, error.what()};
  }
  self->count(outcome);
  if (self->options_->on_regenerated) {
    self->options_->on_regenerated(outcome ? name(*outcome) : "error",
                                   self->isr_.clock.monotonic() - flight->began);
  }
  self->land(*flight, key, std::move(outcome));
}

void Flights::land(Flight& flight, const std::string& key, Result<RegenerateOutcome> outcome) {
  {
    const std::lock_guard lock(mutex_);
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
  const std::string age = in_words(isr_.clock.monotonic() - flight->began);
  flight->landed = true;
  flight->outcome.emplace(Error{ErrorCode::unavailable, "the render of " + page + " has hung for " + age});
  given_up_.push_back(flight);
  log(LogLevel::error, "the render of " + page + " began " + age +
                           " ago and should have ended long since: a store or the origin hangs beyond all "
                           "limits, or this program has a mistake; restart it if this stays");
}

void Flights::give_up_overdue(const std::string* key) {
  std::vector<std::shared_ptr<Flight>> hanging;
  {
    const std::lock_guard lock(mutex_);
    const Duration now = isr_.clock.monotonic();
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

std::optional<OverdueRender> Flights::overdue() {
  give_up_overdue();
  const std::lock_guard lock(mutex_);
  if (given_up_.empty()) return std::nullopt;
  const Flight& oldest = *given_up_.front();
  return OverdueRender{to_string(oldest.page), isr_.clock.monotonic() - oldest.began, given_up_.size()};
}

void Flights::set_due(Flight& flight, Duration due) {
  const std::lock_guard lock(mutex_);
  flight.due = due;
}

Task<std::shared_ptr<void>> Flights::take_turn(Flight& flight, Duration render_limit) {
  set_due(flight, Duration::max());
  std::shared_ptr<void> turn = co_await turns_->take(flight.place);
  set_due(flight, isr_.clock.monotonic() + render_limit + kStoresLimit);
  {
    const std::lock_guard lock(mutex_);
    flight.step_began = isr_.clock.monotonic();
  }
  co_return turn;
}

// --- one flight -------------------------------------------------------------------------------------------------

Task<Result<RegenerateOutcome>> Flights::regenerate_for(Flight& flight, Errand errand) {
  const ServeRequest& request = errand.request;
  // So that readers in other languages, who know only META, learn of the mark.
  if (marked_stale(isr_, errand.pointer)) {
    auto closed = co_await close_window(isr_, request.page, *errand.pointer.meta);
    if (!closed)
      log(LogLevel::warning, "the window of " + to_string(request.page) +
                                 " stays open for other readers: " + closed.error().message);
  }
  const bool elsewhere = request.policy.publisher == Publisher::elsewhere;
  const Renderer observed = [&](RenderContext context) {
    return render_for(flight, errand, std::move(context));
  };
  RegenerateOptions options = options_for(flight, errand);
  Task<Result<RegenerateOutcome>> regeneration =
      elsewhere ? have_rendered_elsewhere(isr_, request.page, observed, std::move(options))
                : regenerate(isr_, request.page, observed, std::move(options));
  auto outcome = co_await std::move(regeneration);
  {
    const std::lock_guard lock(mutex_);
    prepare_rendered(flight);
  }
  if (!outcome) {
    memory_->distrust(request.page.pk);
    co_return outcome;
  }
  remember(flight, *outcome);
  // A stale page stands there still: nobody is asked for it again at once.
  if (elsewhere && std::holds_alternative<NotStored>(*outcome)) memory_->defer_render(request.page.pk);
  co_await check_marks(flight, request.page, *outcome);
  co_return outcome;
}

// Flight and errand outlive the regeneration.
RegenerateOptions Flights::options_for(Flight& flight, const Errand& errand) {
  const ServeRequest& request = errand.request;
  RegenerateOptions options;
  options.lease = request.policy.lease;
  options.owner = options_->owner;
  options.publish.history = request.policy.history;
  options.publish.ttl = request.policy.ttl;
  // The body is in memory before anybody can learn of it: whoever asks next waits for no file.
  options.publish.on_stored = [this, &flight](const std::string& s3_key) { remember_body(flight, s3_key); };
  options.request_id = request.request_id;
  options.inputs = request.inputs;
  options.other_hashes = request.other_hashes;
  options.tags = request.tags;
  if (errand.pointer.meta) options.likely_tags = errand.pointer.meta->tags;
  options.just_looked = errand.just_read;
  options.wait = request.policy.wait_limit;
  if (errand.rejected) options.rejected = errand.pointer.meta;
  options.fail_in_backoff = true;
  options.turn = [this, &flight, limit = request.policy.render_limit] { return take_turn(flight, limit); };
  options.storing = [this](std::size_t bytes) -> std::shared_ptr<void> { return storing_->begin(bytes); };
  options.observe = [this, &flight](RegenerateEvent event) { note(flight, event); };
  return options;
}

// --- its render -------------------------------------------------------------------------------------------------

Task<Result<Rendered>> Flights::render_for(Flight& flight, const Errand& errand, RenderContext context) {
  const PagePolicy& policy = errand.request.policy;
  begin_render(flight);
  // What others publish is not counted here.
  const bool is_new = policy.publisher == Publisher::here && !context.previous;
  std::optional<bool> room;  // Empty: the renderer has not asked.
  if (is_new && options_->has_room) {
    context.has_room = [&](std::size_t bytes) {
      if (!room) room = options_->has_room(bytes);
      return *room;
    };
  }
  auto rendered =
      co_await render_within(isr_.clock, policy.render_limit, errand.renderer, std::move(context));
  const bool no_room = (room && !*room) || (!room && rendered && leave_unstored_if_full(*rendered, is_new));
  end_render(flight, rendered, no_room);
  flight.render_over.set();
  co_return rendered;
}

void Flights::begin_render(Flight& flight) {
  const std::lock_guard lock(mutex_);
  // The lease is given back then.
  if (flight.render == Flight::Render::taken_back)
    throw boost::system::system_error(boost::asio::error::operation_aborted);
  flight.render = Flight::Render::under_way;
  ++counters_.renders;
}

void Flights::end_render(Flight& flight, const Result<Rendered>& rendered, bool no_room) const {
  const std::lock_guard lock(mutex_);
  flight.no_room = no_room;
  flight.render = Flight::Render::ended;
  flight.step_began = isr_.clock.monotonic();
  if (!rendered) return;
  RenderedHere& made = flight.rendered.emplace();
  made.as = rendered->as;
  if (!rendered->handed_over) made.unprepared = rendered->body;
  made.would_be = would_be(isr_, *rendered);
  made.why_not_stored = rendered->why_not_stored;
}

void Flights::remember_body(Flight& flight, const std::string& s3_key) const {
  const std::lock_guard lock(mutex_);
  RenderedHere& made = *flight.rendered;
  if (made.unprepared) {
    made.body = memory_->bodies().put(s3_key, *std::move(made.unprepared));
  } else if (made.prepared.body) {
    made.body = memory_->bodies().put(s3_key, std::move(made.prepared));
  }  // Told before, otherwise.
  made.unprepared.reset();
  made.prepared = {};
}

void Flights::prepare_rendered(Flight& flight) const {
  if (!flight.rendered || !flight.rendered->unprepared) return;
  RenderedHere& made = *flight.rendered;
  made.prepared = memory_->bodies().prepared(*std::move(made.unprepared));
  made.unprepared.reset();
  made.body = made.prepared.body;
}

// A page that stands in the table already is stored again: it would be withdrawn otherwise, and takes no more room than
// before.
bool Flights::leave_unstored_if_full(Rendered& rendered, bool is_new) const {
  if (!is_new || rendered.as != RenderedAs::page || !options_->has_room) return false;
  if (options_->has_room(rendered.body.bytes.size())) return false;
  rendered.as = RenderedAs::transient;
  rendered.why_not_stored = "there is no room for it on the disk";
  return true;
}

// --- what became of it ------------------------------------------------------------------------------------------

void Flights::note(Flight& flight, RegenerateEvent event) {
  const bool held = event == RegenerateEvent::lease_held;
  flight.elsewhere = held || event == RegenerateEvent::request_in_progress;
  if (flight.elsewhere) flight.held_up.set();
  const std::lock_guard lock(mutex_);
  if (held && !flight.contended) ++counters_.leases_contended;
  flight.contended = flight.contended || held;
  if (event == RegenerateEvent::lease_taken_over) ++counters_.leases_taken_over;
  if (event == RegenerateEvent::lease_taken_over || event == RegenerateEvent::lease_acquired)
    ++counters_.leases_acquired;
}

// Notes what this process knows of the page from now on.
void Flights::remember(const Flight& flight, const RegenerateOutcome& outcome) {
  const std::string& pk = flight.page.pk;
  if (const auto* regenerated = std::get_if<Regenerated>(&outcome)) {
    memory_->became_current(pk, regenerated->published.meta);
  } else if (const auto* fresh = std::get_if<AlreadyFresh>(&outcome)) {
    memory_->became_current(pk, fresh->meta);
  } else if (std::holds_alternative<RenderFailed>(outcome) || std::holds_alternative<NoTurn>(outcome)) {
    memory_->defer_render(pk);
  } else {
    const auto* not_stored = std::get_if<NotStored>(&outcome);
    const bool is_transient = not_stored != nullptr && !not_stored->lease_lost && !flight.no_room;
    if (is_transient) memory_->note_transient(pk);
    if (std::holds_alternative<CalledStale>(outcome)) memory_->defer_render(pk);
    memory_->distrust(pk);
  }
}

void Flights::count(const Result<RegenerateOutcome>& outcome) {
  const std::lock_guard lock(mutex_);
  if (!outcome) {
    ++counters_.table_errors;
    return;
  }
  if (std::holds_alternative<Regenerated>(*outcome)) ++counters_.published;
  const auto* not_stored = std::get_if<NotStored>(&*outcome);
  if (not_stored != nullptr || std::holds_alternative<CalledStale>(*outcome)) ++counters_.not_stored;
  const auto* failed = std::get_if<RenderFailed>(&*outcome);
  if (failed != nullptr && !failed->in_backoff) ++counters_.renders_failed;
  const bool lost = not_stored != nullptr && not_stored->lease_lost;
  if (lost || std::holds_alternative<LeaseLost>(*outcome)) ++counters_.leases_lost;
}

// A mark does not take the lease away. Those who joined the flight need to know whether one was set before they came.
Task<void> Flights::check_marks(Flight& flight, Page page, const RegenerateOutcome& outcome) {
  const auto* regenerated = std::get_if<Regenerated>(&outcome);
  bool joined = false;
  {
    const std::lock_guard lock(mutex_);
    joined = flight.joined;
  }
  if (regenerated == nullptr || !joined) co_return;
  const MetaRow& meta = regenerated->published.meta;
  auto marks = co_await marks_of(isr_, std::move(page), meta.tags, Consistency::strong);
  flight.unmarked = marks && judge(meta, *marks, meta.generated_at).state == PageState::fresh;
}

Task<void> Flights::wait_for(std::string pk, Duration limit) {
  std::shared_ptr<Flight> flight;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = flights_.find(pk); found != flights_.end()) flight = found->second;
  }
  if (flight) co_await flight->ended.wait(isr_.clock, limit);
}

Task<void> Flights::drain() {
  for (;;) {
    std::shared_ptr<Flight> flight;
    {
      const std::lock_guard lock(mutex_);
      draining_ = true;
      if (!flights_.empty()) flight = flights_.begin()->second;
    }
    if (!flight) co_return co_await guards_->wait_for_tries();
    co_await flight->ended.wait(isr_.clock, kDrainStep);
    give_up_overdue();
  }
}

void Flights::add_to(EngineCounters& counters) const {
  const std::lock_guard lock(mutex_);
  counters.renders += counters_.renders;
  counters.renders_failed += counters_.renders_failed;
  counters.published += counters_.published;
  counters.not_stored += counters_.not_stored;
  counters.leases_acquired += counters_.leases_acquired;
  counters.leases_contended += counters_.leases_contended;
  counters.leases_lost += counters_.leases_lost;
  counters.leases_taken_over += counters_.leases_taken_over;
  counters.table_errors += counters_.table_errors;
  const TurnsCounters turns = turns_->counters();
  counters.renders_dropped += turns.dropped;
  counters.renders_refused += turns.refused;
}

void Flights::add_to(EngineGauges& gauges) const {
  gauges.queued_renders = turns_->queued();
  gauges.storing = storing_->count();
  gauges.storing_bytes = storing_->bytes();
  gauges.oldest_queued = turns_->oldest();
  const std::lock_guard lock(mutex_);
  const Duration now = isr_.clock.monotonic();
  gauges.flights = flights_.size() + given_up_.size();
  gauges.overdue_flights = given_up_.size();
  for (const auto& flight : given_up_)
    gauges.oldest_flight = std::max(gauges.oldest_flight, now - flight->began);
  for (const auto& [key, flight] : flights_)
    gauges.oldest_flight = std::max(gauges.oldest_flight, now - flight->began);
}

}  // namespace facetheory
