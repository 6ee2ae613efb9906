// One LMDB environment: a directory that several processes may share, opened once per process.
//
// Reads run on the calling thread, in a read transaction that never outlives the call. Writes of all callers
// go through one writer thread, which takes whatever has queued up, runs it in one LMDB transaction, and
// reports back when that is durable: the cost of a flush is shared by all who wait for it. What need not survive power
// loss is written to memory that the processes share, where that is possible (lmdb_leases.h), and costs no flush; a
// batch in which nothing else is left is committed without the sync of LMDB's meta page, so that losing power may lose
// the last such transaction and never more.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <lmdb.h>

#include "facetheory/base/disk_use.h"
#include "facetheory/base/open_file.h"
#include "facetheory/base/result.h"
#include "facetheory/table/lmdb_leases.h"
#include "facetheory/table/lmdb_options.h"
#include "facetheory/table/lmdb_rows.h"
#include "facetheory/table/operations.h"
#include "facetheory/table/recent_commits.h"

namespace facetheory {

// A job for the writer thread: operations that happen all or not at all.
class LmdbJob {
 public:
  LmdbJob(std::vector<TransactItem> items, Durability durability)
      : items_(std::move(items)), durability_(durability) {}
  virtual ~LmdbJob() = default;

  const std::vector<TransactItem>& items() const { return items_; }
  std::chrono::steady_clock::time_point made_at() const { return made_at_; }
  Durability durability() const { return durability_; }

  // Called once, on the writer thread, when it is done. Must not block.
  virtual void complete(Result<TransactOutcome> outcome) = 0;

 private:
  std::vector<TransactItem> items_;
  Durability durability_;
  const std::chrono::steady_clock::time_point made_at_ = std::chrono::steady_clock::now();
};

class LmdbEnvironment {
  // An idle read transaction. Each thread has a slot, shared only when there are many threads, so that taking
  // one needs no lock.
  struct alignas(64) ReaderSlot {
    std::atomic<MDB_txn*> txn = nullptr;
  };
  static constexpr std::size_t kReaderSlots = 64;

 public:
  // Opens the directory, or makes it. A process that has it open already gets the same environment, with its
  // options.
  static Result<std::shared_ptr<LmdbEnvironment>> open(const std::string& directory,
                                                       const LmdbOptions& options);

  ~LmdbEnvironment();  // Finishes what is queued.
  LmdbEnvironment(const LmdbEnvironment&) = delete;
  LmdbEnvironment& operator=(const LmdbEnvironment&) = delete;

  // A read transaction, valid until this object goes. `error` tells why there is none.
  class Reader {
   public:
    explicit Reader(LmdbEnvironment& environment);
    // These also read the leases of the same moment.
    Reader(LmdbEnvironment& environment, const LmdbLeases::Scope& scope);
    Reader(LmdbEnvironment& environment, std::span<const LmdbLeases::Scope> scopes);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    int error() const { return error_; }
    MDB_txn* txn() const { return txn_; }
    const LeaseRows& leases() const { return leases_; }

   private:
    void renew();

    LmdbEnvironment& environment_;
    ReaderSlot& slot_;
    LeaseRows leases_;
    MDB_txn* txn_ = nullptr;
    int error_ = 0;
  };

  LmdbTrees trees() const { return trees_; }
  const std::string& directory() const { return directory_; }
  const RecentCommits& commits() const { return commits_; }
  // The file that LMDB maps, for whoever reads it there. Null: its file system cannot do that
  // without waiting.
  const std::shared_ptr<const OpenFile>& file() const { return file_; }

  void submit(std::unique_ptr<LmdbJob> job);

  // The pages of its trees, and the files' lengths; those of fixed length count as used. Empty: it cannot be told.
  std::optional<DiskUse> disk_use();

 private:
  struct Deleter {
    void operator()(MDB_env* env) const { mdb_env_close(env); }
  };
  struct Extent {
    mdb_filehandle_t file;
    std::size_t file_bytes;
    std::size_t used_bytes;  // They end with the last page that LMDB has given out.
  };

  LmdbEnvironment(std::string directory, const LmdbOptions& options)
      : directory_(std::move(directory)), options_(options) {}

  using Batch = std::vector<std::unique_ptr<LmdbJob>>;
  using Outcomes = std::vector<Result<TransactOutcome>>;

  Result<void> start();
  Result<Extent> measure() const;
  int reserve_lock_file() const;
  void remove_unfinished_file() const;
  // A file shorter than what LMDB has written was cut off, and reading it would be fatal.
  Result<void> check_length() const;
  Result<void> check_not_emptied() const;
  Result<void> check_format();
  // No other process reads the table.
  Result<void> check_unused() const;
  // Lengthens the file ahead of what a commit may add to it (see check_length).
  Result<void> reserve(std::size_t bytes) const;

  ReaderSlot& slot_of_this_thread();

  void write_until_stopped();
  // Stays awake for a moment after a batch, until as many jobs are there again: whoever was just answered
  // often has the next one at once. Without it the first to come back would pay for a flush alone, while the
  // others queue up behind it.
  void linger(std::size_t jobs) const;
  Batch take_batch();  // The caller holds mutex_.
  void run(Batch batch);
  // The file that is open is still the one in the directory. Asks the file system at most once in a while.
  Result<void> check_place();
  // Runs the jobs in one transaction. Those that come down to a lease are done and complete at once and leave the
  // batch; of the others each has one outcome, or, with an error, nothing was written.
  Result<Outcomes> commit(Batch& batch);
  // Those that have waited too long complete at once, and leave the batch.
  void refuse_the_late(Batch& batch) const;

  // Constant after open().
  const std::string directory_;
  const LmdbOptions options_;
  std::unique_ptr<MDB_env, Deleter> env_;
  std::shared_ptr<const OpenFile> file_;
  LmdbTrees trees_;
  std::unique_ptr<LmdbLeases> leases_;
  std::array<ReaderSlot, kReaderSlots> readers_;

  RecentCommits commits_;  // Noted by the writer.

  // Only the writer's thread touches these.
  std::chrono::steady_clock::time_point next_place_check_;
  bool is_displaced_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::unique_ptr<LmdbJob>> queue_;  // guarded by mutex_
  bool stopping_ = false;                        // guarded by mutex_
  std::atomic<std::size_t> queued_ = 0;          // The size of queue_, for a look without the lock.

  std::thread writer_;  // Last, so that all of the above is there while it runs.
};

}  // namespace facetheory
