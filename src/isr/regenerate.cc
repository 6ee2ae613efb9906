#include "facetheory/isr/regenerate.h"

#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/base/log.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/isr/repeat.h"
#include "facetheory/isr/verdict.h"

namespace facetheory {
namespace {

// What the answer of a render that failed says of itself.
Error failure_of(const Rendered& answer) {
  const int status = answer.body.metadata.status;
  const bool told = status < 400 && !answer.why_not_stored.empty();
  return {ErrorCode::unavailable,
          told ? answer.why_not_stored : "the page came with status " + std::to_string(status)};
}

// One regeneration, from the first look to the outcome.
class Regeneration {
 public:
  Regeneration(const Isr& isr, Page page, Renderer renderer, RegenerateOptions options)
      : isr_(isr),
        page_(std::move(page)),
        renderer_(std::move(renderer)),
        options_(std::move(options)),
        deadline_(isr.clock.monotonic() + options_.wait) {}

  Task<Result<RegenerateOutcome>> run();

 private:
  using Ended = std::optional<RegenerateOutcome>;

  enum class Look { at_first, under_the_lease };
  Task<Result<Ended>> look(Look when);
  Task<Result<Ended>> claim_request();
  Task<bool> extend_claim();

  // What became of a render under the lease.
  struct Interrupted {
    Error why;
  };
  using Render = std::variant<Result<Rendered>, Interrupted, LeaseLost>;

  Task<Result<RegenerateOutcome>> render_and_publish(Lease lease);
  Task<Result<void>> remove_if_purged();
  Task<Render> render_under(Lease lease);
  void give_turn_back(const std::optional<Render>& rendered);
  Task<Result<RegenerateOutcome>> conclude(Lease lease, Result<Rendered> rendered);
  Task<Result<RegenerateOutcome>> publish_page(Lease lease, Rendered page);
  Task<Result<RegenerateOutcome>> refuse(Lease lease, PublishRefused refused);
  Task<Result<RegenerateOutcome>> give_up(Lease lease, Error error);
  Task<Result<RegenerateOutcome>> not_stored(Lease lease);
  Task<Result<RegenerateOutcome>> called_stale(Lease lease);
  Task<Result<RegenerateOutcome>> attach(RegenerateOutcome otherwise, std::string why);
  Task<void> hand_back(std::string why);

  void tell(RegenerateEvent event) const {
    if (options_.observe) options_.observe(event);
  }
  bool may_wait() const {
    return isr_.clock.monotonic() < deadline_ && !options_.interrupted.stop_requested();
  }

  const Isr& isr_;
  Page page_;
  Renderer renderer_;
  RegenerateOptions options_;
  const Duration deadline_;

