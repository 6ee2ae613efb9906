// What a regeneration came to: one value, whose alternatives are all expected. What could not be done, or of which
// nobody can tell whether it was, is an Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "facetheory/base/result.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/requests.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

struct AlreadyFresh {
  MetaRow meta;
};
struct Regenerated {
  Published published;
};
// The request was done before, or by whoever held the lease; this was its result.
struct Replayed {
  std::string result_s3_key;
};
struct RenderFailed {
  Error error;
  std::int64_t retry_at = 0;  // Nobody tries before; 0: at once.
  bool in_backoff = false;    // It was not tried: somebody's render had failed before (fail_in_backoff).
};
// The page is only for whoever asked for it (RenderedAs::transient).
struct NotStored {
  bool withdrawn = false;   // A page stood there, and does not any more.
  bool lease_lost = false;  // A page that stood there is left to whoever took the lease away.
};
// Whoever renders the page calls it stale (RenderedAs::called_stale). What stood there stays.
struct CalledStale {};
// Nothing was begun: its turn did not come (RegenerateOptions::turn).
struct NoTurn {};
using RegenerateOutcome =
    std::variant<AlreadyFresh, Regenerated, Replayed, LeaseHeld, RequestInProgress, RequestMismatch,
                 RequestFailed, RenderFailed, LeaseLost, PublishRefused, NotStored, CalledStale, NoTurn>;
// "published", "already_fresh", "not_stored", "failed", "in_backoff", "lease_held", ...
std::string_view name(const RegenerateOutcome& outcome);

}  // namespace facetheory
