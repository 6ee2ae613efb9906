// --owner: whom a page's LOCK names while it is rendered.
#pragma once

#include <optional>
#include <string>

#include "facetheory/cli/arguments.h"

namespace facetheory {

// Takes a name of up to 512 bytes, since everybody who finds the lease held reads it. The default is that of
// default_owner() in session.h.
void declare_owner(Arguments& arguments, std::optional<std::string>& into);

}  // namespace facetheory
