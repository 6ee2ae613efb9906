// Closing pages one by one, for readers who know only META. A tag or a tenant is invalidated by one write, and whoever
// reads the marks sees it at once; writers and readers in other languages do not. This walk goes over the pages that a
// mark concerns and does to each what `invalidate` or `purge` of that page would do: its window is closed, or META is
// removed.
//
// It reads the whole table, since no row says which pages have a tag. It can be stopped at any time and go on later.
// What was rendered since the mark is left alone, and every write is conditional on the META that was judged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "facetheory/isr/invalidate.h"
#include "facetheory/isr/isr.h"

namespace facetheory {

struct ClosePagesOptions {
  std::string tenant = {};  // Whose pages they are; empty: nobody's.
  std::string tag = {};     // Only pages that META gives this tag; empty: all.
  // Counts, and writes nothing. With `as_if`, judged as if the mark had just been set.
  bool dry_run = false;
  std::optional<MarkKind> as_if = {};
  std::optional<std::uint64_t> limit = {};  // Stops after that many pages were seen.
  std::optional<std::uint64_t> rate = {};   // Closes or removes at most that many in a second.
  std::optional<std::string> after = {};    // `next` of the walk before.
  std::stop_token interrupted = {};
  // The tags of a page whose META another writer has replaced, as its route gives them; the page has the cache key
  // that META names. Null, or without an answer: nobody can tell whether the page has the tag.
  std::function<std::optional<std::vector<std::string>>(const Page&)> tags_by_route = {};
};

struct ClosePagesReport {
  std::uint64_t seen = 0;            // Pages of that tenant with that tag. Each is one of the next five.
  std::uint64_t closed = 0;          // Its window, now.
  std::uint64_t removed = 0;         // After a purge.
  std::uint64_t already_closed = 0;  // Stale to all readers before.
  std::uint64_t pinned = 0;          // Left alone: invalidating does not unpin.
  std::uint64_t current = 0;         // Left alone: rendered since the mark.
  std::uint64_t cancelled = 0;       // Renders that began before the mark, and cannot publish any more.
  std::uint64_t unreadable = 0;      // Rows that cannot be understood, logged.
  // Pages of the tenant of which nobody can tell whether they have the tag: left alone, and none of those above.
  std::uint64_t untold = 0;
  std::uint64_t rows = 0;                // So many were read, of whatever kind.
  bool complete = false;                 // All pages of the table were judged.
  std::optional<std::string> next = {};  // Otherwise: where to go on; empty: at the beginning.
  std::optional<Error> stopped_by = {};  // The error that has stopped it, if one has.
};

// `progress` (may be empty) is told the report so far, now and then.
Task<ClosePagesReport> close_pages(const Isr& isr, ClosePagesOptions options,
                                   std::function<void(const ClosePagesReport&)> progress = {});

}  // namespace facetheory
