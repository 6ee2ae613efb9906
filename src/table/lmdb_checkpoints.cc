#include "facetheory/table/lmdb_checkpoints.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "facetheory/base/log.h"
#include "facetheory/base/private_folder.h"
#include "facetheory/base/random.h"
#include "facetheory/table/lmdb_error.h"

namespace facetheory {
namespace {

constexpr std::size_t kLmdbPageBytes = 4096;
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kOldGenerations = 2;
constexpr int kLockAttempts = 2000;
constexpr auto kLockPause = std::chrono::milliseconds(5);

// Where LMDB keeps these on its meta pages.
constexpr std::size_t kMetaBegins = 16;
constexpr std::uint32_t kLmdbMagic = 0xBEEFC0DE;
constexpr std::size_t kPageSizeAt = kMetaBegins + 24;
constexpr std::size_t kTransactionAt = kMetaBegins + 128;
static_assert(kTransactionAt + 8 == kMetaBytes);

constexpr off_t kMarkAt = 2048;  // On LMDB's first meta page, far behind what it keeps there.
constexpr std::string_view kMarkName = "facetheory log";

template <typename T>
T number_at(const std::array<char, kMetaBytes>& meta, std::size_t at) {
  T number = 0;
  std::memcpy(&number, meta.data() + at, sizeof number);
  return number;
}

class File {
 public:
  explicit File(int number) : number_(number) {}
  ~File() {
    if (number_ >= 0) ::close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return number_; }

