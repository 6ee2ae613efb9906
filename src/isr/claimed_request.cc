#include "facetheory/isr/claimed_request.h"

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/log.h"
#include "facetheory/isr/pages.h"

namespace facetheory {

std::optional<RequestToComplete> ClaimedRequest::to_complete() const {
  if (!claim_) return std::nullopt;
  return RequestToComplete{claim_->id, claim_->owner_token};
}

Task<Result<std::optional<RegenerateOutcome>>> ClaimedRequest::claim_record() {
  using Ended = std::optional<RegenerateOutcome>;
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
    co_return Ended();
  }
  if (auto* completed = std::get_if<RequestCompleted>(&*outcome)) {
    co_return Ended(Replayed{completed->row.result_s3_key.value_or("")});
  }
  if (auto* busy = std::get_if<RequestInProgress>(&*outcome)) co_return Ended(std::move(*busy));
  if (auto* other = std::get_if<RequestMismatch>(&*outcome)) co_return Ended(std::move(*other));
  co_return Ended(std::get<RequestFailed>(*std::move(outcome)));
}

Task<bool> ClaimedRequest::extend_while_waiting() {
  if (!claim_ || isr_.now() + options_.lease.count() / 2 < claimed_until_) co_return true;
  RequestClaim ours = *claim_;
  auto extended = co_await extend(isr_, std::move(ours), options_.lease);
  if (!extended) co_return true;  // Whether it is ours still, the publish will see.
  if (const auto* changed = std::get_if<RequestChanged>(&*extended)) {
    claimed_until_ = changed->row.in_progress_expires_at.value_or(0);
    co_return true;
  }
  claim_.reset();
  co_return false;
}

Task<void> ClaimedRequest::extend_by(std::chrono::seconds length) {
  if (!claim_) co_return;
  RequestClaim ours = *claim_;
  [[maybe_unused]] auto extended = co_await extend(isr_, std::move(ours), length);
}

Task<Result<RegenerateOutcome>> ClaimedRequest::attach(RegenerateOutcome otherwise, std::string why) {
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

Task<void> ClaimedRequest::hand_back(std::string why) {
  if (!claim_) co_return;
  RequestClaim ours = *claim_;
  auto failed = co_await fail(isr_, std::move(ours), std::move(why));
  if (!failed) {
    log(LogLevel::warning, "the request " + claim_->id + " of " + to_string(page_) +
                               " stays in progress until its time is over: " + to_string(failed.error()));
  }
}

}  // namespace facetheory
