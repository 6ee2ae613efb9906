// Checkpoints: how a commit is durable with one flush of contiguous bytes, although LMDB flushes nothing.
//
// The idea. A batch is put into an LMDB transaction, its changes are written to the log as one record, the log is
// flushed, and then LMDB commits without flushing (MDB_NOSYNC): its pages reach the kernel, where all processes see
// them and no `kill -9` takes them away, and the disk some time later, in any order. So what is on the disk of
// data.mdb is worth nothing after a loss of power, but for one snapshot: that of the last checkpoint. From there on
// the log has everything. Who opens a table next puts that snapshot's meta page back, and carries out the records
// behind it.
//
// What keeps the snapshot whole. LMDB writes only to pages that no snapshot refers to which a reader may still see. So
// each process holds a read transaction, the pin, while it writes. The rule is
//
//   (1) nobody changes anything in an LMDB transaction who has not a pin on a snapshot that is not newer than that of
//   the newest checkpoint in the log.
//
// A pin protects what its own process writes, and that of no other: whoever is killed takes nothing with him that
// others rely on. Pins that are older than need be only keep pages from being used again.
//
// A checkpoint is made under LMDB's write lock, in this order: a pin on the present snapshot; a mark with the new
// generation in data.mdb (where LMDB has nothing); data.mdb is flushed; LMDB's meta page is copied into the log, to
// the place of the checkpoint before the last; the log is flushed. Only then the old pin may go, and the next record
// overwrites the first one of the generation before.
//
// Who must make one before a change: a process without a pin, or whose pin is newer than the newest checkpoint; the
// exception is a snapshot that is the checkpoint's still, which may just be pinned. And one whose pin is two
// generations old, lest it keep pages for ever while others write. Who has nothing to write any more lets go within a
// second or two.
//
// Case by case, while other processes go on with the table:
//   - Killed before the record is written, or within: LMDB's transaction is gone. The place where the next record
//     stands is a row of LMDB's (kLogKey), so the next writer, whoever it is, writes its own over what is there.
//   - Killed between the flush of the log and LMDB's commit: the same. Nobody was told, nobody saw it. If all others
//     go down before anybody writes, the record is carried out: it happened, and nobody was told.
//   - Killed within LMDB's commit: LMDB's meta page is written last. Its robust mutex goes to the next writer, LMDB
//     takes the newer meta page, and the row kLogKey says whether the record counts.
//   - Killed within a checkpoint, before the new one is written: the old one is the newest, its records are untouched,
//     and everybody's pin is as old as it was. The mark may be a generation ahead.
//   - Killed when it is written and before it is flushed: others see it, and it may not be on the disk, where the old
//     one counts together with the first record that they would write over. So (2) who meets a checkpoint that another
//     made flushes the log before it writes to it, be it a record or one more checkpoint.
//   - LMDB fails to commit (the disk is full): it gives up its lock, others may write over the record, and what is
//     still there is taken back under the lock, before anybody is told that the batch was refused.
//   - Two who checkpoint at once do so one after the other, under LMDB's write lock.
//   - Who only reads has no pin, writes nothing, and needs no checkpoint.
//   - Flushing data.mdb fails: the kernel may have given up pages. The checkpoint is marked as not to be trusted, all
//     refuse to write, and the next who is alone with the table restores it.
//
// Restoring. Who opens the table while nobody else has it open (the log is locked, and LMDB's own lock file is not)
// and finds records behind the last checkpoint restores it. It does not ask why it was not closed: what looks like
// `kill -9` may be a disk that was taken away, or set back to an older snapshot of itself. The meta page goes into
// both places, under numbers that are not smaller than any seen in the file, so that no number ever stands for two
// snapshots and leases in memory stay comparable. Then it pins that snapshot, carries out the records, and makes a
// checkpoint. Should it be killed, the next one begins from the same, since (1) held for it as well; until then the
// checkpoint is marked as not to be trusted, so that nobody joins in.
//
// Leases in memory outlive `kill -9`. A record says which of them end with it. Those of a transaction that LMDB's meta
// pages know as committed were ended by its maker, and the rows may be there again with newer leases; those of a later
// one end now.
//
// Where nothing was appended since the last checkpoint, data.mdb is that snapshot, and whole by itself. Who closes the
// table last makes a checkpoint, so that data.mdb may be copied alone. Its mark says then that no log is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <lmdb.h>

#include "facetheory/base/result.h"
#include "facetheory/table/lmdb_leases.h"
#include "facetheory/table/lmdb_log.h"
#include "facetheory/table/lmdb_rows.h"