 private:
  const int number_;
};

std::optional<std::array<char, kMetaBytes>> read_meta(int data, std::uint64_t page) {
  std::array<char, kMetaBytes> meta{};
  const auto at = static_cast<off_t>(page * kLmdbPageBytes);
  if (::pread(data, meta.data(), meta.size(), at) != static_cast<ssize_t>(meta.size())) return std::nullopt;
  return meta;
}

// LMDB holds a lock on this file wherever it is open. To be called while this process has not: closing any descriptor
// of the file gives up its locks.
long who_uses_lmdb(const std::string& directory) {
  const File file(::open((directory + "/lock.mdb").c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return 0;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return ::fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

}  // namespace

// Which log data.mdb belongs to.
struct LmdbCheckpoints::Mark {
  std::array<char, 16> name = {};
  std::uint64_t table = 0;
  std::uint64_t generation = 0;  // The log's, or the one after it.
  std::uint64_t is_open = 0;     // Without its log the file is not to be used.
  std::uint64_t checksum = 0;

  std::uint64_t sum() const { return XXH3_64bits(this, offsetof(Mark, checksum)); }

  // Empty: there is none.
  static Result<std::optional<Mark>> read(int data, const std::string& directory) {
    static_assert(std::has_unique_object_representations_v<Mark>);
    Mark mark;
    const auto meta = read_meta(data, 0);
    if (!meta || number_at<std::uint32_t>(*meta, kMetaBegins) != kLmdbMagic) return std::optional<Mark>();
    if (::pread(data, &mark, sizeof mark, kMarkAt) != static_cast<ssize_t>(sizeof mark))
      return std::optional<Mark>();
    if (mark.name[0] == '\0' && mark.checksum == 0) return std::optional<Mark>();
    if (mark.checksum == mark.sum() && std::string_view(mark.name.data()) == kMarkName)
      return std::optional(mark);
    return Error{ErrorCode::corrupt,
                 "lmdb:" + directory +
                     " is damaged: nobody can tell which log its data.mdb belongs to; restore the "
                     "folder, or delete it to start empty"};
  }
};

Error LmdbCheckpoints::error(ErrorCode code, std::string_view what) const {
  return {code, "lmdb:" + directory_ + " " + std::string(what)};
}

Result<std::unique_ptr<LmdbCheckpoints>> LmdbCheckpoints::open(const std::string& directory,
                                                               std::uint64_t bytes) {
  auto log = LmdbLog::open(directory);
  if (!log) return log.error();
  std::unique_ptr<LmdbCheckpoints> checkpoints(new LmdbCheckpoints(directory, bytes, *std::move(log)));
  if (Result<void> good = checkpoints->take_lock(); !good) return good.error();
  return checkpoints;
}

LmdbCheckpoints::~LmdbCheckpoints() = default;

Result<void> LmdbCheckpoints::take_lock() {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (log_->lock(LmdbLog::Lock::alone)) {
      Result<void> settled = settle();
      // Whoever closes the table may give up the log's lock a moment before LMDB's.
      if (settled || settled.error().code != ErrorCode::unavailable || attempt + 1 == kLockAttempts)
        return settled;
      log_->unlock();
    } else if (log_->lock(LmdbLog::Lock::shared)) {
      // Whoever has let us in may have been killed before it was done.
      const Result<bool> settled = is_settled();
      if (settled && *settled) {
        other_process_ = who_uses_lmdb(directory_);
        return {};
      }
      log_->unlock();
    }
    std::this_thread::sleep_for(kLockPause);
  }
  return error(ErrorCode::unavailable,
               "is being opened or closed by another process, which was stopped perhaps; try again");
}

Result<bool> LmdbCheckpoints::is_settled() const {
  const auto newest = log_->checkpoint();
  if (!newest) return newest.error();
  return !*newest || (*newest)->is_trusted != 0;
}

// This process is alone.
Result<void> LmdbCheckpoints::settle() {
  other_process_ = who_uses_lmdb(directory_);
  const auto newest = log_->checkpoint();
  if (!newest) return newest.error();
  const File data(::open((directory_ + "/data.mdb").c_str(), O_RDWR | O_CLOEXEC));
  struct stat status{};
  if (data.get() < 0 || ::fstat(data.get(), &status) != 0) {
    if (errno != ENOENT) return lmdb_error(errno, "opening the table", directory_);
    return *newest ? log_->clear() : Result<void>();  // What it goes with was moved away.
  }
  const auto mark = Mark::read(data.get(), directory_);
  if (!mark) return mark.error();
  const Result<bool> begun = *newest ? log_->was_begun(**newest) : Result<bool>(false);
  if (!begun) return begun.error();
  const bool belong_together =
      *newest && *mark && (*mark)->table == (*newest)->table &&
      ((*mark)->generation == (*newest)->generation || (*mark)->generation == (*newest)->generation + 1);
  if (!belong_together) {
    if (*mark && (*mark)->is_open != 0)
      return error(ErrorCode::corrupt,
                   "was not closed, and the file log that goes with its data.mdb is not there: it has the "
                   "last writes; "
                   "restore it, or delete data.mdb to start empty");
    if (*begun)
      return error(
          ErrorCode::corrupt,
          "has a file log that goes with another data.mdb, and writes that are not in this one; restore that "
          "one, or move log away to go on with this one");
    return *newest ? log_->clear() : Result<void>();
  }
  newest_ = *newest;
  if (!*begun && newest_->is_trusted != 0) return {};
  if (other_process_ != 0)
    return error(ErrorCode::unavailable, "was not closed and has to be restored, and process " +
                                             std::to_string(other_process_) +
                                             " has it open; stop that first");
  // Until there is a new checkpoint, nobody else may take the file for what it should be.
  newest_->is_trusted = 0;
  if (Result<void> good = log_->write(*newest_); !good) return good;
  is_restored_ = true;
  return restore(data.get());
}

// Both places get the snapshot, so that LMDB cannot take another one whichever it reads.
Result<void> LmdbCheckpoints::restore(int data) {
  std::uint64_t number = newest_->snapshot;
  for (std::uint64_t page = 0; page < 2; ++page) {
    const auto meta = read_meta(data, page);
    if (!meta) return lmdb_error(MDB_INVALID, "restoring the table", directory_);
    number = std::max(number, number_at<std::uint64_t>(*meta, kTransactionAt));
  }
  if (number_at<std::uint32_t>(newest_->meta, kPageSizeAt) != kLmdbPageBytes)
    return error(ErrorCode::invalid, "was made on a machine with other pages; open it there");
  last_seen_ = number;
  for (std::uint64_t one = number - 1; one <= number; ++one) {
    std::array<char, kMetaBytes> meta = newest_->meta;
    std::memcpy(meta.data() + kTransactionAt, &one, sizeof one);
    const auto at = static_cast<off_t>(one % 2 * kLmdbPageBytes + kMetaBegins);
    constexpr std::size_t kBytes = kMetaBytes - kMetaBegins;
    if (::pwrite(data, meta.data() + kMetaBegins, kBytes, at) != static_cast<ssize_t>(kBytes))
      return lmdb_error(errno, "restoring the table", directory_);
  }
  if (::fdatasync(data) != 0) return lmdb_error(errno, "restoring the table", directory_);
  return {};
}

Result<void> LmdbCheckpoints::start(MDB_env* env, LmdbTrees trees, LmdbLeases& leases,
                                    const Reserve& reserve) {
  trees_ = trees;
  int code = mdb_env_get_fd(env, &data_);
  if (code == 0 && !newest_) code = sync_folder(directory_);
  if (code != 0) return lmdb_error(code, "opening the table", directory_);
  env_ = env;
  mdb_env_set_flags(env, MDB_NOSYNC, 1);
  if (is_restored_) {
    if (Result<void> good = replay(leases, reserve); !good) return good;
  }
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (log_->lock(LmdbLog::Lock::shared)) return {};
    std::this_thread::sleep_for(kLockPause);
  }
  return error(ErrorCode::unavailable,
               "is being opened by another process, which was stopped perhaps; try again");
}

Result<LmdbCheckpoints::Txn> LmdbCheckpoints::begin(unsigned flags) const {
  MDB_txn* begun = nullptr;
  const int code = mdb_txn_begin(env_, nullptr, flags, &begun);
  if (code != 0) return lmdb_error(code, "beginning a checkpoint", directory_);
  return Txn(begun);
}

Result<void> LmdbCheckpoints::replay(LmdbLeases& leases, const Reserve& reserve) {
  Result<Txn> pin = begin(MDB_RDONLY);
  if (!pin) return pin.error();
  hold(*std::move(pin));
  std::size_t records = 0;
  Result<void> done = log_->read(*newest_, [&](std::uint64_t transaction, std::string_view record) {
    ++records;
    // Whoever made one of the others has ended its leases in memory, and there may be newer ones by now.
    return carry_out(record, transaction > last_seen_, leases, reserve);
  });
  if (!done) return done;
  Result<Txn> txn = begin(0);
  if (!txn) return txn.error();
  if (Result<void> good = checkpoint(txn->get(), true); !good) return good;
  facetheory::log(LogLevel::info, "lmdb:" + directory_ + " was not closed, and was restored: " +
                                      std::to_string(records) + " commits since its last checkpoint");
  return {};
}

Result<void> LmdbCheckpoints::carry_out(std::string_view record, bool ends_leases, LmdbLeases& leases,
                                        const Reserve& reserve) const {
  constexpr std::size_t kPagesPerChange = 12;
  std::size_t changes = 0;
  const auto count = [&changes](const LogRecord::Change&) {
    ++changes;
    return Result<void>();
  };
  if (Result<void> good = LogRecord::replay(record, count); !good) return good;
  if (Result<void> good = reserve(changes * kPagesPerChange * kLmdbPageBytes + 2 * record.size()); !good)
    return good;
  Result<Txn> txn = begin(0);
  if (!txn) return txn.error();
  const std::uint64_t number = mdb_txn_id(txn->get());
  leases.begin(number);
  const auto apply = [&](const LogRecord::Change& change) {
    const MDB_dbi dbi = change.tree == LogRecord::Tree::rows ? trees_.rows : trees_.leases;
    MDB_val key = to_val(change.key);
    MDB_val value = to_val(change.value);
    int code = 0;
    switch (change.kind) {
      case LogRecord::Kind::put:
        code = mdb_put(txn->get(), dbi, &key, &value, 0);
        break;
      case LogRecord::Kind::erase:
        code = mdb_del(txn->get(), dbi, &key, nullptr);
        break;
      case LogRecord::Kind::end_lease:
        if (ends_leases) leases.end_with(number, change.key);
        break;
    }
    if (code == 0 || code == MDB_NOTFOUND) return Result<void>();
    return Result<void>(lmdb_error(code, "restoring a row", directory_));
  };
  if (Result<void> good = LogRecord::replay(record, apply); !good) return good;
  if (const int code = mdb_txn_commit(txn->release()); code != 0)
    return lmdb_error(code, "restoring a commit", directory_);
  return {};
}

void LmdbCheckpoints::hold(Txn pin) {
  pinned_ = mdb_txn_id(pin.get());
  pin_ = std::move(pin);
  written_ = 0;
}

std::uint64_t LmdbCheckpoints::limit() const {
  MDB_envinfo info{};
  if (mdb_env_info(env_, &info) != 0) return least_bytes_;
  return std::max(least_bytes_, std::min(info.me_last_pgno * kLmdbPageBytes / 8, kMostBytes));
}

// Where flushing fails, the kernel may have given up pages that it could not write, and LMDB's file is not to be
// trusted any more, neither by us nor by others; the snapshot and the log are.
Result<void> LmdbCheckpoints::flush_data(bool is_open, std::uint64_t table, std::uint64_t generation) {
  Mark mark{
      .name = {}, .table = table, .generation = generation, .is_open = is_open ? 1U : 0U, .checksum = 0};
  kMarkName.copy(mark.name.data(), mark.name.size());
  mark.checksum = mark.sum();
  const ssize_t written = ::pwrite(data_, &mark, sizeof mark, kMarkAt);
  if (written != static_cast<ssize_t>(sizeof mark))
    return lmdb_error(written < 0 ? errno : ENOSPC, "marking the file", directory_);
  if (::fdatasync(data_) == 0) return {};
  const int code = errno;
  if (newest_) {
    newest_->is_trusted = 0;
    static_cast<void>(log_->write(*newest_).has_value());
  }
  return lmdb_error(code, "making the table durable", directory_);
}

Result<void> LmdbCheckpoints::flush_newest() {
  if (!newest_ || newest_->generation == durable_generation_) return {};
  // Written once more: had somebody else failed to flush it, the kernel would not try again.
  if (Result<void> good = log_->write(*newest_); !good) return good;
  if (Result<void> good = log_->sync(); !good) return good;
  durable_generation_ = newest_->generation;
  return {};
}

Result<void> LmdbCheckpoints::checkpoint(MDB_txn* txn, bool is_open) {
  if (Result<void> good = flush_newest(); !good) return good;
  Result<Txn> pin = begin(MDB_RDONLY);
  if (!pin) return pin.error();
  LmdbCheckpoint next;
  next.table = newest_ ? newest_->table : system_random().next();
  next.generation = newest_ ? newest_->generation + 1 : 1;
  next.snapshot = mdb_txn_id(pin->get());
  if (next.snapshot + 1 != mdb_txn_id(txn))
    return error(ErrorCode::internal, "was changed within a checkpoint");
  // Data.mdb must not ask for a log that has no checkpoint yet.
  const bool is_first = !newest_;
  if (Result<void> good = flush_data(is_open && !is_first, next.table, next.generation); !good) return good;
  const auto meta = read_meta(data_, next.snapshot % 2);
  if (!meta || number_at<std::uint64_t>(*meta, kTransactionAt) != next.snapshot)
    return lmdb_error(MDB_CORRUPTED, "reading LMDB's meta page", directory_);
  next.meta = *meta;
  Result<void> written = log_->write(next);
  if (written) written = log_->sync();
  if (!written) {
    log_->withdraw(next);
    return written;
  }
  newest_ = next;
  if (is_first && is_open) {
    if (Result<void> good = flush_data(true, next.table, next.generation); !good) return good;
  }
  hold(*std::move(pin));
  pin_generation_ = durable_generation_ = next.generation;
  logged_ = 0;
  log_->shrink(LmdbLog::beginning(0).end + 2 * limit());
  return {};
}

Result<void> LmdbCheckpoints::pin_newest() {
  Result<Txn> pin = begin(MDB_RDONLY);
  if (!pin) return pin.error();
  if (Result<void> good = flush_newest(); !good) return good;
  if (Result<void> good = flush_data(true, newest_->table, newest_->generation); !good) return good;
  hold(*std::move(pin));
  pin_generation_ = newest_->generation;
  return {};
}

Result<void> LmdbCheckpoints::protect(MDB_txn* txn) {
  if (Result<void> good = look_again(); !good) return good;
  if (newest_ && newest_->is_trusted == 0)
    return error(ErrorCode::unavailable,
                 "could not be made durable; check the disk, then restart all programs that use this table");
  const bool is_pinned = newest_ && pin_ && pinned_ <= newest_->snapshot &&
                         newest_->generation - pin_generation_ < kOldGenerations;
  Result<void> done;
  if (is_pinned) {
    done = flush_newest();
  } else {
    done = newest_ && newest_->snapshot + 1 == mdb_txn_id(txn) ? pin_newest() : checkpoint(txn, true);
  }
  if (!done) return done;

  const Result<LogPosition> position = position_in(txn);
  if (!position) return position.error();
  position_ = *position;
  return {};
}

Result<LogPosition> LmdbCheckpoints::position_in(MDB_txn* txn) const {
  MDB_val key = to_val(kLogKey);
  MDB_val value{};
  LogPosition position;
  const int code = mdb_get(txn, trees_.leases, &key, &value);
  if (code == 0 && value.mv_size == sizeof position) std::memcpy(&position, value.mv_data, sizeof position);
  if (code != 0 && code != MDB_NOTFOUND) return lmdb_error(code, "reading the log's place", directory_);
  return position.generation == newest_->generation ? position : LmdbLog::beginning(newest_->generation);
}

Result<void> LmdbCheckpoints::log(MDB_txn* txn, const LogRecord& record) {
  LogPosition next = LmdbLog::behind(position_, record);
  if (Result<void> good = log_->reserve(position_, record); !good) return good;
  MDB_val key = to_val(kLogKey);
  MDB_val value{sizeof next, &next};
  if (const int code = mdb_put(txn, trees_.leases, &key, &value, 0); code != 0)
    return lmdb_error(code, "writing the log's place", directory_);
  if (Result<void> good = log_->append(*newest_, position_, mdb_txn_id(txn), record); !good) return good;
  MDB_stat tree{};
  mdb_stat(txn, trees_.rows, &tree);
  written_ += (record.changes() * tree.ms_depth + 4) * kLmdbPageBytes + record.bytes().size();
  logged_ = next.end - LmdbLog::beginning(0).end;
  return {};
}

// LMDB has given up its write lock by then, and others may have written there since; what they committed stays.
Result<void> LmdbCheckpoints::take_back() {
  const LogPosition wanted = position_;
  const Result<Txn> txn = begin(0);
  Result<void> done = txn ? look_again() : Result<void>(txn.error());
  if (done && newest_ && newest_->generation == wanted.generation) {
    const Result<LogPosition> now = position_in(txn->get());
    if (!now) {
      done = now.error();
    } else if (now->end == wanted.end) {
      done = log_->take_back(wanted);
    }
  }
  if (!done) return Error{ErrorCode::ambiguous, done.error().message};
  return {};
}

Result<void> LmdbCheckpoints::look_again() {
  const auto newest = log_->checkpoint();
  if (!newest) return newest.error();
  newest_ = *newest;
  return {};
}

Result<void> LmdbCheckpoints::fold() {
  Result<Txn> txn = begin(0);
  if (!txn) return txn.error();
  if (Result<void> good = look_again(); !good) return good;
  if (!newest_ || newest_->is_trusted == 0) return {};
  return checkpoint(txn->get(), true);
}

void LmdbCheckpoints::keep_short() {
  if (pin_ == nullptr || std::max(written_, logged_) < limit()) return;
  if (Result<void> good = fold(); !good) facetheory::log(LogLevel::warning, good.error().message);
}

void LmdbCheckpoints::rest() {
  if (written_ == 0) {
    pin_.reset();
  } else if (Result<void> good = fold(); !good) {
    facetheory::log(LogLevel::warning, good.error().message);
  }
}

void LmdbCheckpoints::close() {
  if (env_ == nullptr || !log_->lock(LmdbLog::Lock::alone)) return pin_.reset();
  Result<void> done;
  if (Result<Txn> txn = begin(0); txn) {
    const auto newest = log_->checkpoint();
    const auto mark = Mark::read(data_, directory_);
    if (newest && *newest && (*newest)->is_trusted != 0 && mark) {
      newest_ = *newest;
      const bool is_closed =
          *mark && (*mark)->is_open == 0 && newest_->snapshot + 1 == mdb_txn_id(txn->get());
      if (!is_closed) done = checkpoint(txn->get(), false);
    }
  }
  if (!done) facetheory::log(LogLevel::warning, done.error().message);
  pin_.reset();
}

}  // namespace facetheory
