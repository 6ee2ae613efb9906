#include "facetheory/cache/engine.h"

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/strand.hpp>

#include "facetheory/base/counted.h"
#include "facetheory/base/first_to_end.h"
#include "facetheory/base/run_on.h"
#include "facetheory/cache/flights.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/store_guards.h"
#include "facetheory/cache/uncached_places.h"
#include "facetheory/isr/body_key.h"

namespace facetheory {
namespace {

// A page that is whole so soon after it could be read is answered whole, once it is stored: with its entity tag, and
// compressed.
constexpr std::chrono::milliseconds kWholePatience{30};
// So much longer it may take to store it. A store that is slow or hangs must not keep the page from whoever it was
// rendered for.
constexpr std::chrono::milliseconds kStoringPatience{20};
// So long it may take for those who cannot read it while it is being stored.
constexpr std::chrono::seconds kStoreHangs{1};

// Whether the page is so far beyond its window that it may not even be served as stale.
bool is_too_old(const PagePolicy& policy, const MetaRow& meta, std::int64_t now) {
  return policy.stale_for && !meta.pinned &&
         now >= meta.newest_generation() + meta.revalidate_seconds +
                    policy.stale_for->count();  // Rows hold no larger numbers.
}

// A page that is served at once and rendered again in the background.
struct ServedMeanwhile {
  Served served;
  bool rejected = false;  // It is fresh but for its review.
};

// There is nothing that may be served at once: the request waits for a render. Of the page that is at hand it says:
struct WaitForRender {
  std::string reason;           // Why it is not good enough.
  bool rejected = false;        // It is fresh but for its review.
  bool when_contended = false;  // It may be served while another node renders,
  bool when_failed = false;     // and when nothing came of the waiting.
  bool shared = true;           // Somebody else's render of it may answer this request, too.
};

// What becomes of a request, as far as its page's rows, body and review tell.
using Verdict = std::variant<Served, ServedMeanwhile, WaitForRender>;

// The page has changed hands while it was waited for: its pointer is to be read again.
struct LookAgain {};
// What becomes of waiting for a render.
using Waited = std::variant<Result<Served>, LookAgain>;

Served not_shared() {
  return {ServedAs::pass, nullptr, {}, "it was rendered for somebody else, and is to be validated for each"};
}

// What somebody else's render made, if it is for this request, too.
Served of_another(const ServeRequest& request, Served served) {
  const Review review =
      request.review ? request.review(*served.body, served.meta, PageState::fresh) : Review{};
  if (review.suits && !review.shared) return not_shared();
  if (!review.suits) served.as = ServedAs::other;
  return served;
}

}  // namespace

class Engine::State {
 public:
  State(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options)
      : executor_(executor),
        isr_(isr),
        options_(std::make_shared<const EngineOptions>(std::move(options))),
        guards_(std::make_shared<StoreGuards>(isr, options_->breaker_failures, options_->breaker_pause)),
        memory_(std::make_shared<PageMemory>(guards_, options_)),
        flights_(std::make_shared<Flights>(executor, guards_, options_, memory_)),
        uncached_(static_cast<std::size_t>(options_->uncached_renders)) {}

  // A request that is abandoned may outlive the engine; what it counted in must not be gone.
  static Task<Result<Served>> serve(std::shared_ptr<State> self, ServeRequest request, Renderer renderer);
  PageMemory& memory() { return *memory_; }
  const StoreGuards& guards() const { return *guards_; }
  void try_writing_again() { StoreGuards::try_writing_again(guards_, executor_); }
  Flights& flights() { return *flights_; }
  EngineCounters counters() const;
  EngineGauges gauges() const;

 private:
  class Waiting;

  // A page is rendered whose body cannot be read. Others who ask for it meanwhile wait, if they have seen the same
  // rows: nothing was invalidated in between.
  struct RenderWithoutBody {
    explicit RenderWithoutBody(Pointer pointer) : seen(std::move(pointer)) {}
    bool is_for(const Pointer& pointer) const {
      return pointer.meta == seen.meta && pointer.marks == seen.marks;
    }

    const Pointer seen;
    Event over;
    std::optional<Served> served;  // Set before it is over, if the page is for others as well.
  };

