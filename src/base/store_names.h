// The names of a table and a body store, and whether the two can be used together as far as their names tell. Plain
// values.
#pragma once

#include <string>

#include "facetheory/base/result.h"

namespace facetheory {

// What opens table and bodies again: for messages, and to know a copy from what was copied. Empty: not known.
struct StoreNames {
  std::string table = {};
  std::string bodies = {};
};

// `invalid`, with the remedy, where a table that machines share would refer to bodies of this machine alone. Whoever
// opens stores asks this first: their URIs show it. `file:` may be a folder that all of them mount.
Result<void> check_reach(const StoreNames& names);

}  // namespace facetheory
