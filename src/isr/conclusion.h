// Conclusion: what becomes of page, lease and request at the end of a regeneration, by what the render came to. A page
// is published; a failure makes everybody back off; what is for one alone takes the place of the page that stood there,
// which is withdrawn. All of it happens under the lease, which is given back.
#pragma once

#include <string>
#include <utility>

#include "facetheory/isr/claimed_request.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/regenerate_outcome.h"

namespace facetheory {

class Conclusion {
 public:
  // `seen`: the page as it was found under the lease. It, Isr and request outlive the conclusion.
  Conclusion(const Isr& isr, Lease lease, const PageView& seen, PublishOptions options,
             ClaimedRequest& request)
      : isr_(isr), lease_(std::move(lease)), seen_(seen), options_(std::move(options)), request_(request) {}

  Task<Result<RegenerateOutcome>> conclude(Result<Rendered> rendered);
  // The guards of the publish do not hold: the lease is given back, and nobody backs off.
  Task<Result<RegenerateOutcome>> refuse(PublishRefused refused);

 private:
  Task<Result<RegenerateOutcome>> publish_page(Rendered page);
  Task<Result<RegenerateOutcome>> give_up(Error error);
  Task<Result<RegenerateOutcome>> not_stored();
  Task<Result<RegenerateOutcome>> called_stale();

  const Isr& isr_;
  const Lease lease_;
  const PageView& seen_;
  PublishOptions options_;
  ClaimedRequest& request_;
};

}  // namespace facetheory
