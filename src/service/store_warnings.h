// Tells the operator, in the log, of a store that fails: why, and seldom enough to be read.
//
// May be used from any thread, as StoreObserver says.
#pragma once

#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/base/store_observer.h"

namespace facetheory {

// Passes on all that it is told. Of each operation it logs the first failure, and then one a minute at most while
// failures go on. The clock must outlive it.
StoreObserver with_warnings(StoreObserver observer, std::string store, Clock& clock = system_clock());

}  // namespace facetheory
