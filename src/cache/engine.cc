#include "facetheory/cache/engine.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/strand.hpp>

#include "facetheory/base/counted.h"
#include "facetheory/base/first_to_end.h"
#include "facetheory/base/run_on.h"
#include "facetheory/cache/flights.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/uncached_places.h"
#include "facetheory/isr/body_key.h"

namespace facetheory {
namespace {

// A page that is whole so soon after it could be read is answered whole, once it is stored: with its entity tag, and
// compressed.
constexpr std::chrono::milliseconds kWholePatience{30};
// For storing it, besides. A store that is slow or hangs must not keep the page from whoever it was rendered for.
constexpr std::chrono::milliseconds kStoringPatience{20};
// The same for those who cannot read it while it is being stored.
constexpr std::chrono::seconds kStoreHangs{1};

// Whether the page is so far beyond its window that it may not even be served as stale.
bool is_too_old(const PagePolicy& policy, const MetaRow& meta, std::int64_t now) {
  return policy.stale_for && !meta.pinned &&
         now >= meta.newest_generation() + meta.revalidate_seconds +
                    policy.stale_for->count();  // Rows hold no larger numbers.
}

// What a request finds, as far as one look goes.
struct Verdict {
  std::optional<Served> served;  // At once.
  bool refresh = false;          // And is regenerated in the background.
  // Otherwise the request waits for a render. Of the page that is at hand:
  std::string reason;           // Why it is not good enough.
  bool rejected = false;        // It is fresh but for its review.
  bool when_contended = false;  // It may be served while another node renders,
  bool when_failed = false;     // and when nothing came of the waiting.
  bool shared = true;           // Somebody else's render of it may answer this request, too.
};

Served not_shared() {
  return {ServedAs::pass, nullptr, {}, "it was rendered for somebody else, and is to be validated for each"};
}

}  // namespace

class Engine::State {
 public:
  State(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options)
      : executor_(executor),
        isr_(isr),
        options_(std::make_shared<const EngineOptions>(std::move(options))),
        memory_(std::make_shared<PageMemory>(isr, options_)),
        flights_(std::make_shared<Flights>(executor, memory_->isr(), options_, memory_)),
        uncached_(static_cast<std::size_t>(options_->uncached_renders)) {}

  // A request that is abandoned may outlive the engine; what it counted in must not be gone.
  static Task<Result<Served>> serve(std::shared_ptr<State> self, ServeRequest request, Renderer renderer);
  PageMemory& memory() { return *memory_; }
  void try_writing_again() { PageMemory::try_writing_again(memory_, executor_); }
  Flights& flights() { return *flights_; }
  EngineCounters counters() const;
  EngineGauges gauges() const;

 private:
  // What became of waiting for a flight; empty: the page has changed hands, look again.
  using Landed = std::optional<Result<Served>>;

  Task<Result<Served>> answer(ServeRequest request, Renderer renderer);
  Task<Result<Verdict>> look_at(const ServeRequest& request, const Pointer& pointer);
  Task<Landed> wait(ServeRequest& request, const Renderer& renderer, const Pointer& pointer,
                    const Verdict& verdict, Duration came, Duration deadline);
  Task<Landed> land(ServeRequest& request, const Renderer& renderer, const Boarding& boarding,
                    const Pointer& pointer, const Verdict& verdict);
  Task<Landed> replay(ServeRequest& request, std::string s3_key);
  Task<Result<Served>> fall_back(const ServeRequest& request, const Pointer& pointer, const Verdict& verdict,
                                 Error failure, std::shared_ptr<Flight> failed);
  Task<Result<Served>> serve_unknown(ServeRequest request, Renderer renderer, Error why);
  Task<Result<Served>> serve_without_stores(ServeRequest request, Renderer renderer, Error why);
  Task<Result<Rendered>> render_uncached(const ServeRequest& request, Renderer renderer,
                                         std::shared_ptr<UncachedPlaces::Place> place);
  Task<Result<Served>> serve_page(MetaRow meta, ServedAs as, std::string reason);
  Task<Result<Served>> serve_if_it_suits(const ServeRequest& request, MetaRow meta, std::string reason);
  static Served of_another(const ServeRequest& request, Served served);
  void count(const Result<Served>& served);

