// Invalidation: what was rendered before it is not fresh after it, whoever rendered it, in whatever language.
//
// Invalidating a page closes its window and deletes its LOCK in one transaction, so that a render in flight cannot
// publish. Invalidating a tag or a tenant is one write, however many pages carry it; each page is judged against
// its marks when it is read (freshness.h). A purge means that not even a stale page may be served.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "facetheory/isr/freshness.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/page.h"

namespace facetheory {

struct Invalidated {
  bool had_page = false;   // There was a META row.
  bool had_lease = false;  // A lease or a backoff was there and is gone; its render cannot publish.
};
struct InvalidationPinned {};  // The page is pinned; unpin it first, or purge.
using InvalidateOutcome = std::variant<Invalidated, InvalidationPinned>;

Task<Result<InvalidateOutcome>> invalidate(const Isr& isr, Page page);

// Removes the pointer; kept versions stay for a rollback.
Task<Result<Invalidated>> purge(const Isr& isr, Page page);

enum class MarkKind { invalidate, purge };

// One write. Pages whose renders have looked at the row before it are no longer current, whatever anybody's clock
// shows; for all others it carries the time, with an allowance for clocks. The row as it stands afterwards. The empty
// tag is the tenant as a whole; the empty tenant, the pages of none.
Task<Result<TagRow>> mark_tag(const Isr& isr, std::string tenant, std::string tag, MarkKind kind);

// The row as a mark that is set now would leave it.
TagRow marked_now(const Isr& isr, TagRow row, MarkKind kind);

struct Withdrawn {
  bool had_page = false;
};
using WithdrawOutcome = std::variant<Withdrawn, LeaseLost>;

// Removes META under the lease, which is given back by the same transaction; but not a META of a newer generation than
// `replaced`, which the holder of the lease found. Kept versions stay.
Task<Result<WithdrawOutcome>> withdraw(const Isr& isr, Lease lease, MetaRow replaced);

}  // namespace facetheory
