// A table that repeats what its inner table calls `unavailable`: enough to run the suite over a faulty one.
// Everything else, `ambiguous` above all, is passed on.
#pragma once

#include <memory>

#include "facetheory/table/table.h"

namespace facetheory::test {

std::unique_ptr<Table> retrying(std::unique_ptr<Table> inner);

}  // namespace facetheory::test
