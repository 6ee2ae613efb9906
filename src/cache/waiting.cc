#include "facetheory/cache/waiting.h"

#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/cache/page_at_hand.h"
#include "facetheory/isr/regenerate_outcome.h"

namespace facetheory {
namespace {

// A page that is whole so soon after it could be read is answered whole, once it is stored: with its entity tag, and
// compressed.
constexpr std::chrono::milliseconds kWholePatience{15};
// So much longer it may take to store it. A store that is slow or hangs must not keep the page from whoever it was
// rendered for.
constexpr std::chrono::milliseconds kStoringPatience{20};
// So long it may take for those who cannot read it while it is being stored.
constexpr std::chrono::seconds kStoreHangs{1};

}  // namespace

Task<Waited> Waiting::run() {
  bool just_read = waiting_.pointer.read_at >= waiting_.came;
  for (;;) {
    Ride ridden = co_await ride(just_read);
    just_read = false;
    if (auto* served = std::get_if<Result<Served>>(&ridden)) co_return std::move(*served);
    if (auto* again = std::get_if<TryAgain>(&ridden)) co_return std::move(*again);
    if (auto* none = std::get_if<NoneInTime>(&ridden))
      co_return co_await landing_.fall_back(std::move(none->failure));
  }
}

Task<Waiting::Ride> Waiting::ride(bool just_read) {
  const Boarding boarding =
      flights_.board(Errand{waiting_.request, waiting_.renderer, waiting_.pointer, waiting_.why.rejected,
                            just_read, waits_until(), waiting_.lost_place});
  if (!boarding.flight) co_return NoneInTime{Error{ErrorCode::unavailable, "this process is about to end"}};
  // Nothing of the flight would be for this request, not even its failure.
  if (!waiting_.why.shared && !waiting_.why.when_failed && !boarding.began) co_return not_shared();
  const std::stop_callback when_left(waiting_.request.left, [seat = boarding.seat] {
    if (seat) seat->leave();
  });
  Flight& flight = *boarding.flight;
  auto served = co_await stale_while_elsewhere(flight);
  if (!served && boarding.began) served = co_await early_answer(flight);
  if (served) co_return *std::move(served);

  const bool ended = co_await flight.ended.wait(clock_, time_left());
  if (!ended) co_return co_await ride_is_late(boarding);
  if (boarding.began) waiting_.request.readable.reset();  // It told of that render, and of no other.
  const bool had_no_turn = *flight.outcome && std::holds_alternative<NoTurn>(**flight.outcome);
  if (had_no_turn) co_return ride_had_no_turn(flight);
  co_return co_await ride_has_ended(boarding);
}

// Serves the stale page as soon as another node is found rendering, where the policy says so.
Task<std::optional<Served>> Waiting::stale_while_elsewhere(Flight& flight) {
  if (!waiting_.why.when_contended) co_return std::nullopt;
  const bool held_up = co_await flight.held_up.wait(clock_, time_left());
  const bool ended = co_await flight.ended.wait(clock_, Duration(0));
  if (!held_up || !flight.elsewhere || ended) co_return std::nullopt;
  // It may have become too old meanwhile.
  if (is_too_old(waiting_.request.policy, *waiting_.pointer.meta, parts_.isr.now())) co_return std::nullopt;
  std::string reason = waiting_.why.reason + "; somebody else is rendering it";
  auto stale =
      co_await serve_page(*parts_.memory, *waiting_.pointer.meta, ServedAs::stale, std::move(reason));
  if (!stale) co_return std::nullopt;
  co_return *std::move(stale);
}

// Serves what this request's own renderer makes before the flight has ended, where that takes long.
Task<std::optional<Served>> Waiting::early_answer(Flight& flight) {
  if (waiting_.request.readable) {
    auto live = co_await answer_while_rendered(flight);
    if (live) co_return live;
  } else {
    co_await flight.render_over.wait(clock_, time_left());
  }
  co_return co_await answer_while_stored(flight);
}

Task<std::optional<Served>> Waiting::answer_while_rendered(Flight& flight) {
  co_await waiting_.request.readable->wait(clock_, time_left());
  bool ended = co_await flight.ended.wait(clock_, kWholePatience);
  // Where a stale page may be served if the render fails, nothing is sent before it has succeeded.
  if (!ended && waiting_.why.when_failed) co_await flight.render_over.wait(clock_, time_left());
  const bool whole = flight.render.has_page();
  if (!ended && whole) ended = co_await flight.ended.wait(clock_, kStoringPatience);
  const bool is_readable = co_await waiting_.request.readable->wait(clock_, Duration(0));
  if (!is_readable || ended || (waiting_.why.when_failed && !whole)) co_return std::nullopt;
  Served live{ServedAs::live, nullptr, {}, "it is being rendered"};
  live.no_room = flight.render.found_no_room();
  co_return live;
}

Task<std::optional<Served>> Waiting::answer_while_stored(Flight& flight) {
  if (!flight.render.has_page()) co_return std::nullopt;
  const bool stored = co_await flight.ended.wait(clock_, kStoreHangs);
  auto [page, would_be] = flight.render.page(parts_.memory->bodies());
  if (stored || !page) co_return std::nullopt;
  co_return Served{ServedAs::uncached, page, would_be, "it was rendered, and a store takes long to keep it"};
}

// The flight has not ended while the request waited.
Task<Waiting::Ride> Waiting::ride_is_late(const Boarding& boarding) {
  Flight& flight = *boarding.flight;
  if (flights_.waits_for_a_store(flight) && !waiting_.request.only_if_cached) {
    Error why{ErrorCode::unavailable, "a store does not answer"};
    auto stale = co_await landing_.stale_instead(why);
    if (stale) co_return *std::move(stale);
    // The flight must not use the same renderer beside it.
    if (!boarding.began || flight.render.take_back())
      co_return co_await landing_.serve_without_stores(std::move(why));
  }
  co_return too_many(flight);
}

Waiting::Ride Waiting::ride_had_no_turn(const Flight& flight) const {
  // Where nobody was aboard the flight was given up just before this request came.
  const bool for_nobody = !flights_.was_refused(flight) && !waiting_.request.left.stop_requested();
  if (for_nobody && has_time()) return BoardAnother{};
  return too_many(flight);
}

std::optional<Duration> Waiting::waits_until() const {
  if (waiting_.request.policy.wait_limit <= Duration(0)) return std::nullopt;
  return waiting_.deadline;
}

Waiting::NoneInTime Waiting::none_in_time() const {
  return {Error{ErrorCode::unavailable, "the page could not be rendered in time"}};
}

Waiting::NoneInTime Waiting::too_many(const Flight& flight) const {
  NoneInTime none = none_in_time();
  none.failure.code = ErrorCode::exhausted;
  none.failure.retry_at = flights_.turn_expected_at();
  if (waits_until() && flights_.is_held_up(flight))
    none.failure.message = "too many pages are waiting to be rendered";
  return none;
}

Task<Waiting::Ride> Waiting::ride_has_ended(const Boarding& boarding) {
  const Flight& flight = *boarding.flight;
  const bool in_time = has_time();
  const RegenerateOutcome* outcome = *flight.outcome ? &**flight.outcome : nullptr;
  const bool useless = is_of_no_use(boarding);
  // The flight was of one with less patience.
  const bool impatient = outcome != nullptr && (std::holds_alternative<LeaseHeld>(*outcome) ||
                                                std::holds_alternative<RequestInProgress>(*outcome));
  if ((useless || impatient) && in_time) co_return BoardAnother{};
  if (useless) co_return none_in_time();
  // The lease was lost to an invalidation or a rollback, or could not be refreshed in time: the page must be rendered
  // again, as of now. Whoever waits keeps the place in the queue.
  const bool lost = outcome != nullptr && (std::holds_alternative<LeaseLost>(*outcome) ||
                                           std::holds_alternative<PublishRefused>(*outcome));
  if (lost && in_time) co_return TryAgain{flight.place};
  // It was interrupted for the sake of whoever had begun it, who waits for no store any more.
  const bool interrupted =
      outcome != nullptr && std::holds_alternative<RenderFailed>(*outcome) && flight.render.was_taken_back();
  if (interrupted && !boarding.began) co_return co_await landing_.serve_past_the_store();
  Waited landed = co_await landing_.land(boarding);
  if (auto* served = std::get_if<Result<Served>>(&landed)) co_return std::move(*served);
  co_return TryAgain{};
}

// Whether what the flight came to may be older than this request, or is what its review has rejected.
bool Waiting::is_of_no_use(const Boarding& boarding) const {
  const Flight& flight = *boarding.flight;
  if (!*flight.outcome) return false;
  const auto* fresh = std::get_if<AlreadyFresh>(&**flight.outcome);
  const bool published = std::holds_alternative<Regenerated>(**flight.outcome);
  // If the flight is older than this request, its page may be older, too: invalidated, purged or marked after that,
  // and before the request came.
  const bool current = published && !boarding.may_be_published && flight.unmarked;
  const bool too_early = flight.began < waiting_.came && (fresh != nullptr || (published && !current));
  const bool rejected = fresh != nullptr && waiting_.why.rejected && fresh->meta == waiting_.pointer.meta;
  return too_early || rejected;
}

}  // namespace facetheory
