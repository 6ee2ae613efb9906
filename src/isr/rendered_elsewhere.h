// Pages that somebody else renders and publishes, under a lease of his own: an origin that does ISR itself, in the same
// table.
//
// A lease taken here would keep him from rendering: he would wait for it and answer with his stale page. So none is
// taken and nothing is published here. He is asked for the page, and the table is asked what came of it.
#pragma once

#include "facetheory/isr/regenerate.h"

namespace facetheory {

// The renderer asks him; what it yields is only for whoever asked for it. Its context has no lease (an empty token) and
// no previous page. Where a mark has made the page stale, its META is closed first, since he may know no marks.
//
// AlreadyFresh: he has published it, or it was fresh before. NotStored, CalledStale: he answered, and META is what it
// was. RenderFailed: he did not, or failed; nobody backs off. NoTurn. Of the options `tags`, `rejected` and `turn`
// count.
Task<Result<RegenerateOutcome>> have_rendered_elsewhere(const Isr& isr, Page page, Renderer renderer,
                                                        RegenerateOptions options);

}  // namespace facetheory
