#include "facetheory/table/lmdb_error.h"

#include <cerrno>

#include <lmdb.h>

namespace facetheory {

Error lmdb_error(int code, std::string_view what, const std::string& directory) {
  const std::string where = std::string(what) + " in lmdb:" + directory + ": " + mdb_strerror(code);
  switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {ErrorCode::exhausted,
              where + "; free space on that disk, nothing that was acknowledged is lost"};
    case MDB_MAP_FULL:
      return {ErrorCode::exhausted, where + "; the table has reached its largest size, delete rows"};
    case MDB_READERS_FULL:
      return {ErrorCode::exhausted, where + "; too many processes and threads read this table at once"};
    case MDB_TXN_FULL:
      return {ErrorCode::exhausted, where + "; write less in one transaction"};
    case EACCES:
    case EPERM:
    case EROFS:
      return {
          ErrorCode::invalid,
          where +
              "; make the directory and its files writable for this user: who reads takes locks there, too"};
    case ENOTDIR:
    case EEXIST:
      return {ErrorCode::invalid, where + "; name a directory, not a file"};
    case MDB_INVALID:
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
      return {
          ErrorCode::corrupt,
          where + "; the file is damaged or not an LMDB file: restore it, or move it away to start empty"};
    case MDB_VERSION_MISMATCH:
      return {ErrorCode::invalid, where + "; the file was made by another version of LMDB"};
    case ENOMEM:
      return {ErrorCode::exhausted, where + "; raise the limit on address space (ulimit -v)"};
    case EIO:
    case MDB_PANIC:
      return {ErrorCode::ambiguous, where + "; check the disk, then restart this process"};
    default:
      return {ErrorCode::internal, where};
  }
}

}  // namespace facetheory
