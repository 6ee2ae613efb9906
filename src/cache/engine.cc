#include "facetheory/cache/engine.h"

#include <exception>
#include <mutex>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "facetheory/base/log.h"
#include "facetheory/cache/body_cache.h"
#include "facetheory/cache/circuit_breaker.h"
#include "facetheory/cache/event.h"
#include "facetheory/cache/pointer_cache.h"
#include "facetheory/isr/invalidate.h"

namespace facetheory {
namespace {

using BodyPointer = std::shared_ptr<const Body>;

// One regeneration under way. Written by its coroutine before `ended` is set, read by others afterwards.
struct Flight {
  explicit Flight(Duration now) : began(now) {}

  const Duration began;       // Monotonic.
  bool joined = false;        // Guarded by the engine's mutex: somebody has come since.
  bool render_ended = false;  // Likewise: from now on it may have been published.
  Event ended;
  std::optional<Result<RegenerateOutcome>> outcome;
  BodyPointer rendered;   // What was rendered here, if anything was.
  bool unmarked = false;  // None of the page's marks was set while it was rendered; read if somebody joined.
};

// One read of a pointer under way, which others wait for.
struct Reading {
  Event ended;
  std::optional<Result<Pointer>> pointer;  // Empty in the end: whoever read it was interrupted.
};

// Of a pointer that is remembered, but must be read before it is served again.
constexpr Duration kLongAgo = Duration::min() / 2;

bool marked_stale(const Pointer& pointer, std::int64_t now) {
  return judge(pointer.meta, now).state == PageState::fresh &&
         judge(pointer.meta, pointer.marks, now).state == PageState::stale;
}

// Whether the page is so far beyond its window that it may not even be served as stale.
bool too_old(const PagePolicy& policy, const MetaRow& meta, std::int64_t now) {
  const bool invalidated = meta.generated_at == 0;
  return policy.stale_for && !invalidated && !meta.pinned &&
         now >= meta.generated_at + meta.revalidate_seconds +
                    policy.stale_for->count();  // Rows hold no larger numbers.
}

}  // namespace

std::string_view name(ServedAs served_as) {
  switch (served_as) {
    case ServedAs::hit:
      return "hit";
    case ServedAs::miss:
      return "miss";
    case ServedAs::wait_hit:
      return "wait-hit";
    case ServedAs::stale:
      return "stale";
    case ServedAs::stale_metadata_error:
      return "stale-metadata-error";
    case ServedAs::uncached:
      return "uncached";
    case ServedAs::pass:
      return "pass";
    case ServedAs::other:
      return "other";
    case ServedAs::absent:
      return "absent";
    case ServedAs::failed:
      return "failed";
  }
  return "?";
}

class Engine::State : public std::enable_shared_from_this<State> {
 public:
  State(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options)
      : isr_(isr),
        options_(std::move(options)),
        executor_(executor),
        pointers_(options_.pointers),
        bodies_(options_.memory),
        breaker_(options_.breaker_failures, options_.breaker_pause) {}

  Task<Result<Served>> serve(ServeRequest request, Renderer renderer);
  Task<void> drain();
  Task<Result<BodyPointer>> body_of(std::string s3_key);
  EngineCounters counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  Task<Result<Pointer>> look_up(Page page);
  Task<Result<Pointer>> read_for_all(Page page, std::shared_ptr<Reading> reading);
  Task<Result<Pointer>> read_pointer(Page page, Consistency consistency);

  Task<Result<Served>> serve_unknown(ServeRequest request, Renderer renderer, Error why);
  Task<Result<Rendered>> render_uncached(const ServeRequest& request, Renderer renderer);
  Task<Result<Served>> serve_pointer(Pointer pointer, ServedAs as, std::string reason);
  Task<Result<Served>> serve_after_waiting(ServeRequest request, Renderer renderer, Pointer pointer,
                                           std::optional<std::string> stale_reason, Duration came);

