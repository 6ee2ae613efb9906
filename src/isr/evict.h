// Eviction: pages go, those that are least wanted first, because there is no room for all.
//
// A page that went is missing, as after a purge: whoever asks for it has it rendered. It goes by one transaction, on
// condition that its META is the one that was judged and that nobody holds its lease; never while it is pinned, nor if
// its body is another writer's, which stays. Its kept versions go with it. Its bodies are not removed here: a reader
// may be about to read them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/partners.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

struct EvictOptions {
  std::size_t most = 100;  // Pages to evict.
  // How much a page is wanted here; the least wanted go first, of those the oldest. Empty: all alike.
  std::function<int(const MetaRow&)> warmth = {};
  // Pages that are wanted this much stay. Empty: none.
  std::optional<int> spared = {};
  // What table and bodies are to each other: a page whose bodies may not be deleted stays, since its eviction would
  // make no room.
  PartnerReport partners = {};
};

struct Evicted {
  std::uint64_t pages_seen = 0;
  std::uint64_t pages = 0;
  std::uint64_t rows = 0;
  std::uint64_t from_before = 0;         // Pages that stay since their bodies may be another table's.
  std::vector<std::string> bodies = {};  // Keys of those that nothing refers to any more; ours only.
  std::optional<Key> next = {};          // Where the next sample begins; empty: at the beginning.
};

// Takes the pages that follow `after` in the table's order, a few hundred, as a sample, and evicts up to half of them.
Task<Result<Evicted>> evict_some(const Isr& isr, std::optional<Key> after, EvictOptions options);

// One node of the fleet evicts at a time, or each of them would make the same room. Whoever wants to takes this lease
// first, for a few seconds, and refreshes or releases it (lease.h).
inline constexpr std::chrono::seconds kEvictionLease{10};
Task<Result<AcquireOutcome>> acquire_eviction(const Isr& isr, std::string owner);

// How many pages follow `after`, up to `next`: of those that a limit is about, which are ours and not pinned. Some
// hundred rows.
struct CountedSome {
  std::uint64_t pages = 0;
  std::uint64_t rows = 0;
  std::optional<Key> next = {};  // Empty: these were the last.
};
Task<Result<CountedSome>> count_some(const Isr& isr, std::optional<Key> after);

// What the node that evicts knows of their number, for the others.
struct NotedPages {
  std::uint64_t pages = 0;
  std::int64_t noted_at = 0;
};
Task<Result<void>> note_pages(const Isr& isr, std::uint64_t pages);
Task<Result<std::optional<NotedPages>>> noted_pages(const Isr& isr);  // Empty: nobody has noted any.

// The partition of that lease and of that note.
inline constexpr std::string_view kEvictionPk = "GC#EVICT";

}  // namespace facetheory
