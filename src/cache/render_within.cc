#include "facetheory/cache/render_within.h"

#include <exception>
#include <optional>
#include <stop_token>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "facetheory/base/duration.h"

namespace facetheory {

Task<Result<Rendered>> render_within(Clock& clock, Duration limit, Renderer renderer, RenderContext context) {
  using namespace boost::asio::experimental::awaitable_operators;
  std::stop_source stop;
  const std::stop_callback when_lost(context.lost, [stop]() mutable { stop.request_stop(); });
  context.lost = stop.get_token();
  std::stop_source over_limit;
  context.late = over_limit.get_token();
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
    over_limit.request_stop();
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

}  // namespace facetheory
