// Cleanup. Nothing depends on it: a row past its ttl and a body that nobody refers to mean nothing any more.
//
// Rows are deleted where the table does not expire them itself, and only if their ttl is still the one that was
// seen. Bodies are deleted if they are ours (by the form of their keys), older than the grace period, found
// unreferenced in one pass, recorded, and found so again a grace period later. Bodies of other writers are never
// touched. Tables that share one body store must not be swept: each would take the other's bodies for orphans.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "facetheory/isr/isr.h"

namespace facetheory {

struct SweepOptions {
  bool dry_run = false;  // Counts, and changes nothing.
  std::chrono::seconds grace{3600};
};

struct SweepReport {
  std::uint64_t rows_seen = 0;
  std::uint64_t rows_deleted = 0;
  bool table_expires_rows = false;  // Then none were deleted here.
  std::uint64_t bodies_seen = 0;
  std::uint64_t bodies_foreign = 0;   // Other writers'; left alone.
  std::uint64_t bodies_recorded = 0;  // Found unreferenced for the first time.
  std::uint64_t bodies_waiting = 0;   // Recorded earlier; their grace period is not over.
  std::uint64_t bodies_deleted = 0;
  std::uint64_t bytes_deleted = 0;
};

// `progress` (may be empty) is told the report so far, now and then.
Task<Result<SweepReport>> sweep(const Isr& isr, SweepOptions options,
                                std::function<void(const SweepReport&)> progress = {});

}  // namespace facetheory
