// The table's rows inside one LMDB transaction: records with checksums, overflow lists, ordered walks.
//
// There are two trees with the same kinds of keys and records. Rows named LOCK come and go with every render;
// they have a small tree of their own, so that a batch of leases touches a handful of LMDB's pages however
// many rows the table has. Everything else is in the large tree. Reads merge both, and the rows that only memory holds
// (lmdb_leases.h), which come before those of the trees.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lmdb.h>

#include "facetheory/base/result.h"
#include "facetheory/table/lmdb_keys.h"
#include "facetheory/table/lmdb_leases.h"
#include "facetheory/table/operations.h"

namespace facetheory {

// A key or value for LMDB to read. It does not write through those it is given.
inline MDB_val to_val(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};
}

struct LmdbTrees {
  // LMDB's unnamed tree; it also holds the table's own records, whose keys are no keys of rows.
  MDB_dbi leases = 0;
  MDB_dbi rows = 0;
};

class LmdbRows {
 public:
  // All of them must outlive this object. `leases` are those of the same moment among the rows that are read here.
  LmdbRows(MDB_txn* txn, LmdbTrees trees, const std::string& directory, const LeaseRows& leases)
      : txn_(txn), trees_(trees), directory_(directory), leases_(leases) {}

  // What is stored under a key that is no list's.
  static std::string record_of(const LmdbKey& where, const Key& key, const Attributes& attributes);

  Result<std::optional<Attributes>> get(const Key& key) const { return get(LmdbKey::of(key), key); }
  Result<std::optional<Attributes>> get(const LmdbKey& where, const Key& key) const;
  // The checksum of the record that holds the row, whatever else it holds; 0: there is none. Leases in memory do not
  // count.
  Result<std::uint64_t> stamp(const Key& key) const;
  // Where the bytes of that attribute, a Binary, lie in LMDB's file. Empty: there are none that lie there by
  // themselves.
  std::optional<std::uint64_t> offset_of(const Key& key, std::string_view attribute) const;
  Result<QueryPage> query(const Query& query) const;
  Result<ScanPage> scan(const Scan& scan) const;

  // These need a write transaction. After an error it can only be aborted.
  Result<void> put(const Key& key, const Attributes& attributes);
  Result<void> erase(const Key& key);

 private:
  MDB_dbi tree_of(const Key& key) const { return key.sk == "LOCK" ? trees_.leases : trees_.rows; }
  // The record under the key without its checksum, which was right; empty: there is none.
  Result<std::optional<std::string_view>> read_record(MDB_dbi tree, std::string_view key) const;
  Result<void> write_record(MDB_dbi tree, std::string_view key, std::string_view record);
  Result<void> erase_record(MDB_dbi tree, std::string_view key);
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
  LmdbTrees trees_;
  const std::string& directory_;
  const LeaseRows& leases_;
};

}  // namespace facetheory
