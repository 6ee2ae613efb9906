#include "facetheory/isr/regenerate.h"

#include <exception>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/base/log.h"
#include "facetheory/isr/claimed_request.h"
#include "facetheory/isr/conclusion.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/repeat.h"
#include "facetheory/isr/verdict.h"

namespace facetheory {
namespace {

// One regeneration, from the first look to the outcome.
class Regeneration {
 public:
  Regeneration(const Isr& isr, Page page, Renderer renderer, RegenerateOptions options)
      : isr_(isr),
        page_(std::move(page)),
        renderer_(std::move(renderer)),
        options_(std::move(options)),
        deadline_(isr.clock.monotonic() + options_.wait),
        request_(isr, page_, options_) {}

  Task<Result<RegenerateOutcome>> run();

 private:
  using Ended = std::optional<RegenerateOutcome>;

  enum class Look { at_first, under_the_lease };
  Task<Result<Ended>> look(Look when);

  // Somebody has taken the request over while the turn was waited for.
  struct ClaimLost {};
  using Acquired = std::variant<Lease, LeaseHeld, NoTurn, ClaimLost>;
  Task<Result<Acquired>> acquire_in_turn();
  Task<bool> is_still_held();
  // What to do about that. Empty: it has waited, and may try again.
  Task<std::optional<Result<RegenerateOutcome>>> wait_for_holder(int attempt);

  // What became of a render under the lease.
  struct Interrupted {
    Error why;
  };
  using Render = std::variant<Result<Rendered>, Interrupted, LeaseLost>;

  Task<Result<RegenerateOutcome>> render_and_publish(Lease lease);
  Task<Result<void>> remove_if_purged();
  Task<Render> render_under(Lease lease);
  void give_turn_back(const std::optional<Render>& rendered);

  void tell(RegenerateEvent event) const {
    if (options_.observe) options_.observe(event);
  }
  bool may_wait() const {
    return isr_.clock.monotonic() < deadline_ && !options_.interrupted.stop_requested();
  }

  const Isr& isr_;
  Page page_;
  Renderer renderer_;
  const RegenerateOptions options_;
  const Duration deadline_;

