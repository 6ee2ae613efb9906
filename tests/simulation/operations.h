// What the checkers are told: what a party set out to do, what the stores carried out of it, and what the party
// reported to its caller. Values only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/table/item.h"

#include "tests/simulation/scheduler.h"

namespace facetheory::simulation {

enum class Intent {
  regenerate,
  acquire,
  refresh,
  release,
  back_off,
  publish,
  claim,
  extend,
  complete,
  fail,
  invalidate,
  purge,
  mark,
  rollback,
  pin,
  unpin,
  read,
  sweep,
  evict,
};
std::string_view name(Intent intent);

// What a party set out to do.
struct Operation {
  PartyId party = 0;
  bool foreign = false;
  Intent intent = Intent::read;
  std::string pk = {};          // Of the page, or of the tag's row.
  std::string token = {};       // Of the lease, where one is given.
  std::string request_id = {};  // With these inputs:
  std::string inputs = {};
  int history = 0;
  bool strong = true;  // Of a read.
};

// What it told its caller.
struct Report {
  enum class Kind {
    done,       // As asked: invalidated, marked, pinned, released, extended, ...
    nothing,    // Nothing was there to be done.
    published,  // s3_key
    acquired,   // token
    held,
    lost,
    refused,
    claimed,
    replayed,  // s3_key
    mismatch,
    in_progress,
    failed,      // The render did.
    not_stored,  // It is not for everybody.
    fresh,       // Verdicts of a read.
    stale,
    missing,
    unavailable,  // Errors.
    ambiguous,
    broken,  // Any other error: none is expected.
  };
  Kind kind = Kind::done;
  std::string token = {};
  std::string s3_key = {};
  std::string detail = {};
};
std::string_view name(Report::Kind kind);

struct Change {
  Key key;
  std::optional<Attributes> before = {};
  std::optional<Attributes> after = {};
};

// A write or a transaction that was carried out. `built_at` and `own_clock` (the party's own) are of the moment
// at which it was asked for; of a repeated transaction, for the first time.
struct Commit {
  std::uint64_t operation = 0;
  Millis built_at = 0;
  Millis own_clock = 0;
  std::vector<Change> changes = {};
};

}  // namespace facetheory::simulation