  // Constant after construction.
  const boost::asio::any_io_executor executor_;  // Of the renderers.
  const Isr isr_;
  const std::shared_ptr<const EngineOptions> options_;
  const std::shared_ptr<PageMemory> memory_;
  const std::shared_ptr<Flights> flights_;

  UncachedPlaces uncached_;
  std::atomic<std::size_t> waiters_ = 0;
  mutable std::mutex mutex_;  // Guards everything below; never held across an await.
  EngineCounters counters_;
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
  std::optional<Duration> deadline;  // Of the waiting, however often it looks.
  for (;;) {
    auto pointer = co_await memory_->look_up(request.page, request.tags);
    if (!pointer) {
      Error why = std::move(pointer).error();
      co_return co_await serve_unknown(std::move(request), std::move(renderer), std::move(why));
    }
    auto verdict = co_await look_at(request, *pointer);
    if (!verdict) {
      Error why = std::move(verdict).error();
      co_return co_await serve_without_stores(std::move(request), std::move(renderer), std::move(why));
    }
    // What cannot be stored is not rendered for storing.
    const std::optional<Error> storing_rests = memory_->storing_rests();
    if (storing_rests) try_writing_again();
    const bool just_read = pointer->read_at >= came;
    if (verdict->refresh && !storing_rests && (request.request_id || !memory_->rests(request.page.pk))) {
      flights_->board(
          Errand{std::move(request), std::move(renderer), *std::move(pointer), verdict->rejected, just_read});
    }
    if (verdict->served) co_return *std::move(verdict->served);
    if (storing_rests) {
      auto stale = co_await fall_back(request, *pointer, *verdict, *storing_rests, nullptr);
      if (stale) co_return stale;
      co_return co_await serve_without_stores(std::move(request), std::move(renderer), *storing_rests);
    }
    if (!deadline) deadline = isr_.clock.monotonic() + request.policy.wait_limit;
    Landed landed = co_await wait(request, renderer, *pointer, *verdict, came, *deadline);
    if (landed) co_return *std::move(landed);
  }
}

Task<Result<Verdict>> Engine::State::look_at(const ServeRequest& request, const Pointer& pointer) {
  const PagePolicy& policy = request.policy;
  const std::int64_t now = isr_.now();
  const Freshness freshness = judge(pointer.meta, pointer.marks, now, isr_.settings.clock_skew);
  const bool fresh = freshness.state == PageState::fresh;
  bool missing = freshness.state == PageState::missing;
  const bool too_old = !missing && !fresh && is_too_old(policy, *pointer.meta, now);

  Verdict verdict;
  Review review;
  BodyPointer body;
  const bool swr = policy.mode == ServeMode::swr;
  if (!missing && (fresh || (swr && !too_old) || request.review)) {
    auto read = co_await memory_->body(pointer.meta->s3_key);
    if (!read && read.error().code != ErrorCode::corrupt) co_return std::move(read).error();
    missing = !read;  // A page whose body is gone is rendered again.
    if (read) body = *std::move(read);
  }
  if (missing) {
    if (request.only_if_cached || !request.renders_missing) {
      verdict.served = Served{ServedAs::absent, nullptr, {}, "there is no page"};
    } else if (memory_->passes(request.page.pk)) {
      verdict.served =
          Served{ServedAs::pass, nullptr, {}, "it was not to be stored when it was last rendered"};
    }
    co_return verdict;
  }
  if (request.review) review = request.review(*body, *pointer.meta, freshness.state);
  if (!review.suits) {
    verdict.served = Served{ServedAs::other, body, *pointer.meta, "the page at hand is for other requests"};
    co_return verdict;
  }
  if (fresh && (review.fresh || pointer.meta->pinned)) {
    verdict.served = Served{ServedAs::hit, body, *pointer.meta, freshness.reason, 0, pointer.read_at};
    co_return verdict;
  }
  verdict.rejected = fresh;
  verdict.shared = review.shared;
  verdict.reason = fresh ? "it is not fresh enough for the request" : freshness.reason;
  verdict.when_contended =
      !too_old && review.while_stale && policy.on_contention == OnContention::serve_stale;
  verdict.when_failed = !too_old && review.on_failure && policy.on_failure == OnFailure::serve_stale;
  if (!too_old && review.while_stale && (swr || (review.in_any_mode && !freshness.invalidated))) {
    verdict.refresh = !request.only_if_cached;
    verdict.served = Served{ServedAs::stale, body, *pointer.meta, verdict.reason};
  } else if (request.only_if_cached) {
    verdict.served = Served{ServedAs::absent, nullptr, {}, verdict.reason};
  }
  co_return verdict;
}

// The table cannot be asked: what was known last is better than nothing.
Task<Result<Served>> Engine::State::serve_unknown(ServeRequest request, Renderer renderer, Error why) {
  const std::optional<Pointer> last = memory_->last_known(request.page.pk);
  const PageState state = last ? judge(last->meta, last->marks, isr_.now(), isr_.settings.clock_skew).state
                               : PageState::missing;  // Purged, perhaps.
  if (state != PageState::missing) {
    auto body = co_await memory_->body(last->meta->s3_key);
    if (body) {
      const Review review = request.review ? request.review(**body, *last->meta, state) : Review{};
      const ServedAs as = review.suits ? ServedAs::stale_metadata_error : ServedAs::other;
      if (!review.suits || review.even_uncertain) co_return Served{as, *body, *last->meta, why.message};
    }
  }
  co_return co_await serve_without_stores(std::move(request), std::move(renderer), std::move(why));
}

// A store fails that would be needed for the page: the renderer is asked, and nothing is stored.
Task<Result<Served>> Engine::State::serve_without_stores(ServeRequest request, Renderer renderer, Error why) {
  if (request.only_if_cached) co_return Served{ServedAs::absent, nullptr, {}, why.message};
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
  if (!rendered) co_return std::move(rendered).error();
  Served served{rendered->failed ? ServedAs::failed : ServedAs::uncached, nullptr, would_be(isr_, *rendered),
                why.message};
  served.body = memory_->prepared(std::move(rendered->body)).body;
  co_return served;
}

// Within the render's own limit, since there is nothing else that could be served, and while the place is its own. What
// the renderer throws is an error.
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
  auto body = co_await memory_->body(meta.s3_key);
  if (!body) co_return std::move(body).error();
  co_return Served{as, *std::move(body), std::move(meta), std::move(reason)};
}

