// What a server takes of its clients: all of it is what a configuration can say.
#pragma once

#include "facetheory/http/client_limits.h"

namespace facetheory {

using ServerLimits = ClientLimits;

}  // namespace facetheory
