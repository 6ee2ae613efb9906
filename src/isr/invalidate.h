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

// Of whoever changes a page that it has judged: META is that very row, and not pinned.
Condition still(const MetaRow& meta);

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

// Tells readers who know only META that a mark has made the page stale: closes its window, if META is still the
// one that was judged; otherwise it is false. Never touches LOCK.
Task<Result<bool>> close_window(const Isr& isr, Page page, MetaRow judged);

// Of a page that claims to be from the future every mark counts, but only until that time has come: then it would be
// fresh again. So whoever meets one that a mark has made stale or missing closes its window, or removes META, if META
// is still the one that was judged. True: it was written. Of any other page nothing is. An error is not told: whoever
// comes next tries again.
Task<bool> keep_verdict(const Isr& isr, Page page, MetaRow judged, Freshness verdict);

// A pin does not outlive the purge of a tag or of the tenant, but nothing could be published over it; and a page whose
// time has not come yet would outlive the purge. Removes such a META, as purging the page itself does, if it is still
// the one that was judged; otherwise it is false. Never touches LOCK.
Task<Result<bool>> remove_purged(const Isr& isr, Page page, MetaRow judged);

struct Withdrawn {
  bool had_page = false;
};
using WithdrawOutcome = std::variant<Withdrawn, LeaseLost>;

// Under the lease, which is given back by the same transaction: removes META, unless it is of a newer generation than
// `replaced`, the one that the holder of the lease found. Kept versions stay.
Task<Result<WithdrawOutcome>> withdraw(const Isr& isr, Lease lease, MetaRow replaced);

}  // namespace facetheory
