// The embedded table: LMDB in one directory, shared by the processes of one machine.
//
// A read takes about a microsecond and completes at once, on the calling thread; a write is durable when it
// is acknowledged (Durability says against what). Several tables of one process may name the same directory;
// a process that forks must not use its parent's. docs/formats.md describes the bytes.
#pragma once

#include <memory>
#include <string>

#include "facetheory/base/result.h"
#include "facetheory/table/lmdb_options.h"
#include "facetheory/table/table.h"

namespace facetheory {

// Opens the directory, or makes it, for this process's user alone. When it was deleted or replaced, writes are refused
// until it is back: they would be lost, and nobody else would see them. A file that is cut off, damaged, another
// program's or of a newer format is refused with a message that says so, and left as it is.
Result<std::unique_ptr<Table>> open_lmdb_table(const std::string& directory, const LmdbOptions& options = {});

}  // namespace facetheory
