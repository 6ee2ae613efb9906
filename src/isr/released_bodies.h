// ReleasedBodies: bodies that a write has just left without a reference, until it is safe to remove them.
//
// Whoever publishes, purges, withdraws or rolls back tells of the bodies that its transaction released, if the Isr has
// somebody to be told. They stay for a grace period: a reader that has read the old pointer still finds the body. Then
// a consistent read of the page's partition must show that no row refers to it (again), and it goes. A body of ours is
// referred to from its own page's partition only, and never again once nothing does: a publish takes a body over from
// META alone, a rollback from a version's row, and both make their transactions fail if that has changed.
//
// The queue is bounded and forgets; what it forgets, the sweep finds (sweep.h). May be used from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/partners.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

class ReleasedBodies {
 public:
  struct Entry {
    std::string pk;
    std::string key;         // The body's, as the store knows it.
    Duration released_at{};  // Monotonic.
  };

  explicit ReleasedBodies(std::size_t most = 100'000) : most_(most) {}

  // Notes it; beyond the limit it is forgotten.
  void add(Entry entry);
  // Takes those out of the queue that were released at that time or before, oldest first, up to `most`.
  std::vector<Entry> take(Duration until, std::size_t most);
  // Puts back what was taken in vain, as if it had never left.
  void put_back(std::vector<Entry> entries);

  std::size_t size() const;
  std::uint64_t forgotten() const;

 private:
  const std::size_t most_;

  mutable std::mutex mutex_;  // guards what follows
  std::deque<Entry> entries_;
  std::uint64_t forgotten_ = 0;
};

// Tells that a write has taken this reference away, if there is anybody to tell and the body is one of ours of that
// page.
void tell_released(const Isr& isr, const Page& page, const std::string& s3_key);
// The same of a META that is gone or points elsewhere. One that named a version says nothing: the version's row goes on
// to name the body, perhaps until META does so again, and whoever removes that row tells.
void tell_released(const Isr& isr, const Page& page, const MetaRow& meta);

struct RemovedBodies {
  std::uint64_t removed = 0;
  std::uint64_t referenced = 0;  // Some row refers to them after all, or another table may: they stay.
};

// Removes up to `most` bodies that isr.released has had for the grace period and that no row refers to. After an error
// that may pass, those that it was about to remove are queued again. The report is that of table and bodies
// (partners.h): who are not partners lose nothing, and bodies from before the partnership stay.
Task<Result<RemovedBodies>> remove_released(const Isr& isr, PartnerReport partners, Duration grace,
                                            std::size_t most);

// Whether the table may delete the body of that key, which says when it was written.
bool may_delete_body(const PartnerReport& partners, std::string_view key);

}  // namespace facetheory
