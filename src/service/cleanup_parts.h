// What a cleanup works on, and whom it asks and tells. For .cc files only, since it needs Asio.
#pragma once

#include <functional>
#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/rows.h"
#include "facetheory/service/storage_budget.h"
#include "facetheory/site/config.h"

namespace facetheory {

struct CleanupParts {
  const Isr& isr;  // Its `released` is told of released bodies.
  StorageBudget& budget;
  CleanupConfig config = {};
  std::string owner = {};  // The name of this node, for people to read in leases.
  // Somebody here may believe a pointer for so long: a released body stays longer, whatever room it takes.
  Duration pointer_ttl{0};
  // Says how much a page is wanted here: 0 hardly, 1 a little, 2 it is in use. Empty: all alike.
  std::function<int(const MetaRow&)> warmth = {};
  // Called when the bodies turn out to be another table's. May be empty.
  std::function<void()> on_stranger = {};
};

}  // namespace facetheory
