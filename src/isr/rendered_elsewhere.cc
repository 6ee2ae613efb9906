#include "facetheory/isr/rendered_elsewhere.h"

#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/log.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/verdict.h"

namespace facetheory {
namespace {

bool is_fresh_for_others(const PageView& seen, const Isr& isr) {
  return judge(seen.meta, isr.now()).state == PageState::fresh;
}

// Whoever knows only META must not take the page for fresh. What cannot be written now is tried with the next request.
Task<void> close_for_others(const Isr& isr, const PageView& seen) {
  std::optional<Error> failure;
  if (seen.freshness.state == PageState::missing) {
    auto removed = co_await remove_purged(isr, seen.page, *seen.meta);
    if (!removed) failure = std::move(removed).error();
  } else {
    auto closed = co_await close_window(isr, seen.page, *seen.meta);
    if (!closed) failure = std::move(closed).error();
  }
  if (failure)
    log(LogLevel::warning, to_string(seen.page) + " stays fresh for other readers: " + failure->message);
}

Task<Result<Rendered>> answer_of(Renderer renderer, Page page) {
  RenderContext context{page, Lease{page, ""}, std::nullopt, {}};
  try {
    co_return co_await renderer(std::move(context));
  } catch (const std::exception& error) {
    co_return Error{ErrorCode::unavailable, error.what()};
  }
}

}  // namespace

Task<Result<RegenerateOutcome>> have_rendered_elsewhere(const Isr& isr, Page page, Renderer renderer,
                                                        RegenerateOptions options) {
  auto before = co_await view_before_render(isr, page, options.tags);
  if (!before) co_return std::move(before).error();
  const bool fresh = before->freshness.state == PageState::fresh;
  const bool rejected = fresh && before->meta == options.rejected && !before->meta->pinned;
  if (fresh && !rejected) {
    auto body = co_await isr.bodies.read(before->meta->s3_key);
    if (!body && body.error().code != ErrorCode::corrupt) co_return std::move(body).error();
    if (body && *body) co_return AlreadyFresh{*before->meta};
  }
  std::shared_ptr<void> turn;
  if (options.turn) {
    turn = co_await options.turn();
    if (!turn) co_return NoTurn{};
  }
  if (!fresh && is_fresh_for_others(*before, isr)) co_await close_for_others(isr, *before);

  Result<Rendered> answer = co_await answer_of(std::move(renderer), page);
  auto after = co_await view(isr, page, Consistency::strong, {}, options.tags);
  if (!after) co_return std::move(after).error();
  const bool published = after->meta && (!before->meta || after->meta->s3_key != before->meta->s3_key);
  // One that was invalidated before it was published is no answer to whoever came after that.
  if (published && after->freshness.state == PageState::fresh) co_return AlreadyFresh{*after->meta};
  if (!answer) co_return RenderFailed{answer.error()};
  if (answer->as == RenderedAs::called_stale) co_return CalledStale{};
  if (answer->as == RenderedAs::failed) {
    co_return RenderFailed{Error{ErrorCode::unavailable, "whoever renders the page answered with status " +
                                                             std::to_string(answer->body.metadata.status)}};
  }
  co_return NotStored{};
}

}  // namespace facetheory