  Task<Result<Served>> answer(ServeRequest request, Renderer renderer);
  Task<Result<Verdict>> decide(const ServeRequest& request, const Pointer& pointer);
  Task<Waited> wait(ServeRequest& request, const Renderer& renderer, const Pointer& pointer,
                    const WaitForRender& why, Duration came, Duration deadline);
  Task<std::optional<Served>> stale_instead(const ServeRequest& request, const Pointer& pointer,
                                            const WaitForRender& why, const Error& failure);
  Task<Result<Served>> serve_unknown(ServeRequest request, Renderer renderer, Error why);
  Task<Result<Served>> serve_without_body(ServeRequest request, Renderer renderer, Pointer pointer,
                                          Error why);
  Task<Result<Served>> serve_without_stores(ServeRequest request, Renderer renderer, Error why);
  Task<Result<Rendered>> render_in_a_place(const ServeRequest& request, Renderer renderer, const Error& why);
  Task<Result<Rendered>> render_uncached(const ServeRequest& request, Renderer renderer,
                                         std::shared_ptr<UncachedPlaces::Place> place);
  Served served_uncached(Rendered rendered, Error why);
  Task<Result<Served>> serve_page(MetaRow meta, ServedAs as, std::string reason);
  void count(const Result<Served>& served);

  // Constant after construction.
  const boost::asio::any_io_executor executor_;  // Renderers run on it.
  const Isr isr_;
  const std::shared_ptr<const EngineOptions> options_;
  const std::shared_ptr<StoreGuards> guards_;
  const std::shared_ptr<PageMemory> memory_;
  const std::shared_ptr<Flights> flights_;

