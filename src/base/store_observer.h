// StoreObserver: is told of every operation of a table or a body store when it has ended. For metrics and warnings.
//
// Called on the thread that awaited the operation, and so from several at once; it must not throw and should be quick.
#pragma once

#include <functional>
#include <string_view>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"

namespace facetheory {

// `operation` is a literal: "get", "write", ... `failed` is null where it succeeded. An operation that was cancelled
// has failed: it did not answer in time for whoever asked.
using StoreObserver = std::function<void(std::string_view operation, const Error* failed, Duration took)>;

}  // namespace facetheory
