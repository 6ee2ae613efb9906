// What went wrong in LMDB or the file system, in the words of everybody: translated once, where it is met.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/base/result.h"

namespace facetheory {

// What an LMDB or system error code means to a caller of the table in `directory`, who was doing `what`.
Error lmdb_error(int code, std::string_view what, const std::string& directory);

}  // namespace facetheory
