// Reading pages: the pointer, its verdict, the body; and listing all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/bodies/body.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"

namespace facetheory {

Task<Result<std::optional<MetaRow>>> get_meta(const Isr& isr, Page page, Consistency consistency);

struct PageView {
  Page page;
  std::optional<MetaRow> meta;
  Freshness freshness;                    // As META and the marks of its tags and tenant have it.
  std::vector<SeenMark> seen_marks = {};  // Only view_before_render fills them in.
};

// Where `likely` names all tags of the page, this is one round trip; otherwise it is two. `tags`: those that the page
// has where a writer that knows none has replaced META (restore_tags).
Task<Result<PageView>> view(const Isr& isr, Page page, Consistency consistency,
                            std::vector<std::string> likely = {}, std::vector<std::string> tags = {});

// Consistently, with all marks that the next render is to be judged by: of the tenant, of the tags that the page has
// and of those that it will get, as far as the caller knows. `likely` as above; it need not repeat the tags.
Task<Result<PageView>> view_before_render(const Isr& isr, Page page, std::vector<std::string> tags,
                                          std::vector<std::string> likely = {});

// The current body. Empty: the page is missing (no META, or purged). `corrupt`: META points at a body that is gone or
// damaged; regenerating the page heals it.
Task<Result<std::optional<Body>>> read_body(const Isr& isr, PageView view);

// Calls `each` for every page of the table, in an order of the table's own, until it returns false. Rows that cannot be
// understood are told to `bad` (may be empty) and skipped. `tags_of` (may be empty): as `tags` above.
Task<Result<void>> for_each_page(const Isr& isr, std::function<bool(PageView)> each,
                                 std::function<void(const Item&, const Error&)> bad = {},
                                 std::function<std::vector<std::string>(const Page&)> tags_of = {});

}  // namespace facetheory
