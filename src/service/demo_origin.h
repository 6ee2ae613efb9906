// A site to try the gateway with: every page takes 300 ms to render and shows when that was. It says nothing about
// caching, so that the gateway's own rules apply.
#pragma once

#include "facetheory/base/clock.h"
#include "facetheory/server/whole_requests.h"

namespace facetheory {

// The clock must outlive the handler.
RequestHandler demo_origin(Clock& clock = system_clock());

}  // namespace facetheory