// --- waiting for a render ---------------------------------------------------------------------------------------

Task<Engine::State::Landed> Engine::State::wait(ServeRequest& request, const Renderer& renderer,
                                                const Pointer& pointer, const Verdict& verdict, Duration came,
                                                Duration deadline) {
  const Counted waiting(waiters_);
  Error failure{ErrorCode::unavailable, "the page could not be rendered in time"};
  bool just_read = pointer.read_at >= came;
  // Who does not wait at all wants the page for the next one.
  const auto waits_until = request.policy.wait_limit > Duration(0) ? std::optional(deadline) : std::nullopt;
  for (;;) {
    const Boarding boarding =
        flights_->board(Errand{request, renderer, pointer, verdict.rejected, just_read, waits_until});
    just_read = false;
    const std::shared_ptr<Flight> flight = boarding.flight;
    if (!flight) {
      failure.message = "this process is about to end";
      break;
    }
    // Nothing of the flight would be for this request, not even its failure.
    if (!verdict.shared && !verdict.when_failed && !boarding.began) co_return not_shared();
    const std::stop_callback when_left(request.left, [seat = boarding.seat] {
      if (seat) seat->leave();
    });
    if (verdict.when_contended) {
      const bool held_up = co_await flight->held_up.wait(isr_.clock, deadline - isr_.clock.monotonic());
      const bool ended = co_await flight->ended.wait(isr_.clock, Duration(0));
      if (held_up && flight->elsewhere && !ended) {
        auto stale = co_await serve_page(*pointer.meta, ServedAs::stale,
                                         verdict.reason + "; somebody else is rendering it");
        if (stale) co_return stale;
      }
    }
    if (boarding.began && request.readable) {
      co_await request.readable->wait(isr_.clock, deadline - isr_.clock.monotonic());
      bool ended = co_await flight->ended.wait(isr_.clock, kWholePatience);
      // Where a stale page may be served if the render fails, nothing is sent before it has succeeded.
      if (!ended && verdict.when_failed)
        co_await flight->render_over.wait(isr_.clock, deadline - isr_.clock.monotonic());
      const bool whole = flights_->has_rendered_page(*flight);
      if (!ended && whole) ended = co_await flight->ended.wait(isr_.clock, kStoringPatience);
      const bool is_readable = co_await request.readable->wait(isr_.clock, Duration(0));
      if (is_readable && !ended && (whole || !verdict.when_failed))
        co_return Served{
            ServedAs::live, nullptr, {}, "it is being rendered", 0, {}, flights_->found_no_room(*flight)};
    } else if (boarding.began) {
      co_await flight->render_over.wait(isr_.clock, deadline - isr_.clock.monotonic());
    }
    if (boarding.began && flights_->has_rendered_page(*flight)) {
      const bool stored = co_await flight->ended.wait(isr_.clock, kStoreHangs);
      auto [page, would_be] = flights_->rendered_page(*flight);
      if (!stored && page)
        co_return Served{ServedAs::uncached, page, would_be,
                         "it was rendered, and a store takes long to keep it"};
    }
    const bool ended = co_await flight->ended.wait(isr_.clock, deadline - isr_.clock.monotonic());
    if (boarding.began && ended) request.readable.reset();  // It told of that render, and of no other.
    const bool no_turn = ended && *flight->outcome && std::holds_alternative<NoTurn>(**flight->outcome);
    const bool for_nobody = no_turn && !flights_->was_refused(*flight) && !request.left.stop_requested();
    if (for_nobody && isr_.clock.monotonic() < deadline) continue;  // It was given up just before we came.
    if (!ended && flights_->waits_for_a_store(*flight) && !request.only_if_cached) {
      Error why{ErrorCode::unavailable, "a store does not answer"};
      auto stale = co_await fall_back(request, pointer, verdict, why, nullptr);
      if (stale) co_return stale;
      // The flight must not use the same renderer beside it.
      if (!boarding.began || flights_->take_renderer_back(*flight)) {
        ServeRequest again = request;
        Renderer by = renderer;
        co_return co_await serve_without_stores(std::move(again), std::move(by), std::move(why));
      }
    }
    if (!ended || no_turn) {
      failure.code = ErrorCode::exhausted;
      failure.retry_at = flights_->turn_expected_at();
      if (waits_until && flights_->is_held_up(*flight))
        failure.message = "too many pages are waiting to be rendered";
      break;
    }

    const bool time_left = isr_.clock.monotonic() < deadline;
    const auto* outcome = *flight->outcome ? &**flight->outcome : nullptr;
    const auto* fresh = outcome != nullptr ? std::get_if<AlreadyFresh>(outcome) : nullptr;
    const bool published = outcome != nullptr && std::holds_alternative<Regenerated>(*outcome);
    // Of a flight that is older than this request the page may be older, too: invalidated, purged or marked
    // after that, and before the request came.
    const bool current = published && !boarding.may_be_published && flight->unmarked;
    const bool too_early = flight->began < came && (fresh != nullptr || (published && !current));
    const bool rejected = fresh != nullptr && verdict.rejected && fresh->meta == pointer.meta;
    // The flight was of one with less patience.
    const bool impatient = outcome != nullptr && (std::holds_alternative<LeaseHeld>(*outcome) ||
                                                  std::holds_alternative<RequestInProgress>(*outcome));
    if ((too_early || rejected || impatient) && time_left) continue;
    if (too_early || rejected) break;
    const bool lost = outcome != nullptr && (std::holds_alternative<LeaseLost>(*outcome) ||
                                             std::holds_alternative<PublishRefused>(*outcome));
    // To an invalidation or a rollback: the page must be rendered again, as of now.
    if (lost && time_left) co_return Landed();
    // It was interrupted for the sake of whoever had begun it, who waits for no store any more.
    const bool interrupted = outcome != nullptr && std::holds_alternative<RenderFailed>(*outcome) &&
                             flights_->was_withdrawn(*flight);
    if (interrupted && !boarding.began) {
      Error why{ErrorCode::unavailable, "a store does not answer"};
      auto stale = co_await fall_back(request, pointer, verdict, why, nullptr);
      if (stale) co_return stale;
      ServeRequest again = request;
      Renderer by = renderer;
      co_return co_await serve_without_stores(std::move(again), std::move(by), std::move(why));
    }
    co_return co_await land(request, renderer, boarding, pointer, verdict);
  }
  co_return co_await fall_back(request, pointer, verdict, std::move(failure), nullptr);
}

