#include "facetheory/cache/engine.h"

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/cache/engine_parts.h"
#include "facetheory/cache/flights.h"
#include "facetheory/cache/landing.h"
#include "facetheory/cache/page_at_hand.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/store_guards.h"
#include "facetheory/cache/waiting.h"
#include "facetheory/isr/freshness.h"

namespace facetheory {
namespace {

// A page that is served at once and rendered again in the background.
struct ServedMeanwhile {
  Served served;
  bool rejected = false;  // It is fresh but for its review.
};

// What becomes of a request, as far as its page's rows, body and review tell.
using Verdict = std::variant<Served, ServedMeanwhile, WaitForRender>;

}  // namespace

class Engine::State {
 public:
  State(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options)
      : parts_(executor, isr, std::move(options)) {}

  // A request that is abandoned may outlive the engine; what it counted in must not be gone.
  static Task<Result<Served>> serve(std::shared_ptr<State> self, ServeRequest request, Renderer renderer);
  static Task<void> drain(std::shared_ptr<State> self);
  PageMemory& memory() { return *parts_.memory; }
  const StoreGuards& guards() const { return *parts_.guards; }
  void try_writing_again() { StoreGuards::try_writing_again(parts_.guards, parts_.executor); }
  Flights& flights() { return *parts_.flights; }
  EngineCounters counters() const;
  EngineGauges gauges() const;

 private:
  Task<Result<Served>> answer(ServeRequest request, Renderer renderer);
  Task<Result<Verdict>> decide(const ServeRequest& request, const Pointer& pointer);
  Task<Result<Served>> serve_unknown(ServeRequest request, Renderer renderer, Error why);
  void count(const Result<Served>& served);

