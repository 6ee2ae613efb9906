#include "facetheory/table/lmdb_environment.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facetheory/table/evaluate.h"
#include "facetheory/table/lmdb_rows.h"
#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

// Address space, not disk: the file grows as it is filled. All processes reserve the same, so that none has
// to follow another one's growth.
constexpr std::size_t kMapBytes = std::size_t{64} << 30;
constexpr unsigned kMaxReaders = 1024;
constexpr mdb_mode_t kFileMode = 0660;
constexpr std::size_t kMaxBatchRows = 100;
constexpr std::size_t kPageBytes = 4096;
constexpr auto kLinger = std::chrono::microseconds(150);
constexpr std::size_t kGrowthBytes = std::size_t{1} << 20;

// The table's own record: key, then "facetheory table" and the version of the byte format.
constexpr std::string_view kFormatKey("\0format", 7);
constexpr std::string_view kFormatName = "facetheory table ";
constexpr int kFormatVersion = 1;
constexpr const char* kRowsTree = "rows";

// The environments that are open in this process. LMDB forbids opening one twice, and an entry stays until
// its environment is closed for good.
struct Registry {
  using Id = std::pair<dev_t, ino_t>;

  std::mutex mutex;
  std::condition_variable closed;
  std::map<Id, std::weak_ptr<LmdbEnvironment>> open;  // guarded by mutex
};

Registry& registry() {
  static Registry instance;
  return instance;
}

struct TxnDeleter {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
using Txn = std::unique_ptr<MDB_txn, TxnDeleter>;

// What storing one record may add to the file: its own pages, and those copied or split on the way down to
// it.
std::size_t growth_of(const Attributes& attributes, const Key& key) {
  constexpr std::size_t kPagesPerRow = 12;
  return kPagesPerRow * kPageBytes + 2 * item_bytes(key, attributes);
}

// Carries the effects out; how much the file may grow by them.
Result<std::size_t> apply_all(LmdbRows& rows, const LmdbJob& job, const std::vector<Effect>& effects) {
  std::size_t growth = 0;
  for (std::size_t i = 0; i < effects.size(); ++i) {
    const Key& key = key_of(job.items()[i]);
    Result<void> done;
    if (const auto* store = std::get_if<Store>(&effects[i])) {
      done = rows.put(key, store->attributes);
      growth += growth_of(store->attributes, key);
    } else if (std::holds_alternative<Erase>(effects[i])) {
      done = rows.erase(key);
      growth += growth_of({}, key);
    }
    if (!done) return done.error();
  }
  return growth;
}

}  // namespace

Result<std::shared_ptr<LmdbEnvironment>> LmdbEnvironment::open(const std::string& directory,
                                                               const LmdbOptions& options) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  struct stat status{};
  if (failure || ::stat(directory.c_str(), &status) != 0) {
    return lmdb_error(failure ? failure.value() : errno, "making the directory", directory);
  }
  if (!S_ISDIR(status.st_mode)) return lmdb_error(ENOTDIR, "opening the table", directory);

  Registry& known = registry();
  const Registry::Id id{status.st_dev, status.st_ino};
  std::unique_lock lock(known.mutex);
  for (auto entry = known.open.find(id); entry != known.open.end(); entry = known.open.find(id)) {
    if (std::shared_ptr<LmdbEnvironment> environment = entry->second.lock()) return environment;
    known.closed.wait(lock);  // Its last user is gone, but it is still being closed.
  }

  const auto close = [id](LmdbEnvironment* environment) {
    delete environment;
    Registry& registered = registry();
    const std::lock_guard guard(registered.mutex);
    registered.open.erase(id);
    registered.closed.notify_all();
  };
  std::unique_ptr<LmdbEnvironment> environment(
      new LmdbEnvironment(std::filesystem::absolute(directory).string(), options));
  if (Result<void> started = environment->start(); !started) return started.error();
  std::shared_ptr<LmdbEnvironment> shared(environment.release(), close);
  known.open.emplace(id, shared);
  return shared;
}

LmdbEnvironment::~LmdbEnvironment() {
  if (writer_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    writer_.join();
  }
  for (ReaderSlot& slot : readers_) {
    if (MDB_txn* txn = slot.txn.exchange(nullptr)) mdb_txn_abort(txn);
  }
}

