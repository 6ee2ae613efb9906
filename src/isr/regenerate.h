// Regeneration, all of it in the safe order: look at META; claim the request record; acquire the lease; look
// again; render while the lease is refreshed; store the body; publish, complete the record and give the lease back in
// one transaction.
//
// Each step is also a function of its own (lease.h, publish.h, requests.h).
#pragma once

#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/regenerate_options.h"
#include "facetheory/isr/regenerate_outcome.h"

namespace facetheory {

Task<Result<RegenerateOutcome>> regenerate(const Isr& isr, Page page, Renderer renderer,
                                           RegenerateOptions options);

}  // namespace facetheory