// The flight has ended, in time.
Task<Engine::State::Landed> Engine::State::land(ServeRequest& request, const Renderer& renderer,
                                                const Boarding& boarding, const Pointer& pointer,
                                                const Verdict& verdict) {
  const std::shared_ptr<Flight> flight = boarding.flight;
  if (!*flight->outcome) {
    // Table or bodies failed under the flight. What it may have rendered all the same is for whoever it was rendered
    // for: whether it is still true for those who came later, only the table could tell.
    Error why = flight->outcome->error();
    auto stale = co_await fall_back(request, pointer, verdict, why, nullptr);
    if (stale) co_return stale;
    if (boarding.began && flight->rendered && flight->is_page)
      co_return Served{ServedAs::uncached, flight->rendered, flight->would_be, why.message};
    ServeRequest again = request;
    Renderer by = renderer;
    co_return co_await serve_without_stores(std::move(again), std::move(by), std::move(why));
  }
  const RegenerateOutcome& outcome = **flight->outcome;
  if (const auto* regenerated = std::get_if<Regenerated>(&outcome)) {
    const MetaRow& meta = regenerated->published.meta;
    Served served{ServedAs::miss, flight->rendered, meta, "it was rendered"};
    co_return boarding.began ? std::move(served) : of_another(request, std::move(served));
  }
  if (const auto* fresh = std::get_if<AlreadyFresh>(&outcome)) {
    co_return co_await serve_if_it_suits(request, fresh->meta, "another node rendered it");
  }
  if (const auto* replayed = std::get_if<Replayed>(&outcome)) {
    co_return co_await replay(request, replayed->result_s3_key);
  }
  if (const auto* not_stored = std::get_if<NotStored>(&outcome)) {
    if (not_stored->stale) {
      Error why{ErrorCode::unavailable, flight->why_not_stored};
      auto stale = co_await fall_back(request, pointer, verdict, std::move(why), nullptr);
      if (stale) co_return stale;
    }
    const std::string why = flight->why_not_stored.empty() ? "" : ": " + flight->why_not_stored;
    if (boarding.began) {
      co_return Served{ServedAs::uncached, flight->rendered, flight->would_be,
                       "it is not to be stored" + why};
    }
    co_return Served{
        ServedAs::pass, nullptr, {}, "it was rendered for somebody else, and is not to be stored" + why};
  }
  if (std::holds_alternative<RequestMismatch>(outcome)) {
    co_return Error{ErrorCode::invalid, "the request id " + request.request_id.value_or("") +
                                            " was used with other inputs: take a fresh one"};
  }
  Error failure{ErrorCode::unavailable, "the page changed hands while it was rendered"};
  if (const auto* failed = std::get_if<RenderFailed>(&outcome)) {
    failure.message = "the render failed: " + failed->error.message;
    failure.retry_at = failed->retry_at;
    co_return co_await fall_back(request, pointer, verdict, std::move(failure), flight);
  }
  if (std::holds_alternative<LeaseHeld>(outcome)) {
    failure.message = "somebody else has been rendering the page for too long";
  } else if (std::holds_alternative<RequestInProgress>(outcome)) {
    failure.message = "the request is in progress elsewhere";
  } else if (std::holds_alternative<RequestFailed>(outcome)) {
    failure.message = "the request has failed for good: take a fresh id";
  }
  co_return co_await fall_back(request, pointer, verdict, std::move(failure), nullptr);
}

