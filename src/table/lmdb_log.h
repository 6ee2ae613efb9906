// LmdbLog: the bytes of the file `log` beside data.mdb, and the lock on it. Why it is there and who may write what
// when stands in lmdb_checkpoints.h; docs/formats.md has the format.
//
// Two places for checkpoints, written by turns, then records, each behind the other. A record belongs to one
// checkpoint, whose generation it carries; those of an older one are what is left of it. Everything has a checksum
// that is seeded with a random number of the table, so that no bytes of a caller can pass for a record.
//
// All but the lock needs LMDB's write lock, or to be alone.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"

namespace facetheory {

// The beginning of one of LMDB's two meta pages, up to the end of what LMDB keeps there.
inline constexpr std::size_t kMetaBytes = 152;

// A snapshot of LMDB that is whole on the disk.
struct LmdbCheckpoint {
  std::uint64_t table = 0;       // Random; the same for all checkpoints of a table.
  std::uint64_t generation = 0;  // They are counted from 1.
  std::uint64_t snapshot = 0;    // The number of the LMDB transaction that made it.
  std::array<char, kMetaBytes> meta = {};
  std::uint64_t is_trusted = 1;  // 0: data.mdb is not what it should be, until it is restored from this.
};

// Behind the last record of a generation.
struct LogPosition {
  std::uint64_t generation = 0;
  std::uint64_t end = 0;
  std::uint64_t records = 0;
};

// What one LMDB transaction does, in the order in which it happens.
class LogRecord {
 public:
  enum class Tree : char { rows = 0, leases = 1 };
  enum class Kind : char { erase = 0, put = 1, end_lease = 2 };
  struct Change {
    Tree tree;
    Kind kind;
    std::string_view key;
    std::string_view value;  // Of a put.
  };

  void put(Tree tree, std::string_view key, std::string_view value) { add({tree, Kind::put, key, value}); }
  void erase(Tree tree, std::string_view key) { add({tree, Kind::erase, key, {}}); }
  // Of a lease in memory, which goes with this transaction.
  void end_lease(std::string_view key) { add({Tree::leases, Kind::end_lease, key, {}}); }

  bool empty() const { return bytes_.empty(); }
  std::size_t changes() const { return changes_; }
  const std::string& bytes() const { return bytes_; }

  // It ends with the first error.
  using Apply = std::function<Result<void>(const Change& change)>;
  static Result<void> replay(std::string_view bytes, const Apply& apply);

 private:
  void add(const Change& change);

  std::string bytes_;
  std::size_t changes_ = 0;
};

class LmdbLog {
 public:
  // Opens the file, or makes it. It is in no generation then.
  static Result<std::unique_ptr<LmdbLog>> open(const std::string& directory);
  ~LmdbLog();
  LmdbLog(const LmdbLog&) = delete;
  LmdbLog& operator=(const LmdbLog&) = delete;

  // Every process that has the table open holds the lock, most of the time together with others.
  enum class Lock { alone, shared };
  bool lock(Lock lock);  // False: others hold it. Does not wait, and gives up what was held before.
  void unlock();

  // The newest one; empty: there is none yet. A damaged one is an error where it may have been the newest.
  Result<std::optional<LmdbCheckpoint>> checkpoint() const;
  // Replaces the one before the newest. It counts once sync() has returned.
  Result<void> write(const LmdbCheckpoint& checkpoint);
  // The one before counts again.
  void withdraw(const LmdbCheckpoint& checkpoint);

  // Where the first record of a generation stands, and the one behind a record.
  static LogPosition beginning(std::uint64_t generation);
  static LogPosition behind(LogPosition position, const LogRecord& record);
  // Makes room for that record, if need be. After an error nothing has changed.
  Result<void> reserve(LogPosition position, const LogRecord& record);
  // Writes the record of that LMDB transaction there, durably. After an error nobody can tell whether it is there.
  Result<void> append(const LmdbCheckpoint& checkpoint, LogPosition position, std::uint64_t transaction,
                      const LogRecord& record);
  // What was appended there is none any more, durably.
  Result<void> take_back(LogPosition position);

  // Whether anything was ever appended to this generation, as far as the first record's place tells.
  Result<bool> was_begun(const LmdbCheckpoint& checkpoint) const;
  // The records of a generation, in order. What is behind the last of them is no record, or one that was never
  // acknowledged; a whole one of this generation behind a damaged one is an error.
  using Visit = std::function<Result<void>(std::uint64_t transaction, std::string_view record)>;
  Result<void> read(const LmdbCheckpoint& checkpoint, const Visit& visit) const;

  Result<void> sync() const;
  // The file is what it would be if it were made anew; for tables that begin anew.
  Result<void> clear();
  // Gives back what is beyond. Nothing there may belong to the present generation.
  void shrink(std::uint64_t bytes);
  Result<std::uint64_t> bytes() const;  // The file has.
  std::uint64_t inode() const { return inode_; }

 private:
  LmdbLog(int file, std::string directory) : file_(file), directory_(std::move(directory)) {}
  Result<std::string> pread(std::uint64_t at, std::size_t bytes) const;
  Error damaged(std::string_view what) const;

  const int file_;
  const std::string directory_;
  std::uint64_t inode_ = 0;
};

}  // namespace facetheory
