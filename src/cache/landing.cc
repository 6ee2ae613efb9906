#include "facetheory/cache/landing.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/body_key.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/regenerate_outcome.h"

namespace facetheory {

Task<Waited> Landing::land(const Boarding& boarding) {
  const Flight& flight = *boarding.flight;
  if (!*flight.outcome) co_return co_await land_without_store(boarding);
  const RegenerateOutcome& outcome = **flight.outcome;
  if (const auto* regenerated = std::get_if<Regenerated>(&outcome)) {
    Served served{ServedAs::miss, flight.render.made()->body(), regenerated->published.meta,
                  "it was rendered"};
    co_return boarding.began ? std::move(served) : of_another(waiting_.request, std::move(served));
  }
  if (const auto* fresh = std::get_if<AlreadyFresh>(&outcome))
    co_return co_await serve_if_it_suits(fresh->meta, "another node rendered it");
  if (const auto* replayed = std::get_if<Replayed>(&outcome))
    co_return co_await replay(replayed->result_s3_key);
  if (std::holds_alternative<NotStored>(outcome)) co_return co_await land_unstored(boarding, false);
  if (std::holds_alternative<CalledStale>(outcome)) co_return co_await land_unstored(boarding, true);
  if (std::holds_alternative<RequestMismatch>(outcome)) {
    co_return Error{ErrorCode::invalid, "the request id " + waiting_.request.request_id.value_or("") +
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
Task<Result<Served>> Landing::land_without_store(const Boarding& boarding) {
  Flight& flight = *boarding.flight;
  Error why = flight.outcome->error();
  auto stale = co_await stale_instead(why);
  if (stale) co_return *std::move(stale);
  // One that was given up may go on: not made(), which is for those that have ended.
  auto [page, would_be] = flight.render.page(parts_.memory->bodies());
  if (boarding.began && page) co_return Served{ServedAs::uncached, page, would_be, why.message};
  co_return co_await serve_without_stores(std::move(why));
}

// What was rendered is for whoever it was rendered for, and not to be stored.
Task<Result<Served>> Landing::land_unstored(const Boarding& boarding, bool is_called_stale) {
  const RenderedHere& rendered = *boarding.flight->render.made();
  if (is_called_stale) {
    const Error why{ErrorCode::unavailable, rendered.why_not_stored};
    auto stale = co_await stale_instead(why);
    if (stale) co_return *std::move(stale);
  }
  const std::string why = rendered.why_not_stored.empty() ? "" : ": " + rendered.why_not_stored;
  if (boarding.began) {
    co_return Served{ServedAs::uncached, rendered.body(), rendered.would_be, "it is not to be stored" + why};
  }
  co_return Served{
      ServedAs::pass, nullptr, {}, "it was rendered for somebody else, and is not to be stored" + why};
}

Task<Result<Served>> Landing::serve_if_it_suits(MetaRow meta, std::string reason) {
  auto served = co_await serve_page(*parts_.memory, std::move(meta), ServedAs::wait_hit, std::move(reason));
  if (!served) co_return served;
  co_return of_another(waiting_.request, *std::move(served));
}

// The request's work was done before. While the page that came of it is current, that is the answer. What has taken its
// place is as good, and what was purged must not come back by way of a record: without its id the request is like
// any other.
Task<Waited> Landing::replay(std::string s3_key) {
  const Isr& isr = parts_.isr;
  auto pointer =
      co_await parts_.memory->read_pointer(waiting_.request.page, waiting_.request.tags, Consistency::strong);
  const std::int64_t now = isr.now();
  const bool is_current =
      pointer && pointer->meta && name_same_body(pointer->meta->s3_key, s3_key) &&
      judge(pointer->meta, pointer->marks, now, isr.settings.clock_skew).state != PageState::missing &&
      !is_too_old(waiting_.request.policy, *pointer->meta, now);
  if (is_current) {
    auto served = co_await serve_if_it_suits(*std::move(pointer->meta), "the request was done before");
    if (served || served.error().code != ErrorCode::corrupt) co_return served;
  }
  waiting_.request.request_id.reset();
  waiting_.request.inputs.clear();
  waiting_.request.other_hashes.clear();
  co_return TryAgain{};
}

Task<Result<Served>> Landing::fall_back(Error failure, const Flight* failed) {
  auto stale = co_await stale_instead(failure);
  if (stale) co_return *std::move(stale);
  if (failed != nullptr && failed->render.made()) {
    const RenderedHere& shown = *failed->render.made();
    const ServedAs as = shown.as == RenderedAs::page ? ServedAs::uncached : ServedAs::failed;
    co_return Served{as, shown.body(), shown.would_be, failure.message, failure.retry_at};
  }
  co_return failure;
}

Task<std::optional<Served>> Landing::stale_instead(const Error& failure) {
  return facetheory::stale_instead(parts_.isr, *parts_.memory, waiting_.request, waiting_.pointer,
                                   waiting_.why, failure);
}

Task<Result<Served>> Landing::serve_past_the_store() {
  Error why{ErrorCode::unavailable, "a store does not answer"};
  auto stale = co_await stale_instead(why);
  if (stale) co_return *std::move(stale);
  co_return co_await serve_without_stores(std::move(why));
}

Task<Result<Served>> Landing::serve_without_stores(Error why) {
  ServeRequest again = waiting_.request;
  Renderer by = waiting_.renderer;
  co_return co_await parts_.uncached.serve_without_stores(std::move(again), std::move(by), std::move(why));
}

}  // namespace facetheory