Task<Result<Served>> Engine::State::serve_if_it_suits(const ServeRequest& request, MetaRow meta,
                                                      std::string reason) {
  auto served = co_await serve_page(std::move(meta), ServedAs::wait_hit, std::move(reason));
  if (!served) co_return served;
  co_return of_another(request, *std::move(served));
}

// What somebody else's render made, if it is for this request, too.
Served Engine::State::of_another(const ServeRequest& request, Served served) {
  const Review review =
      request.review ? request.review(*served.body, served.meta, PageState::fresh) : Review{};
  if (review.suits && !review.shared) return not_shared();
  if (!review.suits) served.as = ServedAs::other;
  return served;
}

// The request's work was done before. While the page that came of it is current, that is the answer. What has taken its
// place is as good, and what was purged must not come back by way of a record: without its id the request is like
// any other.
Task<Engine::State::Landed> Engine::State::replay(ServeRequest& request, std::string s3_key) {
  auto pointer = co_await memory_->read_pointer(request.page, request.tags, Consistency::strong);
  const std::int64_t now = isr_.now();
  const bool is_current =
      pointer && pointer->meta && name_same_body(pointer->meta->s3_key, s3_key) &&
      judge(pointer->meta, pointer->marks, now, isr_.settings.clock_skew).state != PageState::missing &&
      !is_too_old(request.policy, *pointer->meta, now);
  if (is_current) {
    auto served =
        co_await serve_if_it_suits(request, *std::move(pointer->meta), "the request was done before");
    if (served || served.error().code != ErrorCode::corrupt) co_return served;
  }
  request.request_id.reset();
  request.inputs.clear();
  request.other_hashes.clear();
  co_return Landed();
}