namespace facetheory {

// The table's own row with the LogPosition behind the last record that was committed.
inline constexpr std::string_view kLogKey("\0log", 4);

class LmdbCheckpoints {
 public:
  // To be called before LMDB opens the directory: takes the log's lock, and puts the last checkpoint's snapshot back if
  // the table was not closed. Waits while others do that. `bytes` is what is written at least between checkpoints.
  static Result<std::unique_ptr<LmdbCheckpoints>> open(const std::string& directory, std::uint64_t bytes);
  ~LmdbCheckpoints();
  LmdbCheckpoints(const LmdbCheckpoints&) = delete;
  LmdbCheckpoints& operator=(const LmdbCheckpoints&) = delete;

  // Another process, perhaps of an older program, that had the table open before us; 0: there was none.
  long other_process() const { return other_process_; }

  // To be called when LMDB is open and of the right format: carries out what the log has, where that is needed, lets
  // other processes in, and tells LMDB not to flush any more. `reserve` makes data.mdb longer by so many bytes.
  using Reserve = std::function<Result<void>(std::size_t bytes)>;
  Result<void> start(MDB_env* env, LmdbTrees trees, LmdbLeases& leases, const Reserve& reserve);

  // These are for one thread, the writer's, and in this order for each write transaction: before its first change;
  // behind the last one, to make it durable; and if LMDB failed to commit it then. After an error it must be aborted.
  Result<void> protect(MDB_txn* txn);
  Result<void> log(MDB_txn* txn, const LogRecord& record);
  Result<void> take_back();

  // Makes a checkpoint if enough was written. Takes LMDB's write lock.
  void keep_short();
  bool has_pin() const { return pin_ != nullptr; }
  // To be called now and then while there is a pin: makes a checkpoint, or lets the pin go if nothing was written.
  void rest();
  // Makes a checkpoint if no other process has the table open, and lets everything go. LMDB is still open.
  void close();

  // These may be called from any thread.
  std::uint64_t log_bytes() const { return log_->bytes() ? *log_->bytes() : 0; }
  std::uint64_t log_inode() const { return log_->inode(); }

 private:
  struct Mark;
  struct TxnDeleter {
    void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
  };
  using Txn = std::unique_ptr<MDB_txn, TxnDeleter>;

  LmdbCheckpoints(std::string directory, std::uint64_t bytes, std::unique_ptr<LmdbLog> log)
      : directory_(std::move(directory)), least_bytes_(bytes), log_(std::move(log)) {}

  Result<void> take_lock();
  Result<bool> is_settled() const;
  Result<void> settle();
  Result<void> restore(int data);
  Result<void> replay(LmdbLeases& leases, const Reserve& reserve);
  Result<void> carry_out(std::string_view record, bool ends_leases, LmdbLeases& leases,
                         const Reserve& reserve) const;
  Result<Txn> begin(unsigned flags) const;
  // The caller holds LMDB's write lock by `txn`, which has changed nothing yet.
  Result<void> checkpoint(MDB_txn* txn, bool is_open);
  Result<void> fold();
  Result<void> look_again();
  Result<LogPosition> position_in(MDB_txn* txn) const;
  Result<void> flush_newest();
  Result<void> pin_newest();
  void hold(Txn pin);
  Result<void> flush_data(bool is_open, std::uint64_t table, std::uint64_t generation);
  std::uint64_t limit() const;
  Error error(ErrorCode code, std::string_view what) const;

  const std::string directory_;
  const std::uint64_t least_bytes_;
  const std::unique_ptr<LmdbLog> log_;
  long other_process_ = 0;
  bool is_restored_ = false;
  std::uint64_t last_seen_ = 0;  // The highest number of a transaction in data.mdb, before it was restored.

  // Constant after start().
  MDB_env* env_ = nullptr;
  LmdbTrees trees_;
  int data_ = -1;  // LMDB's descriptor of data.mdb.

  // Only the writer's thread touches these.
  std::optional<LmdbCheckpoint> newest_;  // As of the last look.
  Txn pin_;
  std::uint64_t pinned_ = 0;              // The pin's snapshot.
  std::uint64_t pin_generation_ = 0;      // The newest one when the pin was made.
  std::uint64_t durable_generation_ = 0;  // Of this one it is known that it is on the disk.
  LogPosition position_;                  // Where this transaction's record stands.
  std::uint64_t written_ = 0;             // Bytes of LMDB's pages since the pin, as estimated.
  std::uint64_t logged_ = 0;              // Bytes of this generation's records.
};

}  // namespace facetheory