  struct Boarding {
    std::shared_ptr<Flight> flight;  // Null: the engine drains.
    bool may_be_published = false;   // Already, when it was joined.
  };
  Boarding start_flight(const ServeRequest& request, const Renderer& renderer, const Pointer& pointer,
                        bool wait_for_others);
  static Task<void> fly(std::shared_ptr<State> self, std::shared_ptr<Flight> flight, std::string key,
                        ServeRequest request, Renderer renderer, Pointer pointer, bool wait_for_others);
  Task<Result<RegenerateOutcome>> regenerate_for(std::shared_ptr<Flight> flight, ServeRequest request,
                                                 Renderer renderer, Pointer pointer, bool wait_for_others);
  Task<void> look_at_marks(Flight& flight, Page page, const RegenerateOutcome& outcome);
  void count(ServedAs as);
  // What needs the mutex for a moment, in a coroutine.
  template <typename Action>
  void locked(Action action) {
    const std::lock_guard lock(mutex_);
    action();
  }

  // Constant after construction.
  const Isr isr_;
  const EngineOptions options_;
  const boost::asio::any_io_executor executor_;

  mutable std::mutex mutex_;  // Guards everything below; never held across an await.
  PointerCache pointers_;
  BodyCache bodies_;
  CircuitBreaker breaker_;  // Of the table.
  std::map<std::string, std::shared_ptr<Flight>> flights_;
  std::map<std::string, std::shared_ptr<Reading>> readings_;
  int uncached_ = 0;
  bool draining_ = false;
  EngineCounters counters_;
};

// --- looking things up ------------------------------------------------------------------------------------------

Task<Result<Pointer>> Engine::State::read_pointer(Page page, Consistency consistency) {
  {
    const std::lock_guard lock(mutex_);
    if (!breaker_.allows(isr_.clock.monotonic())) {
      co_return Error{ErrorCode::unavailable,
                      "the table has failed several times in a row and is left alone for a while"};
    }
  }
  Pointer pointer;
  // Counted from here: what happens while the answer travels is not in it.
  pointer.read_at = isr_.clock.monotonic();
  auto meta = co_await get_meta(isr_, page, consistency);
  std::optional<Error> error;
  if (!meta) {
    error = std::move(meta).error();
  } else {
    pointer.meta = *std::move(meta);
    if (pointer.meta) {
      auto marks = co_await marks_of(isr_, page, pointer.meta->tags, consistency);
      if (marks) {
        pointer.marks = *std::move(marks);
      } else {
        error = std::move(marks).error();
      }
    }
  }
  const std::lock_guard lock(mutex_);
  if (error) {
    ++counters_.table_errors;
    if (error->code == ErrorCode::unavailable) breaker_.failed(isr_.clock.monotonic());
    co_return *std::move(error);
  }
  breaker_.succeeded();
  if (pointer.meta) {
    pointers_.put(page.pk, pointer);
  } else {
    pointers_.erase(page.pk);
  }
  co_return pointer;
}

// The pointer, from memory while it may be trusted. Of many requests at once, one asks the table.
Task<Result<Pointer>> Engine::State::look_up(Page page) {
  if (options_.pointer_ttl <= Duration(0)) {
    co_return co_await read_pointer(std::move(page), Consistency::eventual);
  }
  constexpr std::chrono::seconds kPatience{10};
  const Duration came = isr_.clock.monotonic();
  for (;;) {
    std::shared_ptr<Reading> reading;
    bool ours = false;
    {
      const std::lock_guard lock(mutex_);
      const Pointer* known = pointers_.find(page.pk);
      if (known != nullptr && came - known->read_at < options_.pointer_ttl) co_return *known;
      std::shared_ptr<Reading>& slot = readings_[page.pk];
      if (!slot) {
        slot = std::make_shared<Reading>();
        ours = true;
      }
      reading = slot;
    }
    if (ours) co_return co_await read_for_all(std::move(page), std::move(reading));
    const Duration patience = came + kPatience - isr_.clock.monotonic();
    const bool ended = co_await reading->ended.wait(isr_.clock, patience);
    if (!ended) co_return Error{ErrorCode::unavailable, "the table does not answer"};
    // A read that began long before this request came, or was interrupted, is none for it.
    const std::optional<Result<Pointer>>& pointer = reading->pointer;
    if (pointer && (!*pointer || came - (*pointer)->read_at < options_.pointer_ttl)) co_return *pointer;
  }
}

// Ends the reading however it ends: a client that goes away must not leave the others waiting.
Task<Result<Pointer>> Engine::State::read_for_all(Page page, std::shared_ptr<Reading> reading) {
  const std::string pk = page.pk;
  std::exception_ptr interrupted;
  try {
    reading->pointer.emplace(co_await read_pointer(std::move(page), Consistency::eventual));
  } catch (...) {
    interrupted = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    readings_.erase(pk);
  }
  reading->ended.set();
  if (interrupted) std::rethrow_exception(interrupted);
  co_return *reading->pointer;
}

// `corrupt`: it is gone or damaged.
Task<Result<BodyPointer>> Engine::State::body_of(std::string s3_key) {
  {
    const std::lock_guard lock(mutex_);
    if (BodyPointer known = bodies_.find(s3_key)) co_return known;
    ++counters_.bodies_read;
  }
  auto body = co_await isr_.bodies.read(s3_key);
  if (!body) co_return std::move(body).error();
  if (!*body) co_return Error{ErrorCode::corrupt, "the body " + s3_key + " is gone"};
  auto kept = std::make_shared<const Body>(**std::move(body));
  const std::lock_guard lock(mutex_);
  bodies_.insert(std::move(s3_key), kept);
  co_return kept;
}

// --- serving ----------------------------------------------------------------------------------------------------

void Engine::State::count(ServedAs as) {
  const std::lock_guard lock(mutex_);
  switch (as) {
    case ServedAs::hit:
      ++counters_.hit;
      break;
    case ServedAs::miss:
      ++counters_.miss;
      break;
    case ServedAs::wait_hit:
      ++counters_.wait_hit;
      break;
    case ServedAs::stale:
      ++counters_.stale;
      break;
    case ServedAs::stale_metadata_error:
      ++counters_.stale_metadata_error;
      break;
    case ServedAs::uncached:
      ++counters_.uncached;
      break;
    case ServedAs::pass:
      ++counters_.pass;
      break;
    case ServedAs::other:
      ++counters_.other;
      break;
    case ServedAs::absent:
      ++counters_.absent;
      break;
    case ServedAs::failed:
      ++counters_.failed;
      break;
  }
}

Task<Result<Served>> Engine::State::serve(ServeRequest request, Renderer renderer) {
  const Duration came = isr_.clock.monotonic();
  auto served = Result<Served>(Error{});
  auto pointer = co_await look_up(request.page);
  if (!pointer) {
    served = co_await serve_unknown(std::move(request), std::move(renderer), std::move(pointer).error());
  } else {
    const std::int64_t now = isr_.now();
    const Freshness freshness = judge(pointer->meta, pointer->marks, now);
    std::optional<std::string> stale_reason;  // Set: there is a page that may be served although it is stale.
    bool wait = freshness.state == PageState::missing;
    if (freshness.state == PageState::fresh) {
      served = co_await serve_pointer(*pointer, ServedAs::hit, freshness.reason);
      wait = !served && served.error().code == ErrorCode::corrupt;
    } else if (freshness.state == PageState::stale) {
      const bool never = too_old(request.policy, *pointer->meta, now);
      if (!never) stale_reason = freshness.reason;
      wait = never || request.policy.mode == ServeMode::blocking;
      if (!wait) {
        start_flight(request, renderer, *pointer, true);
        served = co_await serve_pointer(*pointer, ServedAs::stale, freshness.reason);
        wait = !served && served.error().code == ErrorCode::corrupt;
        if (wait) stale_reason.reset();
      }
    }
    if (wait) {
      served = co_await serve_after_waiting(std::move(request), std::move(renderer), *std::move(pointer),
                                            std::move(stale_reason), came);
    }
  }
  if (served) {
    count(served->as);
  } else {
    locked([this] { ++counters_.failed; });
  }
  co_return served;
}

Task<Result<Served>> Engine::State::serve_pointer(Pointer pointer, ServedAs as, std::string reason) {
  auto body = co_await body_of(pointer.meta->s3_key);
  if (!body) co_return std::move(body).error();
  co_return Served{as, *std::move(body), *std::move(pointer.meta), std::move(reason)};
}

// The table cannot be asked: what was known last is better than nothing.
Task<Result<Served>> Engine::State::serve_unknown(ServeRequest request, Renderer renderer, Error why) {
  std::optional<Pointer> last;
  {
    const std::lock_guard lock(mutex_);
    if (const Pointer* known = pointers_.find(request.page.pk)) last = *known;
  }
  if (last && last->meta) {
    auto served = co_await serve_pointer(*std::move(last), ServedAs::stale_metadata_error, why.message);
    if (served) co_return served;
  }
  {
    const std::lock_guard lock(mutex_);
    if (uncached_ >= options_.uncached_renders) {
      co_return Error{ErrorCode::unavailable, "the table cannot be asked (" + why.message + "), and " +
                                                  std::to_string(uncached_) +
                                                  " pages are being rendered without it"};
    }
    ++uncached_;
  }
  Result<Rendered> rendered = Error{};
  std::exception_ptr interrupted;
  try {
    rendered = co_await render_uncached(request, std::move(renderer));
  } catch (...) {
    interrupted = std::current_exception();
  }
  locked([this] {
    --uncached_;
    ++counters_.renders;
  });
  if (interrupted) std::rethrow_exception(interrupted);
  if (!rendered) co_return std::move(rendered).error();
  Served served{ServedAs::uncached, std::make_shared<const Body>(std::move(rendered->body)), {}, why.message};
  served.meta.generated_at = isr_.now();
  served.meta.etag = rendered->etag;
  co_return served;
}

// Within the limit for which a request waits for a render. What the renderer throws is an error.
Task<Result<Rendered>> Engine::State::render_uncached(const ServeRequest& request, Renderer renderer) {
  using namespace boost::asio::experimental::awaitable_operators;
  std::stop_source late;
  Result<Rendered> rendered = Error{ErrorCode::unavailable, "the page could not be rendered in time"};
  const auto render = [&]() -> Task<void> {
    try {
      RenderContext context{request.page, Lease{request.page, ""}, std::nullopt, late.get_token()};
      auto made = co_await renderer(std::move(context));
      if (!late.stop_requested()) rendered = std::move(made);
    } catch (const std::exception& error) {
      if (!late.stop_requested()) rendered = Error{ErrorCode::internal, error.what()};
    }
  };
  const auto limit = [&]() -> Task<void> {
    co_await isr_.clock.sleep_for(request.policy.wait_limit);
    late.request_stop();
  };
  Task<void> rendering = render();
  Task<void> limiting = limit();
  co_await (std::move(rendering) || std::move(limiting));
  co_return rendered;
}

Task<Result<Served>> Engine::State::serve_after_waiting(ServeRequest request, Renderer renderer,
                                                        Pointer pointer,
                                                        std::optional<std::string> stale_reason,
                                                        Duration came) {
  const Duration deadline = isr_.clock.monotonic() + request.policy.wait_limit;
  const bool patient = !stale_reason || request.policy.on_contention == OnContention::wait;
  const bool may_be_stale = stale_reason && request.policy.on_failure == OnFailure::serve_stale;
  Error failure{ErrorCode::unavailable, "the page could not be rendered in time"};
  for (;;) {
    const auto [flight, may_be_published] = start_flight(request, renderer, pointer, patient);
    if (!flight) {
      failure.message = "this process is about to end";
      break;
    }
    const bool ended = co_await flight->ended.wait(isr_.clock, deadline - isr_.clock.monotonic());
    if (!ended) break;
    if (!*flight->outcome) {
      failure = flight->outcome->error();
      break;
    }
    const RegenerateOutcome& outcome = **flight->outcome;
    // Of a flight that is older than this request the page may be older, too: invalidated, purged or marked
    // after that, and before the request came.
    const bool current = !may_be_published && flight->unmarked;
    const bool too_early =
        flight->began < came && (std::holds_alternative<AlreadyFresh>(outcome) ||
                                 (std::holds_alternative<Regenerated>(outcome) && !current));
    const bool impatient = patient && (std::holds_alternative<LeaseHeld>(outcome) ||
                                       std::holds_alternative<RequestInProgress>(outcome));
    if ((too_early || impatient) && isr_.clock.monotonic() < deadline) continue;
    if (too_early) break;
    if (const auto* regenerated = std::get_if<Regenerated>(&outcome)) {
      co_return Served{ServedAs::miss, flight->rendered, regenerated->published.meta, "it was rendered"};
    }
    if (const auto* fresh = std::get_if<AlreadyFresh>(&outcome)) {
      Pointer theirs{fresh->meta, {}, {}};
      co_return co_await serve_pointer(std::move(theirs), ServedAs::wait_hit, "another node rendered it");
    }
    if (const auto* replayed = std::get_if<Replayed>(&outcome)) {
      Pointer result{pointer.meta ? *pointer.meta : MetaRow{}, {}, {}};
      result.meta->s3_key = replayed->result_s3_key;
      co_return co_await serve_pointer(std::move(result), ServedAs::wait_hit, "the request was done before");
    }
    if (std::holds_alternative<RequestMismatch>(outcome)) {
      co_return Error{ErrorCode::invalid, "the request id " + request.request_id.value_or("") +
                                              " was used with other inputs: take a fresh one"};
    }
    // Lost to an invalidation or a rollback: the page must be rendered again, as of now.
    const bool lost =
        std::holds_alternative<LeaseLost>(outcome) || std::holds_alternative<PublishRefused>(outcome);
    if (lost && isr_.clock.monotonic() < deadline) {
      auto now = co_await look_up(request.page);
      if (now) pointer = *std::move(now);
      continue;
    }
    if (const auto* failed = std::get_if<RenderFailed>(&outcome)) {
      failure = Error{ErrorCode::unavailable, "the render failed: " + failed->error.message};
    } else if (std::holds_alternative<LeaseHeld>(outcome)) {
      failure.message = "somebody else has been rendering the page for too long";
    } else if (std::holds_alternative<RequestInProgress>(outcome)) {
      failure.message = "the request is in progress elsewhere";
    }
    break;
  }
  const bool gone = judge(pointer.meta, pointer.marks, isr_.now()).state == PageState::missing;
  if (!may_be_stale || gone || too_old(request.policy, *pointer.meta, isr_.now())) co_return failure;
  auto stale =
      co_await serve_pointer(std::move(pointer), ServedAs::stale, *stale_reason + "; " + failure.message);
  if (stale) co_return stale;
  co_return failure;
}

// --- regenerating -----------------------------------------------------------------------------------------------

// The flight of this page, joined or begun.
Engine::State::Boarding Engine::State::start_flight(const ServeRequest& request, const Renderer& renderer,
                                                    const Pointer& pointer, bool wait_for_others) {
  std::string key = request.page.pk;
  if (request.request_id) key += '\n' + *request.request_id + '\n' + request_hash(request.inputs);
  std::shared_ptr<Flight> flight;
  {
    const std::lock_guard lock(mutex_);
    if (draining_) return {};
    std::shared_ptr<Flight>& slot = flights_[key];
    if (slot) {
      slot->joined = true;
      return {slot, slot->render_ended};
    }
    slot = flight = std::make_shared<Flight>(isr_.clock.monotonic());
  }
  boost::asio::co_spawn(
      executor_, fly(shared_from_this(), flight, std::move(key), request, renderer, pointer, wait_for_others),
      [](std::exception_ptr escaped) {
        if (escaped) log(LogLevel::error, "a regeneration ended by an exception");
      });
  return {flight};
}

Task<void> Engine::State::fly(std::shared_ptr<State> self, std::shared_ptr<Flight> flight, std::string key,
                              ServeRequest request, Renderer renderer, Pointer pointer,
                              bool wait_for_others) {
  try {
    flight->outcome.emplace(co_await self->regenerate_for(flight, std::move(request), std::move(renderer),
                                                          std::move(pointer), wait_for_others));
  } catch (const std::exception& error) {
    flight->outcome.emplace(Error{ErrorCode::internal, error.what()});
  }
  {
    const std::lock_guard lock(self->mutex_);
    self->flights_.erase(key);
  }
  flight->ended.set();
}

Task<Result<RegenerateOutcome>> Engine::State::regenerate_for(std::shared_ptr<Flight> flight,
                                                              ServeRequest request, Renderer renderer,
                                                              Pointer pointer, bool wait_for_others) {
  // So that readers in other languages, who know only META, learn of the mark.
  if (marked_stale(pointer, isr_.now())) {
    auto closed = co_await close_window(isr_, request.page, *pointer.meta);
    if (!closed)
      log(LogLevel::warning, "the window of " + to_string(request.page) +
                                 " stays open for other readers: " + closed.error().message);
  }
  const Renderer observed = [&](RenderContext context) -> Task<Result<Rendered>> {
    locked([this] { ++counters_.renders; });
    auto rendered = co_await renderer(std::move(context));
    locked([&] { flight->render_ended = true; });
    if (rendered) flight->rendered = std::make_shared<const Body>(rendered->body);
    co_return rendered;
  };
  RegenerateOptions options;
  options.lease = request.policy.lease;
  options.owner = options_.owner;
  options.publish.history = request.policy.history;
  options.publish.ttl = request.policy.ttl;
  options.request_id = request.request_id;
  options.inputs = request.inputs;
  options.wait = wait_for_others ? request.policy.wait_limit : Duration(0);
  auto outcome = co_await regenerate(isr_, request.page, observed, std::move(options));
  if (outcome) co_await look_at_marks(*flight, request.page, *outcome);

  const std::lock_guard lock(mutex_);
  if (!outcome) {
    ++counters_.table_errors;
    co_return outcome;
  }
  std::optional<MetaRow> current;
  if (const auto* regenerated = std::get_if<Regenerated>(&*outcome)) {
    ++counters_.published;
    current = regenerated->published.meta;
    bodies_.insert(current->s3_key, flight->rendered);
  } else if (const auto* fresh = std::get_if<AlreadyFresh>(&*outcome)) {
    current = fresh->meta;
  }
  if (std::holds_alternative<RenderFailed>(*outcome)) ++counters_.renders_failed;
  if (std::holds_alternative<LeaseHeld>(*outcome)) ++counters_.leases_contended;
  if (std::holds_alternative<LeaseLost>(*outcome)) ++counters_.leases_lost;
  if (current) {
    // Kept as the last known. The next request reads it: it may have been invalidated since, and its marks are not
    // those of the page before.
    pointers_.put(request.page.pk, Pointer{std::move(current), {}, kLongAgo});
  } else if (options_.pointer_ttl > Duration(0) && !std::holds_alternative<RenderFailed>(*outcome)) {
    if (const Pointer* known = pointers_.find(request.page.pk)) {
      Pointer expired = *known;  // Kept as the last known, but read anew by the next request.
      expired.read_at = kLongAgo;
      pointers_.put(request.page.pk, std::move(expired));
    }
  }
  co_return outcome;
}

// A mark does not take the lease away. For those who joined the flight: was one set before they came?
Task<void> Engine::State::look_at_marks(Flight& flight, Page page, const RegenerateOutcome& outcome) {
  const auto* regenerated = std::get_if<Regenerated>(&outcome);
  bool joined = false;
  locked([&] { joined = flight.joined; });
  if (regenerated == nullptr || !joined) co_return;
  const MetaRow& meta = regenerated->published.meta;
  auto marks = co_await marks_of(isr_, std::move(page), meta.tags, Consistency::strong);
  flight.unmarked = marks && judge(meta, *marks, meta.generated_at).state == PageState::fresh;
}

Task<void> Engine::State::drain() {
  for (;;) {
    std::shared_ptr<Flight> flight;
    {
      const std::lock_guard lock(mutex_);
      draining_ = true;
      if (flights_.empty()) co_return;
      flight = flights_.begin()->second;
    }
    co_await flight->ended.wait(isr_.clock, std::chrono::hours(1));
  }
}

Engine::Engine(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options)
    : state_(std::make_shared<State>(executor, isr, std::move(options))) {}
Engine::~Engine() = default;

Task<Result<Served>> Engine::serve(ServeRequest request, Renderer renderer) {
  return state_->serve(std::move(request), std::move(renderer));
}
Task<void> Engine::drain() {
  return state_->drain();
}
EngineCounters Engine::counters() const {
  return state_->counters();
}
EngineGauges Engine::gauges() const {
  return {};
}
Task<Result<std::shared_ptr<const Body>>> Engine::body(std::string s3_key) {
  return state_->body_of(std::move(s3_key));
}
void Engine::forget(const Page&) {}

}  // namespace facetheory