// Nothing came of the waiting. `failed`: the flight whose render did, and may have an answer of its own.
Task<Result<Served>> Engine::State::fall_back(const ServeRequest& request, const Pointer& pointer,
                                              const Verdict& verdict, Error failure,
                                              std::shared_ptr<Flight> failed) {
  if (verdict.when_failed && !is_too_old(request.policy, *pointer.meta, isr_.now())) {
    auto stale = co_await serve_page(*pointer.meta, ServedAs::stale, verdict.reason + "; " + failure.message);
    if (stale) co_return stale;
  }
  if (failed && failed->rendered) {
    const ServedAs as = failed->is_page ? ServedAs::uncached : ServedAs::failed;
    co_return Served{as, failed->rendered, failed->would_be, failure.message, failure.retry_at};
  }
  co_return failure;
}

// --- counting ---------------------------------------------------------------------------------------------------

void Engine::State::count(const Result<Served>& served) {
  static constexpr std::uint64_t EngineCounters::* kCounters[] = {
      &EngineCounters::hit,
      &EngineCounters::miss,
      &EngineCounters::wait_hit,
      &EngineCounters::stale,
      &EngineCounters::stale_metadata_error,
      &EngineCounters::uncached,
      &EngineCounters::miss,  // live
      &EngineCounters::pass,
      &EngineCounters::other,
      &EngineCounters::absent,
      &EngineCounters::failed};  // In the order of ServedAs.
  const ServedAs as = served ? served->as : ServedAs::failed;
  const std::lock_guard lock(mutex_);
  ++(counters_.*kCounters[static_cast<std::size_t>(as)]);
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
  return gauges;
}

Engine::Engine(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options)
    : state_(std::make_shared<State>(executor, isr, std::move(options))) {}
Engine::~Engine() = default;

Task<Result<Served>> Engine::serve(ServeRequest request, Renderer renderer) {
  return State::serve(state_, std::move(request), std::move(renderer));
}
Task<Result<std::shared_ptr<const Body>>> Engine::body(std::string s3_key) {
  return state_->memory().body(std::move(s3_key));
}
Task<void> Engine::wait_for_render(Page page, Duration limit) {
  return state_->flights().wait_for(std::move(page.pk), limit);
}
int Engine::warmth(const std::string& s3_key) const {
  return static_cast<int>(state_->memory().warmth(s3_key));
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
  return state_->memory().table_writes_rest();
}
std::optional<Error> Engine::body_writes_rest() const {
  return state_->memory().body_writes_rest();
}
void Engine::try_writing_again() {
  state_->try_writing_again();
}
std::optional<OverdueRender> Engine::overdue() {
  return state_->flights().overdue();
}

}  // namespace facetheory
