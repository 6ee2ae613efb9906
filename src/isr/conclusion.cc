#include "facetheory/isr/conclusion.h"

#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/invalidate.h"

namespace facetheory {
namespace {

// What the answer of a render that failed says of itself.
Error failure_of(const Rendered& answer) {
  const int status = answer.body.metadata.status;
  const bool told = status < 400 && !answer.why_not_stored.empty();
  return {ErrorCode::unavailable,
          told ? answer.why_not_stored : "the page came with status " + std::to_string(status)};
}

}  // namespace

Task<Result<RegenerateOutcome>> Conclusion::conclude(Result<Rendered> rendered) {
  if (!rendered) co_return co_await give_up(std::move(rendered).error());
  if (rendered->as == RenderedAs::failed) {
    Error failure = failure_of(*rendered);
    co_return co_await give_up(std::move(failure));
  }
  if (rendered->as == RenderedAs::called_stale) co_return co_await called_stale();
  if (rendered->as == RenderedAs::transient) co_return co_await not_stored();
  co_return co_await publish_page(*std::move(rendered));
}

Task<Result<RegenerateOutcome>> Conclusion::publish_page(Rendered page) {
  options_.request = request_.to_complete();
  options_.seen_marks = seen_.seen_marks;
  auto outcome = co_await publish(isr_, lease_, std::move(page), std::move(options_));
  if (!outcome) {
    // `invalid` is the renderer's mistake; anything else may pass. After `ambiguous` LOCK says who is right.
    if (outcome.error().code == ErrorCode::invalid) co_return co_await give_up(outcome.error());
    [[maybe_unused]] auto released = co_await release(isr_, lease_);
    if (outcome.error().code != ErrorCode::ambiguous) co_await request_.hand_back(to_string(outcome.error()));
    co_return std::move(outcome).error();
  }
  if (auto* published = std::get_if<Published>(&*outcome)) co_return Regenerated{std::move(*published)};
  if (auto* gone = std::get_if<LeaseLost>(&*outcome)) {
    co_return co_await request_.attach(std::move(*gone), "the lease was lost before the page was published");
  }
  co_return co_await refuse(std::get<PublishRefused>(*std::move(outcome)));
}

Task<Result<RegenerateOutcome>> Conclusion::refuse(PublishRefused refused) {
  [[maybe_unused]] auto released = co_await release(isr_, lease_);
  std::string why = "not published: " + std::string(name(refused.reason));
  RegenerateOutcome outcome = std::move(refused);
  co_return co_await request_.attach(std::move(outcome), std::move(why));
}

// The render failed: everybody backs off.
Task<Result<RegenerateOutcome>> Conclusion::give_up(Error error) {
  RenderFailed failed{std::move(error)};
  const std::string why = to_string(failed.error);
  auto backed_off = co_await back_off(isr_, lease_, why);
  if (backed_off) {
    if (const auto* until = std::get_if<BackedOff>(&*backed_off)) failed.retry_at = until->until;
  }
  co_await request_.hand_back(why);
  co_return failed;
}

// What is no longer for everybody must not be served to anybody as stale either.
Task<Result<RegenerateOutcome>> Conclusion::not_stored() {
  const std::string why = "the page is only for whoever asked for it, and was not stored";
  NotStored outcome;
  if (seen_.meta) {
    auto withdrawn = co_await withdraw(isr_, lease_, *seen_.meta);
    if (!withdrawn) {
      [[maybe_unused]] auto released = co_await release(isr_, lease_);
      co_await request_.hand_back(to_string(withdrawn.error()));
      co_return std::move(withdrawn).error();
    }
    // What was rendered is for whoever asked for it all the same.
    outcome.lease_lost = std::holds_alternative<LeaseLost>(*withdrawn);
    if (const auto* done = std::get_if<Withdrawn>(&*withdrawn)) outcome.withdrawn = done->had_page;
  } else {
    auto released = co_await release(isr_, lease_);
    outcome.lease_lost = released && std::holds_alternative<LeaseLost>(*released);
  }
  if (outcome.lease_lost) co_return co_await request_.attach(outcome, why);
  co_await request_.hand_back(why);
  co_return outcome;
}

// Whoever renders the page has a stale one only: another may have a better one soon.
Task<Result<RegenerateOutcome>> Conclusion::called_stale() {
  [[maybe_unused]] auto released = co_await release(isr_, lease_);
  co_await request_.hand_back("whoever renders the page calls it stale");
  co_return CalledStale{};
}

}  // namespace facetheory
