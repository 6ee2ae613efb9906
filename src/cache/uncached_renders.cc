#include "facetheory/cache/uncached_renders.h"

#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/strand.hpp>

#include "facetheory/base/event.h"
#include "facetheory/base/first_to_end.h"
#include "facetheory/base/run_on.h"
#include "facetheory/cache/page_at_hand.h"
#include "facetheory/cache/render_within.h"

namespace facetheory {

// A page is rendered whose body cannot be read. Others who ask for it meanwhile wait, if they have seen the same rows:
// nothing was invalidated in between.
struct UncachedRenders::WithoutBody {
  explicit WithoutBody(Pointer pointer) : seen(std::move(pointer)) {}
  bool is_for(const Pointer& pointer) const {
    return pointer.meta == seen.meta && pointer.marks == seen.marks;
  }

  const Pointer seen;
  Event over;
  std::optional<Served> served;  // Set before it is over, if the page is for others as well.
};

UncachedRenders::UncachedRenders(const boost::asio::any_io_executor& executor, const Isr& isr,
                                 std::shared_ptr<const EngineOptions> options,
                                 std::shared_ptr<PageMemory> memory)
    : executor_(executor),
      isr_(isr),
      options_(std::move(options)),
      memory_(std::move(memory)),
      places_(static_cast<std::size_t>(options_->uncached_renders)) {}

Task<Result<Served>> UncachedRenders::serve_without_body(ServeRequest request, Renderer renderer,
                                                         Pointer pointer, Error why) {
  if (request.only_if_cached) co_return Served{ServedAs::absent, nullptr, {}, why.message};
  const std::string pk = request.page.pk;
  const auto ours = std::make_shared<WithoutBody>(std::move(pointer));
  std::shared_ptr<WithoutBody> theirs;
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

Task<Result<Served>> UncachedRenders::serve_without_stores(ServeRequest request, Renderer renderer,
                                                           Error why) {
  if (request.only_if_cached) co_return Served{ServedAs::absent, nullptr, {}, why.message};
  auto rendered = co_await render_in_a_place(request, std::move(renderer), why);
  if (!rendered) co_return std::move(rendered).error();
  co_return served_uncached(*std::move(rendered), std::move(why));
}

Served UncachedRenders::served_uncached(Rendered rendered, Error why) {
  const ServedAs as = rendered.as == RenderedAs::failed ? ServedAs::failed : ServedAs::uncached;
  Served served{as, nullptr, would_be(isr_, rendered), std::move(why.message)};
  if (!rendered.handed_over) served.body = memory_->bodies().prepared(std::move(rendered.body)).body;
  return served;
}

Task<Result<Rendered>> UncachedRenders::render_in_a_place(const ServeRequest& request, Renderer renderer,
                                                          const Error& why) {
  const auto place = places_.take(request.left);
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
  places_.give_back(place);
  {
    const std::lock_guard lock(mutex_);
    ++renders_;
  }
  if (interrupted) std::rethrow_exception(interrupted);
  co_return rendered;
}

// Asks the renderer within the render's own limit, since there is nothing else that could be served, and while the
// place is its own. What the renderer throws is an error.
Task<Result<Rendered>> UncachedRenders::render_uncached(const ServeRequest& request, Renderer renderer,
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

void UncachedRenders::add_to(EngineCounters& counters) const {
  const std::lock_guard lock(mutex_);
  counters.renders += renders_;
}

}  // namespace facetheory
