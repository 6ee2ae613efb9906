// What a service is told besides its configuration.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/table/table.h"

namespace facetheory {

struct ServiceOptions {
  std::string version = {};  // The metrics tell it.
  std::string owner = {};    // The name of this node, for people to read in LOCK.
  int access_log = 1;        // The descriptor it goes to.
  Clock& clock = system_clock();
  // Puts something between the engine and the stores that the configuration names. May be empty.
  std::function<std::unique_ptr<Table>(std::unique_ptr<Table>)> wrap_table = {};
  std::function<std::unique_ptr<BodyStore>(std::unique_ptr<BodyStore>)> wrap_bodies = {};
};

}  // namespace facetheory