  PageView seen_;
  std::optional<RequestClaim> claim_;
  std::int64_t claimed_until_ = 0;
  std::optional<LeaseHeld> held_;  // The lease was last found so.
  std::shared_ptr<void> turn_;     // Once it is rendered this is its place among those that are stored.
};

Task<Result<RegenerateOutcome>> Regeneration::run() {
  for (int attempt = 0;; ++attempt) {
    Result<Ended> fresh = Ended();
    if (attempt > 0 || !options_.just_looked || options_.request_id) fresh = co_await look(Look::at_first);
    if (!fresh && fresh.error().code == ErrorCode::unavailable && attempt > 0 && may_wait()) {
      co_await pause(isr_, attempt);
      continue;
    }
    if (!fresh) {
      co_await hand_back(to_string(fresh.error()));
      co_return std::move(fresh).error();
    }
    if (*fresh) co_return co_await attach(**std::move(fresh), "somebody else regenerated the page");

    if (options_.request_id && !claim_) {
      auto ended = co_await claim_request();
      if (!ended) co_return std::move(ended).error();
      const bool busy = *ended && std::holds_alternative<RequestInProgress>(**ended);
      if (busy) tell(RegenerateEvent::request_in_progress);
      if (*ended && !(busy && may_wait())) co_return **std::move(ended);
      if (*ended) {
        co_await pause(isr_, attempt);
        continue;
      }
    }
    if (options_.turn) {
      turn_ = co_await options_.turn();
      if (!turn_) {
        co_await hand_back("its turn to be rendered did not come");
        co_return NoTurn{};
      }
    }
    if (claim_) {
      const bool ours = co_await extend_claim();
      if (!ours) {
        turn_.reset();  // Before the next one is waited for, which might be this.
        continue;
      }
    }
    auto acquired = co_await acquire(isr_, page_, options_.lease, options_.owner);
    if (!acquired) {
      co_await hand_back(to_string(acquired.error()));
      co_return std::move(acquired).error();
    }
    if (auto* lease = std::get_if<Lease>(&*acquired)) {
      co_return co_await render_and_publish(std::move(*lease));
    }
    turn_.reset();
    held_ = std::get<LeaseHeld>(*std::move(acquired));
    if (options_.fail_in_backoff && held_->lock.is_backoff()) {
      Error error{ErrorCode::unavailable, held_->lock.last_error.value_or("the last render failed")};
      co_await hand_back(error.message);
      co_return RenderFailed{std::move(error), held_->until, true};
    }
    tell(RegenerateEvent::lease_held);
    if (!may_wait()) co_return co_await attach(*held_, "somebody else holds the lease");
    co_await pause(isr_, attempt);
  }
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

Task<Result<Regeneration::Ended>> Regeneration::claim_request() {
  std::map<std::string, std::string> inputs = options_.inputs;
  std::vector<std::string> others = options_.other_hashes;
  if (inputs.empty()) {
    const PublishPolicy policy{.history = options_.publish.history, .ttl = options_.publish.ttl};
    inputs = request_inputs(page_, policy);
    others = hashes_without_policy(page_, {});
  }
  // No longer than a lease, so that a crash holds the request up no longer than its page.
  auto outcome = co_await claim(isr_, page_, *options_.request_id, request_hash(inputs), options_.lease,
                                std::move(others));
  if (!outcome) co_return std::move(outcome).error();
  if (auto* ours = std::get_if<RequestClaim>(&*outcome)) {
    claim_ = std::move(*ours);
    claimed_until_ = claim_->row.in_progress_expires_at.value_or(0);
    options_.publish.request = RequestToComplete{claim_->id, claim_->owner_token};
    co_return Ended();
  }
  if (auto* completed = std::get_if<RequestCompleted>(&*outcome)) {
    co_return Ended(Replayed{completed->row.result_s3_key.value_or("")});
  }
  if (auto* busy = std::get_if<RequestInProgress>(&*outcome)) co_return Ended(std::move(*busy));
  if (auto* other = std::get_if<RequestMismatch>(&*outcome)) co_return Ended(std::move(*other));
  co_return Ended(std::get<RequestFailed>(*std::move(outcome)));
}

// The claim would end while we wait for our turn or for somebody else's render. False: somebody has taken the request
// over meanwhile.
Task<bool> Regeneration::extend_claim() {
  if (isr_.now() + options_.lease.count() / 2 < claimed_until_) co_return true;
  RequestClaim ours = *claim_;
  auto extended = co_await extend(isr_, std::move(ours), options_.lease);
  if (!extended) co_return true;  // Whether it is ours still, the publish will see.
  if (const auto* changed = std::get_if<RequestChanged>(&*extended)) {
    claimed_until_ = changed->row.in_progress_expires_at.value_or(0);
    co_return true;
  }
  claim_.reset();
  options_.publish.request.reset();
  co_return false;
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
    co_return co_await attach(**std::move(fresh), "somebody else regenerated the page");
  }
  Result<void> ready;
  if (!fresh) {
    ready = std::move(fresh).error();
  } else {
    ready = co_await remove_if_purged();
  }
  if (!ready) {
    [[maybe_unused]] auto released = co_await release(isr_, lease);
    co_await hand_back(to_string(ready.error()));
    co_return std::move(ready).error();
  }
  if (auto refused = certain_refusal(isr_, lease, options_.publish, seen_.meta)) {
    co_return co_await refuse(std::move(lease), *std::move(refused));
  }

  Render render = co_await render_under(lease);
  if (auto* gone = std::get_if<LeaseLost>(&render)) {
    co_return co_await attach(std::move(*gone), "the lease was lost while the page was rendered");
  }
  if (auto* interrupted = std::get_if<Interrupted>(&render)) {
    [[maybe_unused]] auto released = co_await release(isr_, lease);
    co_await hand_back(interrupted->why.message);
    co_return RenderFailed{std::move(interrupted->why)};
  }
  co_return co_await conclude(std::move(lease), std::get<Result<Rendered>>(std::move(render)));
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
  const auto refreshed = [this](Lease kept) -> Task<void> {
    if (!claim_) co_return;
    RequestClaim ours = *claim_;
    [[maybe_unused]] auto extended = co_await extend(isr_, std::move(ours), kept.length);
  };
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

Task<Result<RegenerateOutcome>> Regeneration::conclude(Lease lease, Result<Rendered> rendered) {
  if (!rendered) co_return co_await give_up(std::move(lease), std::move(rendered).error());
  if (rendered->as == RenderedAs::failed) {
    Error failure = failure_of(*rendered);
    co_return co_await give_up(std::move(lease), std::move(failure));
  }
  if (rendered->as == RenderedAs::called_stale) co_return co_await called_stale(std::move(lease));
  if (rendered->as == RenderedAs::transient) co_return co_await not_stored(std::move(lease));
  co_return co_await publish_page(std::move(lease), *std::move(rendered));
}

Task<Result<RegenerateOutcome>> Regeneration::publish_page(Lease lease, Rendered page) {
  options_.publish.seen_marks = seen_.seen_marks;
  auto outcome = co_await publish(isr_, lease, std::move(page), options_.publish);
  if (!outcome) {
    // `invalid` is the renderer's mistake; anything else may pass. After `ambiguous` LOCK says who is right.
    if (outcome.error().code == ErrorCode::invalid)
      co_return co_await give_up(std::move(lease), outcome.error());
    [[maybe_unused]] auto released = co_await release(isr_, lease);
    if (outcome.error().code != ErrorCode::ambiguous) co_await hand_back(to_string(outcome.error()));
    co_return std::move(outcome).error();
  }
  if (auto* published = std::get_if<Published>(&*outcome)) co_return Regenerated{std::move(*published)};
  if (auto* gone = std::get_if<LeaseLost>(&*outcome)) {
    co_return co_await attach(std::move(*gone), "the lease was lost before the page was published");
  }
  co_return co_await refuse(std::move(lease), std::get<PublishRefused>(*std::move(outcome)));
}

// The guards of the publish do not hold: the lease is given back, and nobody backs off.
Task<Result<RegenerateOutcome>> Regeneration::refuse(Lease lease, PublishRefused refused) {
  [[maybe_unused]] auto released = co_await release(isr_, std::move(lease));
  std::string why = "not published: " + std::string(name(refused.reason));
  RegenerateOutcome outcome = std::move(refused);
  co_return co_await attach(std::move(outcome), std::move(why));
}

// The render failed: everybody backs off.
Task<Result<RegenerateOutcome>> Regeneration::give_up(Lease lease, Error error) {
  RenderFailed failed{std::move(error)};
  const std::string why = to_string(failed.error);
  auto backed_off = co_await back_off(isr_, std::move(lease), why);
  if (backed_off) {
    if (const auto* until = std::get_if<BackedOff>(&*backed_off)) failed.retry_at = until->until;
  }
  co_await hand_back(why);
  co_return failed;
}

// What is no longer for everybody must not be served to anybody as stale either.
Task<Result<RegenerateOutcome>> Regeneration::not_stored(Lease lease) {
  const std::string why = "the page is only for whoever asked for it, and was not stored";
  NotStored outcome;
  if (seen_.meta) {
    auto withdrawn = co_await withdraw(isr_, lease, *seen_.meta);
    if (!withdrawn) {
      [[maybe_unused]] auto released = co_await release(isr_, lease);
      co_await hand_back(to_string(withdrawn.error()));
      co_return std::move(withdrawn).error();
    }
    // What was rendered is for whoever asked for it all the same.
    outcome.lease_lost = std::holds_alternative<LeaseLost>(*withdrawn);
    if (const auto* done = std::get_if<Withdrawn>(&*withdrawn)) outcome.withdrawn = done->had_page;
  } else {
    auto released = co_await release(isr_, lease);
    outcome.lease_lost = released && std::holds_alternative<LeaseLost>(*released);
  }
  if (outcome.lease_lost) co_return co_await attach(outcome, why);
  co_await hand_back(why);
  co_return outcome;
}

// Whoever renders the page has a stale one only: another may have a better one soon.
Task<Result<RegenerateOutcome>> Regeneration::called_stale(Lease lease) {
  [[maybe_unused]] auto released = co_await release(isr_, std::move(lease));
  co_await hand_back("whoever renders the page calls it stale");
  co_return CalledStale{};
}

// Somebody else had the page. Where the render that is current began after our request, it is our request's
// result too; otherwise the request is handed back.
Task<Result<RegenerateOutcome>> Regeneration::attach(RegenerateOutcome otherwise, std::string why) {
  if (!claim_) co_return otherwise;
  auto meta = co_await get_meta(isr_, page_, Consistency::strong);
  const std::int64_t after = claim_->started_at + isr_.settings.clock_skew.count();
  // A rollback dates its pin, not a render; and a time that has not come by any clock says nothing.
  const std::int64_t latest = isr_.now() + isr_.settings.clock_skew.count();
  if (meta && *meta && !(*meta)->pinned && (*meta)->generated_at > after && (*meta)->generated_at <= latest) {
    RequestClaim ours = *claim_;
    auto completed = co_await complete(isr_, std::move(ours), (*meta)->s3_key);
    if (!completed) co_return std::move(completed).error();
    if (std::holds_alternative<RequestChanged>(*completed)) {
      if (std::holds_alternative<AlreadyFresh>(otherwise)) co_return otherwise;
      co_return Replayed{(*meta)->s3_key};
    }
    co_return otherwise;
  }
  co_await hand_back(why);
  co_return otherwise;
}

Task<void> Regeneration::hand_back(std::string why) {
  if (!claim_) co_return;
  RequestClaim ours = *claim_;
  auto failed = co_await fail(isr_, std::move(ours), std::move(why));
  if (!failed) {
    log(LogLevel::warning, "the request " + claim_->id + " of " + to_string(page_) +
                               " stays in progress until its time is over: " + to_string(failed.error()));
  }
}

struct OutcomeName {
  std::string_view operator()(const AlreadyFresh&) const { return "already_fresh"; }
  std::string_view operator()(const Regenerated&) const { return "published"; }
  std::string_view operator()(const Replayed&) const { return "replayed"; }
  std::string_view operator()(const LeaseHeld&) const { return "lease_held"; }
  std::string_view operator()(const RequestInProgress&) const { return "request_in_progress"; }
  std::string_view operator()(const RequestMismatch&) const { return "request_mismatch"; }
  std::string_view operator()(const RequestFailed&) const { return "request_failed"; }
  std::string_view operator()(const RenderFailed& failed) const {
    return failed.in_backoff ? "in_backoff" : "failed";
  }
  std::string_view operator()(const LeaseLost&) const { return "lease_lost"; }
  std::string_view operator()(const PublishRefused&) const { return "refused"; }
  std::string_view operator()(const NotStored&) const { return "not_stored"; }
  std::string_view operator()(const CalledStale&) const { return "called_stale"; }
  std::string_view operator()(const NoTurn&) const { return "no_turn"; }
};

}  // namespace

std::string_view name(const RegenerateOutcome& outcome) {
  return std::visit(OutcomeName(), outcome);
}

Task<Result<RegenerateOutcome>> regenerate(const Isr& isr, Page page, Renderer renderer,
                                           RegenerateOptions options) {
  Regeneration regeneration(isr, std::move(page), std::move(renderer), std::move(options));
  co_return co_await regeneration.run();
}

}  // namespace facetheory
