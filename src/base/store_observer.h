// StoreObserver: is told of every operation of a table or a body store when it has ended. For metrics.
//
// Called on the thread that awaited the operation, and so from several at once; it must not throw and should be quick.
#pragma once

#include <functional>
#include <string_view>

#include "facetheory/base/clock.h"

namespace facetheory {

// `operation` is a literal: "get", "write", ... `ok` is false for an error, and for an operation that was cancelled: it
// did not answer in time for whoever asked.
using StoreObserver = std::function<void(std::string_view operation, bool ok, Duration took)>;

}  // namespace facetheory