  PageView seen_;
  ClaimedRequest request_;
  std::optional<LeaseHeld> held_;  // The lease was last found so.
  std::shared_ptr<void> turn_;     // Once it is rendered this is its place among those that are stored.
};

Task<Result<RegenerateOutcome>> Regeneration::run() {
  for (int attempt = 0;; ++attempt) {
    const bool waits_on = held_ && co_await is_still_held();
    if (waits_on) {
      auto ended = co_await wait_for_holder(attempt);
      if (ended) co_return *std::move(ended);
      continue;
    }
    Result<Ended> fresh = Ended();
    if (attempt > 0 || !options_.just_looked || options_.request_id) fresh = co_await look(Look::at_first);
    if (!fresh && fresh.error().code == ErrorCode::unavailable && attempt > 0 && may_wait()) {
      co_await pause(isr_, attempt);
      continue;
    }
    if (!fresh) {
      co_await request_.hand_back(to_string(fresh.error()));
      co_return std::move(fresh).error();
    }
    if (*fresh) co_return co_await request_.attach(**std::move(fresh), "somebody else regenerated the page");

    if (request_.is_to_be_claimed()) {
      auto ended = co_await request_.claim_record();
      if (!ended) co_return std::move(ended).error();
      const bool busy = *ended && std::holds_alternative<RequestInProgress>(**ended);
      if (busy) tell(RegenerateEvent::request_in_progress);
      if (*ended && !(busy && may_wait())) co_return **std::move(ended);
      if (*ended) {
        co_await pause(isr_, attempt);
        continue;
      }
    }
    auto acquired = co_await acquire_in_turn();
    if (!acquired) {
      co_await request_.hand_back(to_string(acquired.error()));
      co_return std::move(acquired).error();
    }
    if (auto* lease = std::get_if<Lease>(&*acquired)) {
      co_return co_await render_and_publish(std::move(*lease));
    }
    if (std::holds_alternative<ClaimLost>(*acquired)) continue;
    if (std::holds_alternative<NoTurn>(*acquired)) {
      co_await request_.hand_back("its turn to be rendered did not come");
      co_return NoTurn{};
    }
    held_ = std::get<LeaseHeld>(*std::move(acquired));
    auto ended = co_await wait_for_holder(attempt);
    if (ended) co_return *std::move(ended);
  }
}

// Looks at it without trying to take it: of a thousand nodes that wait for one, each pays for reading two rows and not
// for a write. Whoever publishes deletes LOCK, or leaves a META that is fresh by itself.
Task<bool> Regeneration::is_still_held() {
  if (options_.request_id) co_return false;  // Its claim would not be extended meanwhile.
  std::vector<Key> rows{lock_key(page_.pk), meta_key(page_.pk)};
  auto read = co_await isr_.table.get_all(std::move(rows), Consistency::strong);
  if (!read) co_return false;
  auto lock = read_if((*read)[0], read_lock);
  auto meta = read_if((*read)[1], read_meta);
  if (!lock || !meta || !*lock || !(*lock)->held_at(isr_.now())) co_return false;
  if (judge(*meta, isr_.now()).state == PageState::fresh) co_return false;
  held_ = LeaseHeld{*(*lock)->lease_expires_at, **std::move(lock)};
  co_return true;
}

Task<std::optional<Result<RegenerateOutcome>>> Regeneration::wait_for_holder(int attempt) {
  if (options_.fail_in_backoff && held_->lock.is_backoff()) {
    Error error{ErrorCode::unavailable, held_->lock.last_error.value_or("the last render failed")};
    co_await request_.hand_back(error.message);
    co_return RenderFailed{std::move(error), held_->until, true};
  }
  tell(RegenerateEvent::lease_held);
  if (!may_wait()) co_return co_await request_.attach(*held_, "somebody else holds the lease");
  co_await pause(isr_, attempt);
  co_return std::nullopt;
}

// Waits for the turn, where there are turns, and tries to take the lease in it.
Task<Result<Regeneration::Acquired>> Regeneration::acquire_in_turn() {
  if (options_.turn) {
    turn_ = co_await options_.turn();
    if (!turn_) co_return Acquired(NoTurn{});
  }
  const bool ours = co_await request_.extend_while_waiting();
  if (!ours) {
    turn_.reset();  // Before the next one is waited for, which might be this.
    co_return Acquired(ClaimLost{});
  }
  auto acquired = co_await acquire(isr_, page_, options_.lease, options_.owner);
  if (!acquired) co_return std::move(acquired).error();
  if (auto* lease = std::get_if<Lease>(&*acquired)) co_return Acquired(std::move(*lease));
  turn_.reset();
  co_return Acquired(std::get<LeaseHeld>(*std::move(acquired)));
}

// Ends the matter when the page is fresh and its body is there.
Task<Result<Regeneration::Ended>> Regeneration::look(Look when) {
  Result<PageView> seen = Error{};
  std::vector<std::string> likely = options_.likely_tags;
  if (seen_.meta) likely = seen_.meta->tags;
  if (when == Look::at_first) {
    if (likely.empty()) likely = options_.tags;
    seen = co_await view(isr_, page_, Consistency::strong, std::move(likely), options_.tags);
  } else {
    seen = co_await view_before_render(isr_, page_, options_.tags, std::move(likely));
  }
  if (!seen) co_return std::move(seen).error();
  seen_ = *std::move(seen);
  if (page_.cache_key.empty()) page_.cache_key = seen_.page.cache_key;
  if (seen_.freshness.state != PageState::fresh) co_return Ended();
  const bool rejected = options_.even_if_fresh || seen_.meta == options_.rejected;
  if (rejected && !seen_.meta->pinned) co_return Ended();
  // Nothing can be published over a pin, so nothing is rendered.
  if (options_.even_if_fresh && seen_.meta->pinned) {
    co_return Ended(PublishRefused{PublishRefused::Reason::pinned, seen_.meta});
  }
  auto body = co_await isr_.bodies.read(seen_.meta->s3_key);
  if (!body && body.error().code != ErrorCode::corrupt) co_return std::move(body).error();
  if (!body || !*body) {
    log(LogLevel::warning, "the body " + seen_.meta->s3_key + " of " + to_string(page_) +
                               " is gone or damaged; rendering it anew");
    co_return Ended();
  }
  co_return Ended(AlreadyFresh{*seen_.meta});
}

Task<Result<RegenerateOutcome>> Regeneration::render_and_publish(Lease lease) {
  // Somebody may have been quicker between the first look and the lease. What is marked from here on, the render may
  // have missed.
  auto fresh = co_await look(Look::under_the_lease);
  // One that is given back is free before its time; and whoever was quicker has taken it over, not we.
  const bool expired = held_ && !held_->lock.is_backoff() && held_->until <= lease.acquired_at;
  const bool taken_over = expired && fresh && !*fresh;
  tell(taken_over ? RegenerateEvent::lease_taken_over : RegenerateEvent::lease_acquired);
  if (fresh && *fresh) {
    [[maybe_unused]] auto released = co_await release(isr_, lease);
    co_return co_await request_.attach(**std::move(fresh), "somebody else regenerated the page");
  }
  Result<void> ready;
  if (!fresh) {
    ready = std::move(fresh).error();
  } else {
    ready = co_await remove_if_purged();
  }
  if (!ready) {
    [[maybe_unused]] auto released = co_await release(isr_, lease);
    co_await request_.hand_back(to_string(ready.error()));
    co_return std::move(ready).error();
  }
  Conclusion conclusion(isr_, lease, seen_, options_.publish, request_);
  if (auto refused = certain_refusal(isr_, lease, options_.publish, seen_.meta)) {
    co_return co_await conclusion.refuse(*std::move(refused));
  }

  Render render = co_await render_under(lease);
  if (auto* gone = std::get_if<LeaseLost>(&render)) {
    co_return co_await request_.attach(std::move(*gone), "the lease was lost while the page was rendered");
  }
  if (auto* interrupted = std::get_if<Interrupted>(&render)) {
    [[maybe_unused]] auto released = co_await release(isr_, lease);
    co_await request_.hand_back(interrupted->why.message);
    co_return RenderFailed{std::move(interrupted->why)};
  }
  co_return co_await conclusion.conclude(std::get<Result<Rendered>>(std::move(render)));
}

// A pin cannot be published over, and a page that claims to be from the future would be back when that has come, if
// this render fails: where such a page was purged, its META goes before the render.
Task<Result<void>> Regeneration::remove_if_purged() {
  const bool ahead =
      seen_.meta && seen_.meta->newest_generation() > isr_.now() + isr_.settings.clock_skew.count();
  const bool stays = !seen_.meta || (!seen_.meta->pinned && !ahead);
  if (stays || seen_.freshness.state != PageState::missing) co_return Result<void>();
  auto removed = co_await remove_purged(isr_, page_, *seen_.meta);
  if (!removed) co_return std::move(removed).error();
  if (*removed) seen_.meta.reset();  // Or it is another by now, which whoever withdraws it must look at.
  co_return Result<void>();
}

Task<Regeneration::Render> Regeneration::render_under(Lease lease) {
  std::stop_source lost;
  std::optional<Render> rendered;
  const auto render = [&]() -> Task<void> {
    try {
      RenderContext context{page_, lease, seen_.meta, lost.get_token()};
      rendered.emplace(co_await renderer_(std::move(context)));
    } catch (const boost::system::system_error& error) {
      if (error.code() != boost::asio::error::operation_aborted) {
        rendered.emplace(Result<Rendered>(Error{ErrorCode::internal, error.what()}));
      } else {
        rendered.emplace(Interrupted{Error{ErrorCode::unavailable, "the render was interrupted"}});
      }
    } catch (const std::exception& error) {
      rendered.emplace(Result<Rendered>(Error{ErrorCode::internal, error.what()}));
    }
  };
  const auto refreshed = [this](Lease kept) -> Task<void> { co_await request_.extend_by(kept.length); };
  Task<void> work = render();
  std::function<Task<void>(Lease)> after_refresh = refreshed;
  const bool kept = co_await refresh_while(isr_, lease, std::move(work), lost, std::move(after_refresh));
  give_turn_back(rendered);
  if (kept) co_return *std::move(rendered);
  auto lock = co_await get_lock(isr_, page_);
  co_return LeaseLost{lock ? *std::move(lock) : std::nullopt};
}

// Others may render while this page is stored, as long as there is room for what waits.
void Regeneration::give_turn_back(const std::optional<Render>& rendered) {
  if (!turn_ || !options_.storing) return;
  const auto* made = rendered ? std::get_if<Result<Rendered>>(&*rendered) : nullptr;
  const bool is_page = made != nullptr && *made && (*made)->as == RenderedAs::page;
  if (auto place = options_.storing(is_page ? (*made)->body.bytes.size() : 0)) turn_ = std::move(place);
}

}  // namespace

Task<Result<RegenerateOutcome>> regenerate(const Isr& isr, Page page, Renderer renderer,
                                           RegenerateOptions options) {
  Regeneration regeneration(isr, std::move(page), std::move(renderer), std::move(options));
  co_return co_await regeneration.run();
}

}  // namespace facetheory
