// Writing a verdict down: what somebody has found out about a page by judging it, so that whoever knows only META, or
// comes later, learns of it.
//
// META changes only if it is still the one that was judged: a render may have replaced it meanwhile. LOCK is never
// touched. What invalidates a page, a tag or a tenant is invalidate.h.
#pragma once

#include "facetheory/isr/freshness.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"

namespace facetheory {

// The condition of whoever changes a page that it has judged: META is that very row, and not pinned.
Condition still(const MetaRow& meta);

// What closes the window of a META: zero is stale for every reader and passes every monotonic guard; the truth moves
// aside. A time that has not come is none: as it stands, a purge that comes later might lie before it.
Changes closing(const Isr& isr, const MetaRow& meta);

// Tells readers who know only META that a mark has made the page stale: closes its window, if META is still the
// one that was judged; otherwise it is false.
Task<Result<bool>> close_window(const Isr& isr, Page page, MetaRow judged);

// Every mark counts for a page that claims to be from the future, but only until that time has come: then it would be
// fresh again. So whoever meets one that a mark has made stale or missing closes its window, or removes META, if META
// is still the one that was judged. True: it was written. Nothing is written of any other page, nor where the mark
// counts when that time has come, too: META may name tags that the next render has to look for. An error is not told:
// whoever comes next tries again.
Task<bool> record_verdict(const Isr& isr, Page page, MetaRow judged, Freshness verdict);

// A pin does not outlive the purge of a tag or of the tenant, but nothing could be published over it; and a page whose
// time has not come yet would outlive the purge. Removes such a META, as purging the page itself does, if it is still
// the one that was judged; otherwise it is false.
Task<Result<bool>> remove_purged(const Isr& isr, Page page, MetaRow judged);

}  // namespace facetheory
