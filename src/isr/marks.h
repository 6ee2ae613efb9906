// Marks: what was said of a tag or of a tenant as a whole, by an invalidation or a purge (mark_tag in invalidate.h).
// Together with META they decide what becomes of a page (freshness.h). Here they are read, for one page in one round
// trip as a rule, and what a render has seen of them is written down.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// The marks that concern a page with these tags: its tenant's and each tag's, where there is one.
Task<Result<std::vector<Mark>>> marks_of(const Isr& isr, Page page, std::vector<std::string> tags,
                                         Consistency consistency);

// The marks of these tags alone, each once, where there is one; the empty tag is the tenant as a whole. One round trip.
Task<Result<std::vector<Mark>>> marks_of_tags(const Isr& isr, std::string tenant,
                                              std::vector<std::string> tags, Consistency consistency);

// META, and the marks of the tenant, of the tags that META names and of those that are `likely`. One round trip, unless
// META names tags that are not likely.
struct DecidingRows {
  std::optional<MetaRow> meta;
  std::vector<Mark> marks;
};
Task<Result<DecidingRows>> read_deciding_rows(const Isr& isr, Page page, std::vector<std::string> likely,
                                              Consistency consistency);

// A writer that knows no tags has replaced META and dropped them: the page has those that whoever serves it gives it,
// as its route has them. A META of ours says itself what tags the page has.
void restore_tags(std::optional<MetaRow>& meta, const std::vector<std::string>& tags);

// Leaves the marks of its tenant and of its own tags: what is said of others does not concern the page.
std::vector<Mark> own_marks(const MetaRow& meta, std::vector<Mark> marks);

// What META shall say of marks that were just read, for these tags and the tenant; consistently, before a render
// begins.
std::vector<SeenMark> seen(const std::vector<Mark>& marks, std::vector<std::string> tags);

// The rows that decide what becomes of a page with these tags: META, and those of its marks, whether they are there or
// not.
std::vector<Key> deciding_rows(const Page& page, const std::vector<std::string>& tags);

}  // namespace facetheory