Result<void> LmdbEnvironment::start() {
  MDB_env* env = nullptr;
  if (const int code = mdb_env_create(&env); code != 0)
    return lmdb_error(code, "opening the table", directory_);
  env_.reset(env);
  int code = mdb_env_set_mapsize(env, kMapBytes);
  if (code == 0) code = mdb_env_set_maxreaders(env, kMaxReaders);
  if (code == 0) code = mdb_env_set_maxdbs(env, 1);
  if (code == 0) code = mdb_env_open(env, directory_.c_str(), MDB_NOTLS, kFileMode);
  if (code != 0) return lmdb_error(code, "opening the table", directory_);
  mdb_filehandle_t file{};  // LMDB lets children inherit this one.
  if (mdb_env_get_fd(env, &file) == 0) ::fcntl(file, F_SETFD, FD_CLOEXEC);
  if (Result<void> good = check_length(); !good) return good;
  mdb_reader_check(env, nullptr);
  if (Result<void> good = check_format(); !good) return good;
  writer_ = std::thread([this] { write_until_stopped(); });
  return {};
}

Result<void> LmdbEnvironment::check_length() const {
  const Result<Extent> extent = measure();
  if (!extent) return extent.error();
  if (extent->file_bytes >= extent->used_bytes) return {};
  return Error{ErrorCode::corrupt, "lmdb:" + directory_ + " was cut off: data.mdb has " +
                                       std::to_string(extent->file_bytes) + " bytes of " +
                                       std::to_string(extent->used_bytes) +
                                       "; restore it, or move it away to start empty"};
}

Result<LmdbEnvironment::Extent> LmdbEnvironment::measure() const {
  MDB_envinfo info{};
  MDB_stat pages{};
  mdb_filehandle_t file{};
  struct stat status{};
  int code = mdb_env_info(env_.get(), &info);
  if (code == 0) code = mdb_env_stat(env_.get(), &pages);
  if (code == 0) code = mdb_env_get_fd(env_.get(), &file);
  if (code == 0 && ::fstat(file, &status) != 0) code = errno;
  if (code != 0) return lmdb_error(code, "measuring the file", directory_);
  return Extent{.file = file,
                .file_bytes = static_cast<std::size_t>(status.st_size),
                .used_bytes = (info.me_last_pgno + 1) * pages.ms_psize};
}

Result<void> LmdbEnvironment::reserve(std::size_t bytes) const {
  Result<Extent> extent = measure();
  if (!extent) return extent.error();
  const std::size_t wanted = extent->used_bytes + bytes;
  // Written, not just allocated: overwriting blocks that exist is half the price of a flush that adds some.
  static const std::string zeros(kGrowthBytes, '\0');
  while (extent->file_bytes < wanted) {
    const ssize_t written =
        ::pwrite(extent->file, zeros.data(), zeros.size(), static_cast<off_t>(extent->file_bytes));
    if (written <= 0) return lmdb_error(written < 0 ? errno : ENOSPC, "growing the file", directory_);
    extent->file_bytes += static_cast<std::size_t>(written);
  }
  return {};
}

Result<void> LmdbEnvironment::check_format() {
  MDB_txn* begun = nullptr;
  int code = mdb_txn_begin(env_.get(), nullptr, 0, &begun);
  if (code != 0) return lmdb_error(code, "opening the table", directory_);
  Txn txn(begun);
  code = mdb_dbi_open(begun, nullptr, 0, &trees_.leases);
  MDB_stat stats{};
  if (code == 0) code = mdb_stat(begun, trees_.leases, &stats);
  MDB_val key = to_val(kFormatKey);
  MDB_val value{};
  const std::string current = std::string(kFormatName) + std::to_string(kFormatVersion);
  if (code == 0 && stats.ms_entries == 0) {
    value = to_val(current);
    if (Result<void> good = reserve(kGrowthBytes); !good) return good;
    code = mdb_put(begun, trees_.leases, &key, &value, 0);
  } else if (code == 0) {
    code = mdb_get(begun, trees_.leases, &key, &value);
    const std::string_view stored(static_cast<const char*>(value.mv_data), code == 0 ? value.mv_size : 0);
    if (code == MDB_NOTFOUND || (code == 0 && !stored.starts_with(kFormatName))) {
      return Error{ErrorCode::invalid,
                   "lmdb:" + directory_ + " holds an LMDB file of another program; choose another directory"};
    }
    if (code == 0 && stored != current) {
      return Error{ErrorCode::invalid,
                   "lmdb:" + directory_ + " is in format " + std::string(stored.substr(kFormatName.size())) +
                       ", this program knows " + std::to_string(kFormatVersion) + "; use the newer program"};
    }
  }
  if (code == 0) code = mdb_dbi_open(begun, kRowsTree, MDB_CREATE, &trees_.rows);
  if (code == 0) code = mdb_txn_commit(txn.release());
  if (code != 0) return lmdb_error(code, "opening the table", directory_);
  return {};
}

LmdbEnvironment::Reader::Reader(LmdbEnvironment& environment) : slot_(environment.slot_of_this_thread()) {
  txn_ = slot_.txn.exchange(nullptr, std::memory_order_acquire);
  if (txn_ != nullptr) {
    error_ = mdb_txn_renew(txn_);
    if (error_ != 0) mdb_txn_abort(std::exchange(txn_, nullptr));
  } else {
    MDB_env* const env = environment.env_.get();
    error_ = mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn_);
    if (error_ == MDB_READERS_FULL && mdb_reader_check(env, nullptr) == 0) {
      error_ = mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn_);
    }
  }
}

