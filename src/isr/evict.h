// Eviction: pages go, those that are least worth keeping first, because there is no room for all.
//
// A page that went is missing, as after a purge: whoever asks for it has it rendered. It goes by one transaction, on condition that its
// META is the one that was judged and that nobody holds its lease; never while it is pinned, nor if its body is another writer's, which stays. Its kept versions go with it. Its
// bodies are not removed here: a reader may be about to read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/partners.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

struct EvictOptions {
  std::size_t most = 100;  // Pages to evict.
  // How much a page is wanted here; the least wanted go first, of those the oldest. Empty: all alike.
  std::function<int(const MetaRow&)> warmth = {};
  // Pages that are wanted this much stay. Empty: none.
  std::optional<int> spared = {};
  // Of table and bodies: a page whose bodies may not be deleted stays, since that would make no room.
  PartnerReport partners = {};
};

struct Evicted {
  std::uint64_t pages_seen = 0;
  std::uint64_t pages = 0;
  std::uint64_t rows = 0;
  std::vector<std::string> bodies = {};  // Keys of those that nothing refers to any more; ours only.
  std::optional<Key> next = {};          // Where the next sample begins; empty: at the beginning.
};

// Takes the pages that follow `after` in the table's order, a few hundred, as a sample, and evicts up to half of them.
Task<Result<Evicted>> evict_some(const Isr& isr, std::optional<Key> after, EvictOptions options);

}  // namespace facetheory