  UncachedPlaces uncached_;
  std::atomic<std::size_t> waiters_ = 0;
  mutable std::mutex mutex_;  // Guards everything below; never held across an await.
  EngineCounters counters_;
  std::map<std::string, std::shared_ptr<RenderWithoutBody>> without_body_;  // By the page's pk.
};

// --- the four states --------------------------------------------------------------------------------------------

Task<Result<Served>> Engine::State::serve(std::shared_ptr<State> self, ServeRequest request,
                                          Renderer renderer) {
  auto served = co_await self->answer(std::move(request), std::move(renderer));
  self->count(served);
  co_return served;
}

Task<Result<Served>> Engine::State::answer(ServeRequest request, Renderer renderer) {
  const Duration came = isr_.clock.monotonic();
  std::optional<Duration> deadline;  // The waiting ends then, however often the page changes hands.
  for (;;) {
    auto pointer = co_await memory_->look_up(request.page, request.tags);
    if (!pointer) {
      Error why = std::move(pointer).error();
      co_return co_await serve_unknown(std::move(request), std::move(renderer), std::move(why));
    }
    auto verdict = co_await decide(request, *pointer);
    if (!verdict) {
      Error why = std::move(verdict).error();
      co_return co_await serve_without_body(std::move(request), std::move(renderer), *std::move(pointer),
                                            std::move(why));
    }
    // What cannot be stored is not rendered for storing.
    const std::optional<Error> storing_rests = guards_->storing_rests();
    if (storing_rests) try_writing_again();
    if (auto* served = std::get_if<Served>(&*verdict)) co_return std::move(*served);
    if (auto* meanwhile = std::get_if<ServedMeanwhile>(&*verdict)) {
      const bool just_read = pointer->read_at >= came;
      if (!storing_rests && (request.request_id || !memory_->is_render_deferred(request.page.pk))) {
        flights_->board(Errand{std::move(request), std::move(renderer), *std::move(pointer),
                               meanwhile->rejected, just_read});
      }
      co_return std::move(meanwhile->served);
    }
    const auto& why = std::get<WaitForRender>(*verdict);
    if (storing_rests) {
      auto stale = co_await stale_instead(request, *pointer, why, *storing_rests);
      if (stale) co_return *std::move(stale);
      co_return co_await serve_without_stores(std::move(request), std::move(renderer), *storing_rests);
    }
    if (!deadline) deadline = isr_.clock.monotonic() + request.policy.wait_limit;
    Waited waited = co_await wait(request, renderer, *pointer, why, came, *deadline);
    if (auto* served = std::get_if<Result<Served>>(&waited)) co_return std::move(*served);
  }
}

Task<Result<Verdict>> Engine::State::decide(const ServeRequest& request, const Pointer& pointer) {
  const PagePolicy& policy = request.policy;
  const std::int64_t now = isr_.now();
  const Freshness freshness = judge(pointer.meta, pointer.marks, now, isr_.settings.clock_skew);
  const bool fresh = freshness.state == PageState::fresh;
  const bool swr = policy.mode == ServeMode::swr;
  bool missing = freshness.state == PageState::missing;
  const bool too_old = !missing && !fresh && is_too_old(policy, *pointer.meta, now);

  BodyPointer body;
  if (!missing && (fresh || (swr && !too_old) || request.review)) {
    auto read = co_await memory_->bodies().get(pointer.meta->s3_key);
    if (!read && read.error().code != ErrorCode::corrupt) co_return std::move(read).error();
    missing = !read;  // A page whose body is gone is rendered again.
    if (read) body = *std::move(read);
  }
  if (missing) {
    if (request.only_if_cached || !request.renders_missing)
      co_return Served{ServedAs::absent, nullptr, {}, "there is no page"};
    if (memory_->is_transient(request.page.pk))
      co_return Served{ServedAs::pass, nullptr, {}, "it was not to be stored when it was last rendered"};
    co_return WaitForRender{};
  }
  Review review;
  if (request.review) review = request.review(*body, *pointer.meta, freshness.state);
  if (!review.suits)
    co_return Served{ServedAs::other, body, *pointer.meta, "the page at hand is for other requests"};
  if (fresh && (review.fresh || pointer.meta->pinned))
    co_return Served{ServedAs::hit, body, *pointer.meta, freshness.reason, 0, pointer.read_at};

  WaitForRender wait;
  wait.reason = fresh ? "it is not fresh enough for the request" : freshness.reason;
  if (!too_old && review.while_stale && (swr || (review.in_any_mode && !freshness.invalidated))) {
    Served stale{ServedAs::stale, body, *pointer.meta, std::move(wait.reason)};
    if (request.only_if_cached) co_return stale;
    co_return ServedMeanwhile{std::move(stale), fresh};
  }
  if (request.only_if_cached) co_return Served{ServedAs::absent, nullptr, {}, std::move(wait.reason)};
  wait.rejected = fresh;
  wait.shared = review.shared;
  wait.when_contended = !too_old && review.while_stale && policy.on_contention == OnContention::serve_stale;
  wait.when_failed = !too_old && review.on_failure && policy.on_failure == OnFailure::serve_stale;
  co_return wait;
}

// The table cannot be asked: what was known last is better than nothing.
Task<Result<Served>> Engine::State::serve_unknown(ServeRequest request, Renderer renderer, Error why) {
  const std::optional<Pointer> last = memory_->last_known(request.page.pk);
  const PageState state = last ? judge(last->meta, last->marks, isr_.now(), isr_.settings.clock_skew).state
                               : PageState::missing;  // Purged, perhaps.
  if (state != PageState::missing) {
    auto body = co_await memory_->bodies().get(last->meta->s3_key);
    if (body) {
      const Review review = request.review ? request.review(**body, *last->meta, state) : Review{};
      const ServedAs as = review.suits ? ServedAs::stale_metadata_error : ServedAs::other;
      if (!review.suits || review.even_uncertain) co_return Served{as, *body, *last->meta, why.message};
    }
  }
  co_return co_await serve_without_stores(std::move(request), std::move(renderer), std::move(why));
}

// The body cannot be read, and whoever asks for the page gets what the renderer makes of it now: one render for all who
// ask at the same time.
Task<Result<Served>> Engine::State::serve_without_body(ServeRequest request, Renderer renderer,
                                                       Pointer pointer, Error why) {
  if (request.only_if_cached) co_return Served{ServedAs::absent, nullptr, {}, why.message};
  const std::string pk = request.page.pk;
  const auto ours = std::make_shared<RenderWithoutBody>(std::move(pointer));
  std::shared_ptr<RenderWithoutBody> theirs;
  {
    const std::lock_guard lock(mutex_);
    const auto [known, is_first] = without_body_.emplace(pk, ours);
    if (!is_first) theirs = known->second;
  }
  if (theirs && !theirs->is_for(ours->seen))
    co_return co_await serve_without_stores(std::move(request), std::move(renderer), std::move(why));
  if (theirs) {
    const Duration came = isr_.clock.monotonic();
    const bool over = co_await theirs->over.wait(isr_.clock, request.policy.render_limit);
    request.policy.render_limit -= isr_.clock.monotonic() - came;
    if (over && theirs->served) {
      Served served = of_another(request, *theirs->served);
      if (served.as == ServedAs::uncached) co_return served;
    }
    co_return co_await serve_without_stores(std::move(request), std::move(renderer), std::move(why));
  }

  Result<Served> served = Error{};
  std::exception_ptr interrupted;
  try {
    auto rendered = co_await render_in_a_place(request, std::move(renderer), why);
    if (rendered) {
      const bool is_page = rendered->as == RenderedAs::page && !rendered->handed_over;
      served = served_uncached(*std::move(rendered), std::move(why));
      if (is_page) ours->served = *served;
    } else {
      served = std::move(rendered).error();
    }
  } catch (...) {
    interrupted = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    without_body_.erase(pk);
  }
  ours->over.set();
  if (interrupted) std::rethrow_exception(interrupted);
  co_return served;
}

// A store fails that would be needed for the page: the renderer is asked, and nothing is stored.
Task<Result<Served>> Engine::State::serve_without_stores(ServeRequest request, Renderer renderer, Error why) {
  if (request.only_if_cached) co_return Served{ServedAs::absent, nullptr, {}, why.message};
  auto rendered = co_await render_in_a_place(request, std::move(renderer), why);
  if (!rendered) co_return std::move(rendered).error();
  co_return served_uncached(*std::move(rendered), std::move(why));
}

Served Engine::State::served_uncached(Rendered rendered, Error why) {
  const ServedAs as = rendered.as == RenderedAs::failed ? ServedAs::failed : ServedAs::uncached;
  Served served{as, nullptr, would_be(isr_, rendered), std::move(why.message)};
  if (!rendered.handed_over) served.body = memory_->bodies().prepared(std::move(rendered.body)).body;
  return served;
}

// `exhausted`: too many others are rendered at the moment without a store.
Task<Result<Rendered>> Engine::State::render_in_a_place(const ServeRequest& request, Renderer renderer,
                                                        const Error& why) {
  const auto place = uncached_.take(request.left);
  if (!place) {
    co_return Error{ErrorCode::exhausted,
                    "a store cannot be used (" + why.message + "), and " +
                        std::to_string(options_->uncached_renders) + " pages are being rendered without it",
                    isr_.now() + 1};
  }
  Result<Rendered> rendered = Error{};
  std::exception_ptr interrupted;
  try {
    rendered = co_await render_uncached(request, std::move(renderer), place);
  } catch (...) {
    interrupted = std::current_exception();
  }
  uncached_.give_back(place);
  {
    const std::lock_guard lock(mutex_);
    ++counters_.renders;
  }
  if (interrupted) std::rethrow_exception(interrupted);
  co_return rendered;
}

// Asks the renderer within the render's own limit, since there is nothing else that could be served, and while the
// place is its own. What the renderer throws is an error.
Task<Result<Rendered>> Engine::State::render_uncached(const ServeRequest& request, Renderer renderer,
                                                      std::shared_ptr<UncachedPlaces::Place> place) {
  const Duration limit = request.policy.render_limit;
  RenderContext context{request.page, Lease{request.page, ""}, std::nullopt, {}};
  Result<Rendered> rendered =
      Error{ErrorCode::exhausted, "its client has left, and somebody else needed its place"};
  const auto rendering = [&]() -> Task<void> {
    Task<Result<Rendered>> render = render_within(isr_.clock, limit, std::move(renderer), std::move(context));
    rendered = co_await run_on(boost::asio::make_strand(executor_), std::move(render));
  };
  const auto losing = [&]() -> Task<void> {
    co_await place->taken_away().wait(isr_.clock, kUntilToldOtherwise);
  };
  Task<void> render = rendering();
  Task<void> loss = losing();
  try {
    co_await first_to_end(std::move(render), std::move(loss));
  } catch (const std::exception& error) {
    co_return Error{ErrorCode::internal, error.what()};
  }
  co_return rendered;
}

Task<Result<Served>> Engine::State::serve_page(MetaRow meta, ServedAs as, std::string reason) {
  auto body = co_await memory_->bodies().get(meta.s3_key);
  if (!body) co_return std::move(body).error();
  co_return Served{as, *std::move(body), std::move(meta), std::move(reason)};
}

// --- waiting for a render ---------------------------------------------------------------------------------------

// One request that waits for its page to be rendered. It boards a flight, and another one where that had nothing for
// it.
class Engine::State::Waiting {
 public:
  Waiting(State& engine, ServeRequest& request, const Renderer& renderer, const Pointer& pointer,
          const WaitForRender& why, Duration came, Duration deadline)
      : engine_(engine),
        flights_(*engine.flights_),
        clock_(engine.isr_.clock),
        request_(request),
        renderer_(renderer),
        pointer_(pointer),
        why_(why),
        came_(came),
        deadline_(deadline),
        counted_(engine.waiters_) {}

