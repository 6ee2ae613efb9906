// Whether a page may be served: pure functions of its rows and the time.
//
// A page is fresh iff now < generated_at + revalidate_seconds and no mark (a tag of the page, or its tenant as a
// whole) was set since its render began. `ttl` never decides anything.
//
// Whether a mark was set since, no clock decides: META has what the render found of the tag's row before it began, and
// each mark raises a count in that row. The render's time is compared only where META does not say: of a tag that
// nobody knew before the render, and where a writer that knows no tags has replaced META. A time that has not come yet,
// beyond what clocks may differ by, says nothing: then every mark counts. Once it has come, nobody can tell any more
// that it was a lie; so whoever meets such a page while it still is one writes the verdict down (record_verdict in
// verdict.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

enum class PageState {
  fresh,    // Serve it.
  stale,    // There is a page, but its window has ended or was closed.
  missing,  // There is nothing that may be served.
};
std::string_view name(PageState state);

struct Freshness {
  PageState state = PageState::missing;
  std::string reason;  // People read it: "fresh for 42 s", "its window ended 3 s ago".
  // It is stale since somebody said so, whether or not its window has ended as well.
  bool invalidated = false;
  // A mark has decided, and would not if the time that the page claims had come.
  bool while_ahead = false;
};

// A tag's row together with the tag's name; the empty name is the tenant as a whole.
struct Mark {
  std::string tag;
  TagRow row;

  friend bool operator==(const Mark&, const Mark&) = default;
};

// Whether the page says that its render began at a time that has not come by any clock.
bool claims_the_future(const MetaRow& meta, std::int64_t now, std::chrono::seconds clock_skew);

Freshness judge(const std::optional<MetaRow>& meta, const std::vector<Mark>& marks, std::int64_t now,
                std::chrono::seconds clock_skew = IsrSettings{}.clock_skew);

// Judges by the META row alone.
inline Freshness judge(const std::optional<MetaRow>& meta, std::int64_t now) {
  return judge(meta, {}, now);
}

}  // namespace facetheory
