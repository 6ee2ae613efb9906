// The table's rows inside one LMDB transaction: records with checksums, overflow lists, ordered walks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <lmdb.h>

#include "facetheory/base/result.h"
#include "facetheory/table/lmdb_keys.h"
#include "facetheory/table/table.h"

namespace facetheory {

// What an LMDB or system error code means to a caller of the table in `directory`, who was doing `what`.
Error lmdb_error(int code, std::string_view what, const std::string& directory);

class LmdbRows {
 public:
  // Both must outlive this object.
  LmdbRows(MDB_txn* txn, MDB_dbi dbi, const std::string& directory)
      : txn_(txn), dbi_(dbi), directory_(directory) {}

  Result<std::optional<Attributes>> get(const Key& key) const;
  Result<QueryPage> query(const Query& query) const;
  Result<ScanPage> scan(const Scan& scan) const;

  // Only in a write transaction. An error leaves the transaction fit for nothing but to be aborted.
  Result<void> put(const Key& key, const Attributes& attributes);
  Result<void> erase(const Key& key);

 private:
  // The record under the key without its checksum, which was right; empty: there is none.
  Result<std::optional<std::string_view>> read_record(std::string_view key) const;
  Result<void> write_record(std::string_view key, std::string record);
  Result<void> erase_record(std::string_view key);
  // Replaces one item of an overflow list, or removes it.
  Result<void> rewrite_overflow(const LmdbKey& where, const Key& key,
                                std::optional<std::string_view> attributes);
  // Appends to `out` the items of one LMDB entry, in sk order.
  Result<void> items_at(std::string_view key, std::string_view value, std::vector<Item>& out) const;
  // Walks entries from `start` until `visit` says false. Forward begins at the first entry not before
  // `start`, backward at the last one before it; an empty `start` means from the end.
  using Visit = std::function<Result<bool>(std::string_view key, std::string_view value)>;
  Result<void> walk(std::string_view start, Direction direction, const Visit& visit) const;
  Result<std::string_view> checked(std::string_view key, std::string_view value) const;
  Error damaged(std::string_view key) const;

  MDB_txn* txn_;
  MDB_dbi dbi_;
  const std::string& directory_;
};

}  // namespace facetheory
