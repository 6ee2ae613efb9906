// Cleanup of a whole table and its bodies. Nothing depends on it: a row past its ttl and a body that nobody refers to
// mean nothing any more. What a publish releases is removed sooner (released_bodies.h); this finds what that has
// forgotten.
//
// Rows are deleted where the table does not expire them itself, and only if their ttl is still the one that was
// seen. Bodies are deleted if they are ours (by the form of their keys), older than the grace period, found
// unreferenced in one sweep, recorded, and found so again a grace period later. Bodies of other writers are never
// touched.
//
// Beside another table's bodies every one of them would be an orphan. So nothing is deleted, and the error names both
// stores and what to do, unless table and bodies are partners (partners.h); where a row that may refer to a body cannot
// be understood; and where the table refers to nothing at all while there are bodies that would go.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/lease.h"

namespace facetheory {

// How long a body stays that nothing refers to.
inline constexpr std::chrono::seconds kDefaultGrace{3600};

struct SweepOptions {
  bool dry_run = false;  // Counts, and changes nothing.
  // Somebody vouches that the bodies are this table's (adopt_bodies): a table that refers to nothing is believed.
  bool vouched = false;
  std::chrono::seconds grace = kDefaultGrace;
  // Rows and bodies that are read within a second; empty: as fast as it goes.
  std::optional<std::uint64_t> pace = {};
  // Asked between two steps; a sweep that stops is `unavailable`, and the next one goes on with the bodies where it
  // was.
  std::stop_token stop = {};
};

struct SweepReport {
  std::uint64_t rows_seen = 0;
  std::uint64_t pages_seen = 0;  // Rows that are a page's pointer.
  std::uint64_t rows_deleted = 0;
  bool table_expires_rows = false;  // Then none were deleted here.
  std::uint64_t bodies_seen = 0;
  std::uint64_t bodies_foreign = 0;  // Other writers'; left alone.
  // Older than the partnership: another table may refer to them; left alone.
  std::uint64_t bodies_from_before = 0;
  std::uint64_t bodies_recorded = 0;  // Found unreferenced for the first time.
  std::uint64_t bodies_waiting = 0;   // Recorded earlier; their grace period is not over.
  std::uint64_t bodies_deleted = 0;
  std::uint64_t bytes_deleted = 0;
};

// `progress` (may be empty) is told the report so far, now and then.
Task<Result<SweepReport>> sweep(const Isr& isr, SweepOptions options,
                                std::function<void(const SweepReport&)> progress = {});

// The same by one node of the fleet at a time, under a lease of its own (docs/formats.md, GC#SWEEP). A dry run needs
// none.
using SweepOutcome = std::variant<SweepReport, LeaseHeld>;
Task<Result<SweepOutcome>> sweep_alone(const Isr& isr, SweepOptions options, std::string owner,
                                       std::function<void(const SweepReport&)> progress = {});

// What the last sweep that came to its end has left behind for everybody.
struct LastSweep {
  std::int64_t finished_at = 0;
  std::uint64_t pages = 0;  // It has seen so many.
};
// Empty: there was none.
Task<Result<std::optional<LastSweep>>> last_sweep(const Isr& isr);

}  // namespace facetheory