  Task<Waited> run();

 private:
  struct BoardAnother {};  // Nothing of that flight is for this request.
  // There is no render for this request in its time.
  struct NoneInTime {
    Error failure;
  };
  // What becomes of one flight that is waited for.
  using Ride = std::variant<Result<Served>, LookAgain, BoardAnother, NoneInTime>;

  Task<Ride> ride(bool just_read);
  Task<std::optional<Served>> stale_while_elsewhere(Flight& flight);
  Task<std::optional<Served>> early_answer(Flight& flight);
  Task<std::optional<Served>> answer_while_rendered(Flight& flight);
  Task<std::optional<Served>> answer_while_stored(Flight& flight);

  Task<Ride> ride_is_late(const Boarding& boarding);
  Ride ride_had_no_turn(const Flight& flight) const;
  Task<Ride> ride_has_ended(const Boarding& boarding);
  bool is_of_no_use(const Boarding& boarding) const;
  Task<Ride> land(const Boarding& boarding);
  Task<Ride> land_without_store(const Boarding& boarding);
  Task<Ride> land_unstored(const Boarding& boarding, bool is_called_stale);
  Task<Result<Served>> serve_if_it_suits(MetaRow meta, std::string reason);
  Task<Ride> replay(std::string s3_key);

  Task<Result<Served>> fall_back(Error failure, const Flight* failed = nullptr);
  Task<Result<Served>> serve_past_the_store();
  Task<Result<Served>> serve_without_stores(Error why);