LmdbEnvironment::Reader::~Reader() {
  if (txn_ == nullptr) return;
  mdb_txn_reset(txn_);
  MDB_txn* const other = slot_.txn.exchange(txn_, std::memory_order_release);
  if (other != nullptr) mdb_txn_abort(other);
}

LmdbEnvironment::ReaderSlot& LmdbEnvironment::slot_of_this_thread() {
  static std::atomic<std::size_t> threads = 0;
  thread_local const std::size_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return readers_[number % kReaderSlots];
}

void LmdbEnvironment::submit(std::unique_ptr<LmdbJob> job) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
    queued_.store(queue_.size(), std::memory_order_release);
  }
  wake_.notify_one();
}

void LmdbEnvironment::write_until_stopped() {
  auto next_reader_check = std::chrono::steady_clock::now() + options_.reader_check_interval;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_until(lock, next_reader_check, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty() && stopping_) return;
    Batch batch = take_batch();
    lock.unlock();
    if (!batch.empty()) {
      const std::size_t jobs = batch.size();
      run(std::move(batch));
      linger(jobs);
    }
    if (std::chrono::steady_clock::now() >= next_reader_check) {
      mdb_reader_check(env_.get(), nullptr);
      next_reader_check = std::chrono::steady_clock::now() + options_.reader_check_interval;
    }
    lock.lock();
  }
}

void LmdbEnvironment::linger(std::size_t jobs) const {
  const auto end = std::chrono::steady_clock::now() + kLinger;
  while (queued_.load(std::memory_order_acquire) < jobs && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

LmdbEnvironment::Batch LmdbEnvironment::take_batch() {
  Batch batch;
  std::size_t rows = 0;
  auto taken = queue_.begin();
  for (; taken != queue_.end() && rows < kMaxBatchRows; ++taken) {
    rows += (*taken)->items().size();
    batch.push_back(std::move(*taken));
  }
  queue_.erase(queue_.begin(), taken);
  queued_.store(queue_.size(), std::memory_order_release);
  return batch;
}

void LmdbEnvironment::run(Batch batch) {
  Result<Outcomes> outcomes = commit(batch);
  if (outcomes) {
    for (std::size_t i = 0; i < batch.size(); ++i)
      batch[i]->complete(std::move((*outcomes)[i]));
    return;
  }
  // Nothing was written. One job may be what does not fit; the others must not suffer for it.
  if (batch.size() > 1 && outcomes.error().code != ErrorCode::ambiguous) {
    for (std::unique_ptr<LmdbJob>& job : batch) {
      Batch alone;
      alone.push_back(std::move(job));
      run(std::move(alone));
    }
    return;
  }
  for (const std::unique_ptr<LmdbJob>& job : batch)
    job->complete(outcomes.error());
}

Result<LmdbEnvironment::Outcomes> LmdbEnvironment::commit(const Batch& batch) {
  const bool durable = std::any_of(batch.begin(), batch.end(), [](const std::unique_ptr<LmdbJob>& job) {
    return job->durability() == Durability::machine;
  });
  mdb_env_set_flags(env_.get(), MDB_NOMETASYNC, durable ? 0 : 1);
  MDB_txn* begun = nullptr;
  if (const int code = mdb_txn_begin(env_.get(), nullptr, 0, &begun); code != 0) {
    return lmdb_error(code, "beginning a write", directory_);
  }
  Txn txn(begun);
  LmdbRows rows(begun, trees_, directory_);
  Outcomes outcomes;
  std::size_t growth = 0;
  for (const std::unique_ptr<LmdbJob>& job : batch) {
    Result<Judgement> judgement = judge(job->items(), [&rows](const Key& key) { return rows.get(key); });
    if (!judgement) {
      outcomes.emplace_back(judgement.error());
    } else if (auto* cancelled = std::get_if<Cancelled>(&*judgement)) {
      outcomes.emplace_back(TransactOutcome(std::move(*cancelled)));
    } else {
      Result<std::size_t> added = apply_all(rows, *job, std::get<std::vector<Effect>>(*judgement));
      if (!added) return added.error();
      growth += *added;
      outcomes.emplace_back(TransactOutcome(Committed{}));
    }
  }
  if (growth == 0) return outcomes;  // Nothing to write: every condition failed, or there were only checks.
  if (Result<void> good = reserve(growth + kGrowthBytes); !good) return good.error();
  if (const int code = mdb_txn_commit(txn.release()); code != 0) {
    return lmdb_error(code, "committing a write", directory_);
  }
  return outcomes;
}

}  // namespace facetheory
