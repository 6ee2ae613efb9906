#include "facetheory/base/store_names.h"

namespace facetheory {

Result<void> check_reach(const StoreNames& names) {
  const bool local = names.bodies.starts_with("lmdb:") || names.bodies.starts_with("memory:");
  if (!names.table.starts_with("dynamodb:") || !local) return {};
  return Error{ErrorCode::invalid, "the table " + names.table + " is shared, but the bodies " + names.bodies +
                                       " would be on this machine alone; give bodies that are shared, too, "
                                       "as s3://bucket"};
}

}  // namespace facetheory
