// ClaimedRequest: the request record of one regeneration, from the claim to what the request came to. A regeneration
// without an id has none; then there is nothing to claim, to extend or to hand back.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/regenerate_options.h"
#include "facetheory/isr/regenerate_outcome.h"
#include "facetheory/isr/requests.h"

namespace facetheory {

class ClaimedRequest {
 public:
  // What these refer to outlives it.
  ClaimedRequest(const Isr& isr, const Page& page, const RegenerateOptions& options)
      : isr_(isr), page_(page), options_(options) {}

  // Whether there is an id whose record is not ours.
  bool is_to_be_claimed() const { return options_.request_id && !claim_; }
  // What completes it when the page is published; empty: there is no claim.
  std::optional<RequestToComplete> to_complete() const;

  // Claims the record. Empty: it is ours. Otherwise why it is not: the request was done before, is in progress
  // elsewhere, was made with other inputs, or has failed for good.
  Task<Result<std::optional<RegenerateOutcome>>> claim_record();
  // Extends the claim while the page is waited for. It is to be called now and then, since the claim would end
  // otherwise. False: somebody has taken the request over, and it is to be claimed again.
  Task<bool> extend_while_waiting();
  // Does the same while the page is rendered: the claim lasts as long as the lease that was just refreshed.
  Task<void> extend_by(std::chrono::seconds length);

  // Somebody else had the page. Where the render that is current began after our request, it is our request's result,
  // too; otherwise the request is handed back for that reason. `otherwise` is what the regeneration came to.
  Task<Result<RegenerateOutcome>> attach(RegenerateOutcome otherwise, std::string why);
  // Whoever comes next may claim it anew. `why` is for people.
  Task<void> hand_back(std::string why);

 private:
  // Constant after construction.
  const Isr& isr_;
  const Page& page_;
  const RegenerateOptions& options_;

  std::optional<RequestClaim> claim_;
  std::int64_t claimed_until_ = 0;  // In seconds since 1970.
};

}  // namespace facetheory
