// Leases: rows that must outlive every process but not the machine, in memory that the processes of one table share.
//
// The file `leases` beside LMDB's own is mapped by all of them and never synced, so that writing a lease costs no
// flush. A row here takes the place of the one that LMDB may hold under the same key. What was here before the machine
// started is worthless: the file is bound to the kernel's boot, and to its own and data.mdb's inode, so that a copy or
// a restored table begins without leases. docs/formats.md has the bytes.
//
// Writing. Only who holds LMDB's write lock changes anything, and says begin() first: so there is one order of all
// writes. A change becomes visible by storing one word, whatever else it wrote was to a place that nothing refers to: a
// process may be killed between any two instructions. A row that goes together with changes in LMDB is not removed but
// marked with the number of that LMDB transaction (end_with); a snapshot of that number or a later one does not see it,
// an earlier one does, so that both happen in one instant, LMDB's commit. A mark of a transaction that was never
// committed carries the number that the next one gets, or a greater one: begin() takes it off before that.
//
// Reading takes no lock. A row belongs to one of many small buckets, by its partition. A reader takes the bucket's
// count of changes, then the LMDB snapshot, then the rows, then the count again, and starts over if it is another. That
// is a true picture of one moment: every change raises the count first, also before it writes over a place that a
// reader may still be at. So while the count stays the same at most one change can fall into the reader's time, namely
// the one that was announced before the reader began. With several buckets it is the same: there is one writer, and so
// one such change.
//   - A row appearing, being replaced or removed: the reader sees the state before or after it. The writer has held the
//     write lock since the announcement, so LMDB has not changed either since before the snapshot.
//   - A mark: either way the row is seen by snapshots before that transaction only, and later ones see the mark.
//   - - A mark taken off, or a marked row removed, by begin(): no snapshot is as late as a mark that is taken off, and
//     since the announcement none is earlier than one whose row is removed; so both states say the same.
// Were rows looked at without the count, one could go unseen while it moves; and an older one of LMDB, which had been
// replaced here, could be seen by a snapshot from just before both were deleted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"

namespace facetheory {

// Records under their keys, both as LMDB has them.
using LeaseRows = std::map<std::string, std::string, std::less<>>;

class LmdbLeases {
 public:
  // What a reader is after. The bytes must outlive it.
  class Scope {
   public:
    static Scope row(std::string_view key);
    static Scope partition(std::string_view prefix);  // What all its keys begin with.
    static Scope table();

   private:
    friend LmdbLeases;
    Scope(std::string_view prefix, std::string_view key);

    std::string_view prefix_;  // Empty: the whole table.
    std::string_view key_;     // Empty: all of the partition.
    std::size_t bucket_;
  };

  // The caller holds LMDB's write lock; `data_inode` is that of data.mdb. A file of another program, of a newer format,
  // or that was cut off is refused with a message that says so, and left as it is.
  static Result<std::unique_ptr<LmdbLeases>> open(const std::string& directory, std::uint64_t data_inode);

  ~LmdbLeases();
  LmdbLeases(const LmdbLeases&) = delete;
  LmdbLeases& operator=(const LmdbLeases&) = delete;

  // These may be called from any thread. `snapshot` is the number of the LMDB transaction that is read. A damaged row
  // has a record that is none.
  std::uint64_t changes(const Scope& scope) const;
  // The number is another one after any change in one of the scopes.
  std::uint64_t changes(std::span<const Scope> scopes) const;
  LeaseRows rows(const Scope& scope, std::uint64_t snapshot) const;
  LeaseRows rows(std::span<const Scope> scopes, std::uint64_t snapshot) const;

  // The others need LMDB's write lock. `transaction` is the number of that write transaction.
  void begin(std::uint64_t transaction);
  // Takes effect at once. False: it is too large, or there is no room.
  bool put(std::string_view key, std::string_view record);
  // Takes effect at once.
  void erase(std::string_view key);
  // Takes effect when the transaction is committed, and not before. False: there is no such row.
  bool end_with(std::uint64_t transaction, std::string_view key);

 private:
  struct File;
  struct Bucket;
  struct Slot;
  struct Place;

  explicit LmdbLeases(File* file) : file_(file) {}

  Place find(std::string_view key) const;
  void announce(Bucket& bucket);
  void clear();
  // Takes off, in one bucket, marks of transactions that were never committed, and removes the rows of those that were.
  void settle(std::size_t bucket, std::uint64_t transaction);

  File* const file_;
};

}  // namespace facetheory