  // Whoever does not wait at all wants the page for the next one.
  std::optional<Duration> waits_until() const {
    return request_.policy.wait_limit > Duration(0) ? std::optional(deadline_) : std::nullopt;
  }
  Duration time_left() const { return deadline_ - clock_.monotonic(); }
  bool has_time() const { return clock_.monotonic() < deadline_; }
  NoneInTime none_in_time() const {
    return {Error{ErrorCode::unavailable, "the page could not be rendered in time"}};
  }
  NoneInTime too_many(const Flight& flight) const;

  State& engine_;
  Flights& flights_;
  Clock& clock_;
  ServeRequest& request_;
  const Renderer& renderer_;
  const Pointer& pointer_;
  const WaitForRender& why_;
  const Duration came_;
  const Duration deadline_;
  const Counted<std::atomic<std::size_t>> counted_;
};

Task<Waited> Engine::State::wait(ServeRequest& request, const Renderer& renderer, const Pointer& pointer,
                                 const WaitForRender& why, Duration came, Duration deadline) {
  Waiting waiting(*this, request, renderer, pointer, why, came, deadline);
  co_return co_await waiting.run();
}

Task<Waited> Engine::State::Waiting::run() {
  bool just_read = pointer_.read_at >= came_;
  for (;;) {
    Ride ridden = co_await ride(just_read);
    just_read = false;
    if (auto* served = std::get_if<Result<Served>>(&ridden)) co_return std::move(*served);
    if (std::holds_alternative<LookAgain>(ridden)) co_return LookAgain{};
    if (auto* none = std::get_if<NoneInTime>(&ridden)) co_return co_await fall_back(std::move(none->failure));
  }
}

Task<Engine::State::Waiting::Ride> Engine::State::Waiting::ride(bool just_read) {
  const Boarding boarding =
      flights_.board(Errand{request_, renderer_, pointer_, why_.rejected, just_read, waits_until()});
  if (!boarding.flight) co_return NoneInTime{Error{ErrorCode::unavailable, "this process is about to end"}};
  // Nothing of the flight would be for this request, not even its failure.
  if (!why_.shared && !why_.when_failed && !boarding.began) co_return not_shared();
  const std::stop_callback when_left(request_.left, [seat = boarding.seat] {
    if (seat) seat->leave();
  });
  Flight& flight = *boarding.flight;
  auto served = co_await stale_while_elsewhere(flight);
  if (!served && boarding.began) served = co_await early_answer(flight);
  if (served) co_return *std::move(served);

  const bool ended = co_await flight.ended.wait(clock_, time_left());
  if (!ended) co_return co_await ride_is_late(boarding);
  if (boarding.began) request_.readable.reset();  // It told of that render, and of no other.
  const bool had_no_turn = *flight.outcome && std::holds_alternative<NoTurn>(**flight.outcome);
  if (had_no_turn) co_return ride_had_no_turn(flight);
  co_return co_await ride_has_ended(boarding);
}

// Serves the stale page as soon as another node is found rendering, where the policy says so.
Task<std::optional<Served>> Engine::State::Waiting::stale_while_elsewhere(Flight& flight) {
  if (!why_.when_contended) co_return std::nullopt;
  const bool held_up = co_await flight.held_up.wait(clock_, time_left());
  const bool ended = co_await flight.ended.wait(clock_, Duration(0));
  if (!held_up || !flight.elsewhere || ended) co_return std::nullopt;
  // It may have become too old meanwhile.
  if (is_too_old(request_.policy, *pointer_.meta, engine_.isr_.now())) co_return std::nullopt;
  std::string reason = why_.reason + "; somebody else is rendering it";
  auto stale = co_await engine_.serve_page(*pointer_.meta, ServedAs::stale, std::move(reason));
  if (!stale) co_return std::nullopt;
  co_return *std::move(stale);
}

// Serves what this request's own renderer makes before the flight has ended, where that takes long.
Task<std::optional<Served>> Engine::State::Waiting::early_answer(Flight& flight) {
  if (request_.readable) {
    auto live = co_await answer_while_rendered(flight);
    if (live) co_return live;
  } else {
    co_await flight.render_over.wait(clock_, time_left());
  }
  co_return co_await answer_while_stored(flight);
}

Task<std::optional<Served>> Engine::State::Waiting::answer_while_rendered(Flight& flight) {
  co_await request_.readable->wait(clock_, time_left());
  bool ended = co_await flight.ended.wait(clock_, kWholePatience);
  // Where a stale page may be served if the render fails, nothing is sent before it has succeeded.
  if (!ended && why_.when_failed) co_await flight.render_over.wait(clock_, time_left());
  const bool whole = flights_.has_rendered_page(flight);
  if (!ended && whole) ended = co_await flight.ended.wait(clock_, kStoringPatience);
  const bool is_readable = co_await request_.readable->wait(clock_, Duration(0));
  if (!is_readable || ended || (why_.when_failed && !whole)) co_return std::nullopt;
  Served live{ServedAs::live, nullptr, {}, "it is being rendered"};
  live.no_room = flights_.found_no_room(flight);
  co_return live;
}

Task<std::optional<Served>> Engine::State::Waiting::answer_while_stored(Flight& flight) {
  if (!flights_.has_rendered_page(flight)) co_return std::nullopt;
  const bool stored = co_await flight.ended.wait(clock_, kStoreHangs);
  auto [page, would_be] = flights_.rendered_page(flight);
  if (stored || !page) co_return std::nullopt;
  co_return Served{ServedAs::uncached, page, would_be, "it was rendered, and a store takes long to keep it"};
}

// The flight has not ended while the request waited.
Task<Engine::State::Waiting::Ride> Engine::State::Waiting::ride_is_late(const Boarding& boarding) {
  Flight& flight = *boarding.flight;
  if (flights_.waits_for_a_store(flight) && !request_.only_if_cached) {
    Error why{ErrorCode::unavailable, "a store does not answer"};
    auto stale = co_await engine_.stale_instead(request_, pointer_, why_, why);
    if (stale) co_return *std::move(stale);
    // The flight must not use the same renderer beside it.
    if (!boarding.began || flights_.take_renderer_back(flight))
      co_return co_await serve_without_stores(std::move(why));
  }
  co_return too_many(flight);
}

Engine::State::Waiting::Ride Engine::State::Waiting::ride_had_no_turn(const Flight& flight) const {
  // Where nobody was aboard the flight was given up just before this request came.
  const bool for_nobody = !flights_.was_refused(flight) && !request_.left.stop_requested();
  if (for_nobody && has_time()) return BoardAnother{};
  return too_many(flight);
}

Engine::State::Waiting::NoneInTime Engine::State::Waiting::too_many(const Flight& flight) const {
  NoneInTime none = none_in_time();
  none.failure.code = ErrorCode::exhausted;
  none.failure.retry_at = flights_.turn_expected_at();
  if (waits_until() && flights_.is_held_up(flight))
    none.failure.message = "too many pages are waiting to be rendered";
  return none;
}

Task<Engine::State::Waiting::Ride> Engine::State::Waiting::ride_has_ended(const Boarding& boarding) {
  const Flight& flight = *boarding.flight;
  const bool in_time = has_time();
  const RegenerateOutcome* outcome = *flight.outcome ? &**flight.outcome : nullptr;
  const bool useless = is_of_no_use(boarding);
  // The flight was of one with less patience.
  const bool impatient = outcome != nullptr && (std::holds_alternative<LeaseHeld>(*outcome) ||
                                                std::holds_alternative<RequestInProgress>(*outcome));
  if ((useless || impatient) && in_time) co_return BoardAnother{};
  if (useless) co_return none_in_time();
  // The lease was lost to an invalidation or a rollback: the page must be rendered again, as of now.
  const bool lost = outcome != nullptr && (std::holds_alternative<LeaseLost>(*outcome) ||
                                           std::holds_alternative<PublishRefused>(*outcome));
  if (lost && in_time) co_return LookAgain{};
  // It was interrupted for the sake of whoever had begun it, who waits for no store any more.
  const bool interrupted = outcome != nullptr && std::holds_alternative<RenderFailed>(*outcome) &&
                           flights_.was_renderer_taken_back(flight);
  if (interrupted && !boarding.began) co_return co_await serve_past_the_store();
  co_return co_await land(boarding);
}

// Whether what the flight came to may be older than this request, or is what its review has rejected.
bool Engine::State::Waiting::is_of_no_use(const Boarding& boarding) const {
  const Flight& flight = *boarding.flight;
  if (!*flight.outcome) return false;
  const auto* fresh = std::get_if<AlreadyFresh>(&**flight.outcome);
  const bool published = std::holds_alternative<Regenerated>(**flight.outcome);
  // If the flight is older than this request, its page may be older, too: invalidated, purged or marked after that,
  // and before the request came.
  const bool current = published && !boarding.may_be_published && flight.unmarked;
  const bool too_early = flight.began < came_ && (fresh != nullptr || (published && !current));
  const bool rejected = fresh != nullptr && why_.rejected && fresh->meta == pointer_.meta;
  return too_early || rejected;
}

// --- what a flight came to --------------------------------------------------------------------------------------

Task<Engine::State::Waiting::Ride> Engine::State::Waiting::land(const Boarding& boarding) {
  const Flight& flight = *boarding.flight;
  if (!*flight.outcome) co_return co_await land_without_store(boarding);
  const RegenerateOutcome& outcome = **flight.outcome;
  if (const auto* regenerated = std::get_if<Regenerated>(&outcome)) {
    Served served{ServedAs::miss, flight.rendered->body, regenerated->published.meta, "it was rendered"};
    co_return boarding.began ? std::move(served) : of_another(request_, std::move(served));
  }
  if (const auto* fresh = std::get_if<AlreadyFresh>(&outcome))
    co_return co_await serve_if_it_suits(fresh->meta, "another node rendered it");
  if (const auto* replayed = std::get_if<Replayed>(&outcome))
    co_return co_await replay(replayed->result_s3_key);
  if (std::holds_alternative<NotStored>(outcome)) co_return co_await land_unstored(boarding, false);
  if (std::holds_alternative<CalledStale>(outcome)) co_return co_await land_unstored(boarding, true);
  if (std::holds_alternative<RequestMismatch>(outcome)) {
    co_return Error{ErrorCode::invalid, "the request id " + request_.request_id.value_or("") +
                                            " was used with other inputs: take a fresh one"};
  }
  Error failure{ErrorCode::unavailable, "the page changed hands while it was rendered"};
  if (const auto* failed = std::get_if<RenderFailed>(&outcome)) {
    failure.message = "the render failed: " + failed->error.message;
    failure.retry_at = failed->retry_at;
    co_return co_await fall_back(std::move(failure), &flight);
  }
  if (std::holds_alternative<LeaseHeld>(outcome)) {
    failure.message = "somebody else has been rendering the page for too long";
  } else if (std::holds_alternative<RequestInProgress>(outcome)) {
    failure.message = "the request is in progress elsewhere";
  } else if (std::holds_alternative<RequestFailed>(outcome)) {
    failure.message = "the request has failed for good: take a fresh id";
  }
  co_return co_await fall_back(std::move(failure));
}

// Table or bodies failed under the flight. What it may have rendered all the same is for whoever it was rendered for:
// whether it is still true for those who came later, only the table could tell.
Task<Engine::State::Waiting::Ride> Engine::State::Waiting::land_without_store(const Boarding& boarding) {
  const Flight& flight = *boarding.flight;
  Error why = flight.outcome->error();
  auto stale = co_await engine_.stale_instead(request_, pointer_, why_, why);
  if (stale) co_return *std::move(stale);
  const bool has_page = flight.rendered && flight.rendered->as == RenderedAs::page && flight.rendered->body;
  if (boarding.began && has_page)
    co_return Served{ServedAs::uncached, flight.rendered->body, flight.rendered->would_be, why.message};
  co_return co_await serve_without_stores(std::move(why));
}

// What was rendered is for whoever it was rendered for, and not to be stored.
Task<Engine::State::Waiting::Ride> Engine::State::Waiting::land_unstored(const Boarding& boarding,
                                                                         bool is_called_stale) {
  const RenderedHere& rendered = *boarding.flight->rendered;
  if (is_called_stale) {
    const Error why{ErrorCode::unavailable, rendered.why_not_stored};
    auto stale = co_await engine_.stale_instead(request_, pointer_, why_, why);
    if (stale) co_return *std::move(stale);
  }
  const std::string why = rendered.why_not_stored.empty() ? "" : ": " + rendered.why_not_stored;
  if (boarding.began) {
    co_return Served{ServedAs::uncached, rendered.body, rendered.would_be, "it is not to be stored" + why};
  }
  co_return Served{
      ServedAs::pass, nullptr, {}, "it was rendered for somebody else, and is not to be stored" + why};
}

Task<Result<Served>> Engine::State::Waiting::serve_if_it_suits(MetaRow meta, std::string reason) {
  auto served = co_await engine_.serve_page(std::move(meta), ServedAs::wait_hit, std::move(reason));
  if (!served) co_return served;
  co_return of_another(request_, *std::move(served));
}

// The request's work was done before. While the page that came of it is current, that is the answer. What has taken its
// place is as good, and what was purged must not come back by way of a record: without its id the request is like
// any other.
Task<Engine::State::Waiting::Ride> Engine::State::Waiting::replay(std::string s3_key) {
  const Isr& isr = engine_.isr_;
  auto pointer = co_await engine_.memory_->read_pointer(request_.page, request_.tags, Consistency::strong);
  const std::int64_t now = isr.now();
  const bool is_current =
      pointer && pointer->meta && name_same_body(pointer->meta->s3_key, s3_key) &&
      judge(pointer->meta, pointer->marks, now, isr.settings.clock_skew).state != PageState::missing &&
      !is_too_old(request_.policy, *pointer->meta, now);
  if (is_current) {
    auto served = co_await serve_if_it_suits(*std::move(pointer->meta), "the request was done before");
    if (served || served.error().code != ErrorCode::corrupt) co_return served;
  }
  request_.request_id.reset();
  request_.inputs.clear();
  request_.other_hashes.clear();
  co_return LookAgain{};
}

// --- when nothing came of it ------------------------------------------------------------------------------------

// The stale page, where it may be served after such a failure and can be read.
Task<std::optional<Served>> Engine::State::stale_instead(const ServeRequest& request, const Pointer& pointer,
                                                         const WaitForRender& why, const Error& failure) {
  if (!why.when_failed || is_too_old(request.policy, *pointer.meta, isr_.now())) co_return std::nullopt;
  std::string reason = why.reason + "; " + failure.message;
  auto stale = co_await serve_page(*pointer.meta, ServedAs::stale, std::move(reason));
  if (!stale) co_return std::nullopt;
  co_return *std::move(stale);
}

// `failed` is the flight whose render has failed, and may have given an answer to be shown.
Task<Result<Served>> Engine::State::Waiting::fall_back(Error failure, const Flight* failed) {
  auto stale = co_await engine_.stale_instead(request_, pointer_, why_, failure);
  if (stale) co_return *std::move(stale);
  if (failed != nullptr && failed->rendered) {
    const RenderedHere& shown = *failed->rendered;
    const ServedAs as = shown.as == RenderedAs::page ? ServedAs::uncached : ServedAs::failed;
    co_return Served{as, shown.body, shown.would_be, failure.message, failure.retry_at};
  }
  co_return failure;
}

Task<Result<Served>> Engine::State::Waiting::serve_past_the_store() {
  Error why{ErrorCode::unavailable, "a store does not answer"};
  auto stale = co_await engine_.stale_instead(request_, pointer_, why_, why);
  if (stale) co_return *std::move(stale);
  co_return co_await serve_without_stores(std::move(why));
}

Task<Result<Served>> Engine::State::Waiting::serve_without_stores(Error why) {
  ServeRequest again = request_;
  Renderer by = renderer_;
  co_return co_await engine_.serve_without_stores(std::move(again), std::move(by), std::move(why));
}

// --- counting ---------------------------------------------------------------------------------------------------

void Engine::State::count(const Result<Served>& served) {
  const ServedAs as = served ? served->as : ServedAs::failed;
  const std::lock_guard lock(mutex_);
  ++(counters_.*counter_of(as));
}

EngineCounters Engine::State::counters() const {
  EngineCounters counters;
  {
    const std::lock_guard lock(mutex_);
    counters = counters_;
  }
  memory_->add_to(counters);
  flights_->add_to(counters);
  return counters;
}

EngineGauges Engine::State::gauges() const {
  EngineGauges gauges;
  gauges.waiters = waiters_;
  flights_->add_to(gauges);
  memory_->add_to(gauges);
  guards_->add_to(gauges);
  return gauges;
}

Engine::Engine(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options)
    : state_(std::make_shared<State>(executor, isr, std::move(options))) {}
Engine::~Engine() = default;

Task<Result<Served>> Engine::serve(ServeRequest request, Renderer renderer) {
  return State::serve(state_, std::move(request), std::move(renderer));
}
Task<Result<std::shared_ptr<const Body>>> Engine::body(std::string s3_key) {
  return state_->memory().bodies().get(std::move(s3_key));
}
Task<void> Engine::wait_for_render(Page page, Duration limit) {
  return state_->flights().wait_for(std::move(page.pk), limit);
}
int Engine::warmth(const std::string& s3_key) const {
  return static_cast<int>(state_->memory().bodies().warmth(s3_key));
}
std::uint64_t Engine::forgets() const {
  return state_->memory().forgets();
}
void Engine::forget(const Page& page) {
  state_->memory().forget(page.pk);
}
Task<void> Engine::drain() {
  return state_->flights().drain();
}
EngineCounters Engine::counters() const {
  return state_->counters();
}
EngineGauges Engine::gauges() const {
  return state_->gauges();
}
std::optional<Error> Engine::table_writes_rest() const {
  return state_->guards().table_writes_rest();
}
std::optional<Error> Engine::body_writes_rest() const {
  return state_->guards().body_writes_rest();
}
void Engine::try_writing_again() {
  state_->try_writing_again();
}
std::optional<OverdueRender> Engine::overdue() {
  return state_->flights().overdue();
}

}  // namespace facetheory