  EngineParts parts_;
  mutable std::mutex mutex_;  // Guards what follows; never held across an await.
  EngineCounters counters_;   // Of answers.
};

// --- the four states --------------------------------------------------------------------------------------------

Task<Result<Served>> Engine::State::serve(std::shared_ptr<State> self, ServeRequest request,
                                          Renderer renderer) {
  auto served = co_await self->answer(std::move(request), std::move(renderer));
  self->count(served);
  co_return served;
}

Task<Result<Served>> Engine::State::answer(ServeRequest request, Renderer renderer) {
  const Duration came = parts_.isr.clock.monotonic();
  std::optional<Duration> deadline;  // The waiting ends then, however often the page changes hands.
  std::shared_ptr<Turns::Place> lost_place;
  for (;;) {
    auto pointer = co_await parts_.memory->look_up(request.page, request.tags);
    if (!pointer) {
      Error why = std::move(pointer).error();
      co_return co_await serve_unknown(std::move(request), std::move(renderer), std::move(why));
    }
    auto verdict = co_await decide(request, *pointer);
    if (!verdict) {
      Error why = std::move(verdict).error();
      co_return co_await parts_.uncached.serve_without_body(std::move(request), std::move(renderer),
                                                            *std::move(pointer), std::move(why));
    }
    // What cannot be stored is not rendered for storing.
    const std::optional<Error> storing_rests = parts_.guards->storing_rests();
    if (storing_rests) try_writing_again();
    if (auto* served = std::get_if<Served>(&*verdict)) co_return std::move(*served);
    if (auto* meanwhile = std::get_if<ServedMeanwhile>(&*verdict)) {
      const bool just_read = pointer->read_at >= came;
      if (!storing_rests && (request.request_id || !parts_.memory->is_render_deferred(request.page.pk))) {
        parts_.flights->board(Errand{std::move(request), std::move(renderer), *std::move(pointer),
                                     meanwhile->rejected, just_read});
      }
      co_return std::move(meanwhile->served);
    }
    const auto& why = std::get<WaitForRender>(*verdict);
    if (storing_rests) {
      auto stale = co_await stale_instead(parts_.isr, *parts_.memory, request, *pointer, why, *storing_rests);
      if (stale) co_return *std::move(stale);
      co_return co_await parts_.uncached.serve_without_stores(std::move(request), std::move(renderer),
                                                              *storing_rests);
    }
    if (!deadline) deadline = parts_.isr.clock.monotonic() + request.policy.wait_limit;
    Waiting waiting(parts_, WaitingRequest{request, renderer, *pointer, why, came, *deadline, lost_place});
    Waited waited = co_await waiting.run();
    if (auto* served = std::get_if<Result<Served>>(&waited)) co_return std::move(*served);
    lost_place = std::get<TryAgain>(std::move(waited)).lost_place;
  }
}

Task<Result<Verdict>> Engine::State::decide(const ServeRequest& request, const Pointer& pointer) {
  const PagePolicy& policy = request.policy;
  const std::int64_t now = parts_.isr.now();
  const Freshness freshness = judge(pointer.meta, pointer.marks, now, parts_.isr.settings.clock_skew);
  const bool fresh = freshness.state == PageState::fresh;
  const bool swr = policy.mode == ServeMode::swr;
  bool missing = freshness.state == PageState::missing;
  const bool too_old = !missing && !fresh && is_too_old(policy, *pointer.meta, now);

  BodyPointer body;
  if (!missing && (fresh || (swr && !too_old) || request.review)) {
    auto read = co_await parts_.memory->bodies().get(pointer.meta->s3_key);
    if (!read && read.error().code != ErrorCode::corrupt) co_return std::move(read).error();
    missing = !read;  // A page whose body is gone is rendered again.
    if (read) body = *std::move(read);
  }
  if (missing) {
    if (request.only_if_cached || !request.renders_missing)
      co_return Served{ServedAs::absent, nullptr, {}, "there is no page"};
    if (parts_.memory->is_transient(request.page.pk))
      co_return Served{ServedAs::pass, nullptr, {}, "it was not to be stored when it was last rendered"};
    co_return WaitForRender{};
  }
  Review review;
  if (request.review) review = request.review(*body, *pointer.meta, freshness.state);
  if (!review.suits)
    co_return Served{ServedAs::other, body, *pointer.meta, "the page at hand is for other requests"};
  if (fresh && (review.fresh || pointer.meta->pinned))
    co_return Served{ServedAs::hit, body, *pointer.meta, freshness.reason, 0, pointer.read_at, pointer.trust};

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
  const std::optional<Pointer> last = parts_.memory->last_known(request.page.pk);
  const PageState state =
      last ? judge(last->meta, last->marks, parts_.isr.now(), parts_.isr.settings.clock_skew).state
           : PageState::missing;  // Purged, perhaps.
  if (state != PageState::missing) {
    auto body = co_await parts_.memory->bodies().get(last->meta->s3_key);
    if (body) {
      const Review review = request.review ? request.review(**body, *last->meta, state) : Review{};
      const ServedAs as = review.suits ? ServedAs::stale_metadata_error : ServedAs::other;
      if (!review.suits || review.even_uncertain) co_return Served{as, *body, *last->meta, why.message};
    }
  }
  co_return co_await parts_.uncached.serve_without_stores(std::move(request), std::move(renderer),
                                                          std::move(why));
}

Task<void> Engine::State::drain(std::shared_ptr<State> self) {
  co_await self->parts_.flights->drain();
  co_await self->parts_.memory->drain();
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
  parts_.memory->add_to(counters);
  parts_.flights->add_to(counters);
  parts_.uncached.add_to(counters);
  return counters;
}

EngineGauges Engine::State::gauges() const {
  EngineGauges gauges;
  gauges.waiters = parts_.waiters;
  parts_.flights->add_to(gauges);
  parts_.memory->add_to(gauges);
  parts_.guards->add_to(gauges);
  return gauges;
}

Engine::Engine(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options)
    : state_(std::make_shared<State>(executor, isr, std::move(options))) {}
Engine::~Engine() = default;

Task<Result<Served>> Engine::serve(ServeRequest request, Renderer renderer) {
  return State::serve(state_, std::move(request), std::move(renderer));
}
Task<Result<std::shared_ptr<const KeptBody>>> Engine::body(std::string s3_key) {
  return state_->memory().bodies().get(std::move(s3_key));
}
Task<void> Engine::wait_for_render(Page page, Duration limit) {
  return state_->flights().wait_for(std::move(page.pk), limit);
}
int Engine::warmth(const std::string& s3_key) const {
  return static_cast<int>(state_->memory().bodies().warmth(s3_key));
}
std::uint32_t Engine::use_of(const std::string& s3_key) {
  return BodyMemory::use_of(s3_key);
}
void Engine::note_use(std::uint32_t use) {
  state_->memory().bodies().note_use(use);
}
void Engine::note_size(const std::string& s3_key, std::size_t size) {
  state_->memory().bodies().note_size(s3_key, size);
}
std::size_t Engine::pointer_memory_in_use() const {
  return state_->memory().pointer_memory_in_use();
}
void Engine::set_memory(std::size_t bytes) {
  state_->memory().bodies().set_budget(bytes);
}
void Engine::forget_old_uses() {
  state_->memory().bodies().look_at_clock();
}
std::uint64_t Engine::forgets() const {
  return state_->memory().forgets();
}
void Engine::forget(const Page& page) {
  state_->memory().forget(page.pk);
}
Task<void> Engine::drain() {
  return State::drain(state_);
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
void Engine::give_up_overdue() {
  state_->flights().give_up_overdue();
}
std::optional<OverdueRender> Engine::overdue() const {
  return state_->flights().overdue();
}

}  // namespace facetheory
