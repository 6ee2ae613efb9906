#include "facetheory/table/lmdb_environment.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facetheory/base/private_folder.h"
#include "facetheory/table/evaluate.h"
#include "facetheory/table/item_size.h"
#include "facetheory/table/lmdb_error.h"
#include "facetheory/table/lmdb_rows.h"

namespace facetheory {
namespace {

// Address space, not disk: the file grows as it is filled. All processes reserve the same, so that none has
// to follow another one's growth.
constexpr std::size_t kMapBytes = std::size_t{64} << 30;
constexpr unsigned kMaxReaders = 1024;
constexpr std::size_t kMaxBatchRows = 100;
constexpr std::size_t kPageBytes = 4096;
constexpr auto kLinger = std::chrono::microseconds(150);
constexpr int kLooksWithoutLock = 16;
constexpr std::size_t kGrowthBytes = std::size_t{1} << 20;

// The table's own record: key, then "facetheory table" and the version of the byte format.
constexpr std::string_view kFormatKey("\0format", 7);
constexpr std::string_view kFormatName = "facetheory table ";
constexpr int kFormatVersion = 2;
constexpr std::string_view kFormatWithoutLeases = "facetheory table 1";
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

// Writes the table's own record.
int touch(MDB_txn* txn, LmdbTrees trees) {
  const std::string current = std::string(kFormatName) + std::to_string(kFormatVersion);
  MDB_val key = to_val(kFormatKey);
  MDB_val value = to_val(current);
  return mdb_put(txn, trees.leases, &key, &value, 0);
}

// What one LMDB transaction does to the rows, in LMDB and in memory.
class BatchWriter {
 public:
  BatchWriter(MDB_txn* txn, LmdbTrees trees, const std::string& directory, LmdbLeases& leases)
      : txn_(txn),
        trees_(trees),
        directory_(directory),
        number_(mdb_txn_id(txn)),
        leases_(leases),
        rows_(txn, trees, directory, no_leases_) {
    leases_.begin(number_);
  }

  Result<Judgement> judge(const LmdbJob& job) const {
    return facetheory::judge(job.items(), [this](const Key& key) {
      const LmdbKey where = LmdbKey::of(key);
      const LeaseRows leases = leases_.rows(LmdbLeases::Scope::row(where.bytes), number_);
      return LmdbRows(txn_, trees_, directory_, leases).get(where, key);
    });
  }

  // Does all that the job does, at once and for good, if that can be done in memory alone: one row, and nothing that
  // rests upon what this transaction may yet fail to commit.
  bool write_lease(const LmdbJob& job, const std::vector<Effect>& effects) {
    const auto leaves = [](const Effect& effect) { return std::holds_alternative<Leave>(effect); };
    const auto only = std::find_if_not(effects.begin(), effects.end(), leaves);
    if (only == effects.end() || !std::all_of(only + 1, effects.end(), leaves)) return false;
    for (const TransactItem& item : job.items()) {
      if (changed_.contains(LmdbKey::of(key_of(item)).bytes)) return false;
    }
    const Key& key = key_of(job.items()[static_cast<std::size_t>(only - effects.begin())]);
    const LmdbKey where = LmdbKey::of(key);
    if (where.overflow) return false;
    if (const auto* store = std::get_if<Store>(&*only)) {
      return job.durability() == Durability::process &&
             leases_.put(where.bytes, LmdbRows::record_of(where, key, store->attributes));
    }
    const auto in_lmdb = rows_.get(where, key);
    if (!in_lmdb || *in_lmdb) return false;
    leases_.erase(where.bytes);
    return true;
  }

  Result<void> write(const LmdbJob& job, const std::vector<Effect>& effects) {
    for (std::size_t i = 0; i < effects.size(); ++i) {
      if (std::holds_alternative<Leave>(effects[i])) continue;
      const Key& key = key_of(job.items()[i]);
      const auto* store = std::get_if<Store>(&effects[i]);
      Result<void> done = store != nullptr ? rows_.put(key, store->attributes) : rows_.erase(key);
      if (!done) return done;
      if (store != nullptr) changes_lmdb_ = true;
      growth_ += growth_of(store != nullptr ? store->attributes : Attributes(), key);
      std::string bytes = LmdbKey::of(key).bytes;
      if (leases_.end_with(number_, bytes)) ends_leases_ = true;
      changed_.insert(std::move(bytes));
      changed_rows_.add(key);
    }
    return {};
  }

  // A transaction that changes nothing in LMDB has no number, and leases cannot end with it.
  int prepare_commit() {
    if (!ends_leases_ || changes_lmdb_) return 0;
    changes_lmdb_ = true;
    return touch(txn_, trees_);
  }

  // Call it once the transaction is committed: until then the number may become somebody else's.
  void note_in(RecentCommits& commits) const {
    if (changes_lmdb_) commits.note(number_, changed_rows_);
  }

  std::size_t growth() const { return growth_; }  // How much the file may grow; 0: nothing was written.

 private:
  MDB_txn* const txn_;
  const LmdbTrees trees_;
  const std::string& directory_;
  const std::uint64_t number_;
  LmdbLeases& leases_;
  const LeaseRows no_leases_;
  LmdbRows rows_;                  // Those in LMDB alone.
  std::set<std::string> changed_;  // Keys of the rows that the commit changes.
  RowSet changed_rows_;            // The same.
  std::size_t growth_ = 0;
  bool ends_leases_ = false;
  bool changes_lmdb_ = false;  // Certainly: deleting may have found nothing there.
};

}  // namespace

Result<std::shared_ptr<LmdbEnvironment>> LmdbEnvironment::open(const std::string& directory,
                                                               const LmdbOptions& options) {
  const int failure = make_private_folders(directory);
  if (failure == ENOTDIR) return lmdb_error(ENOTDIR, "opening the table", directory);
  struct stat status{};
  if (failure != 0 || ::stat(directory.c_str(), &status) != 0) {
    return lmdb_error(failure != 0 ? failure : errno, "making the directory", directory);
  }

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

// LMDB maps this file, and touching a page for which the disk has no room would kill the process. To be called before
// the environment is opened: closing any descriptor of the file gives up the locks that this process has on it.
int LmdbEnvironment::reserve_lock_file() const {
  constexpr std::size_t kLockBytes = 64 * kMaxReaders;
  const int file = ::open((directory_ + "/lock.mdb").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivateFileMode);
  if (file < 0) return 0;  // LMDB will say why.
  const int code = ::fallocate(file, 0, 0, kLockBytes) != 0 && errno == ENOSPC ? ENOSPC : 0;
  ::close(file);
  return code;
}

// What LMDB leaves of a file for which there was no room from the beginning, it would not open ever again.
void LmdbEnvironment::remove_unfinished_file() const {
  const std::string path = directory_ + "/data.mdb";
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && static_cast<std::size_t>(status.st_size) < 2 * kPageBytes)
    ::unlink(path.c_str());
}

// LMDB takes a file without a byte for a new one. The file of leases is made after LMDB has written its first pages.
Result<void> LmdbEnvironment::check_not_emptied() const {
  struct stat file{};
  struct stat leases{};
  if (::stat((directory_ + "/data.mdb").c_str(), &file) != 0 || file.st_size > 0) return {};
  if (::stat((directory_ + "/leases").c_str(), &leases) != 0) return {};
  return Error{ErrorCode::corrupt,
               "lmdb:" + directory_ +
                   " was cut off: data.mdb has no byte, and `leases` beside it shows that "
                   "it had; restore it, or move both away to start empty"};
}

Result<void> LmdbEnvironment::start() {
  if (Result<void> good = check_not_emptied(); !good) return good;
  MDB_env* env = nullptr;
  if (const int code = mdb_env_create(&env); code != 0)
    return lmdb_error(code, "opening the table", directory_);
  env_.reset(env);
  int code = mdb_env_set_mapsize(env, kMapBytes);
  if (code == 0) code = mdb_env_set_maxreaders(env, kMaxReaders);
  if (code == 0) code = mdb_env_set_maxdbs(env, 1);
  if (code == 0) code = reserve_lock_file();
  if (code == 0) code = mdb_env_open(env, directory_.c_str(), MDB_NOTLS, kPrivateFileMode);
  if (code == ENOSPC) remove_unfinished_file();
  if (code != 0) return lmdb_error(code, "opening the table", directory_);
  mdb_filehandle_t file{};  // LMDB lets children inherit this one.
  if (mdb_env_get_fd(env, &file) == 0) {
    ::fcntl(file, F_SETFD, FD_CLOEXEC);
    if (const int again = ::fcntl(file, F_DUPFD_CLOEXEC, 0); again >= 0)
      file_ = std::make_shared<const OpenFile>(again);
    if (file_ && !can_be_read_at_once(file_->descriptor())) file_.reset();
  }
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

std::optional<DiskUse> LmdbEnvironment::disk_use() {
  const Result<Extent> extent = measure();
  const Reader reader(*this);
  if (!extent || reader.error() != 0) return std::nullopt;
  // These two are what the processes share beside the rows' file. Their length is fixed.
  std::uint64_t fixed = 0;
  for (const char* name : {"/lock.mdb", "/leases"}) {
    struct stat status{};
    if (::stat((directory_ + name).c_str(), &status) == 0)
      fixed += static_cast<std::uint64_t>(status.st_size);
  }
  DiskUse use{.used = fixed, .occupied = fixed + extent->file_bytes};
  for (const MDB_dbi tree : {trees_.rows, trees_.leases}) {
    MDB_stat stat{};
    if (mdb_stat(reader.txn(), tree, &stat) != 0) return std::nullopt;
    use.used += (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) * stat.ms_psize;
  }
  return use;
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
    if (Result<void> good = reserve(kGrowthBytes); !good) return good;
    code = touch(begun, trees_);
  } else if (code == 0) {
    code = mdb_get(begun, trees_.leases, &key, &value);
    const std::string_view stored(static_cast<const char*>(value.mv_data), code == 0 ? value.mv_size : 0);
    if (code == MDB_NOTFOUND || (code == 0 && !stored.starts_with(kFormatName))) {
      return Error{ErrorCode::invalid,
                   "lmdb:" + directory_ + " holds an LMDB file of another program; choose another directory"};
    }
    if (code == 0 && stored == kFormatWithoutLeases) {
      if (Result<void> good = check_unused(); !good) return good;
      if (Result<void> good = reserve(kGrowthBytes); !good) return good;
      code = touch(begun, trees_);
    } else if (code == 0 && stored != current) {
      return Error{ErrorCode::invalid,
                   "lmdb:" + directory_ + " is in format " + std::string(stored.substr(kFormatName.size())) +
                       ", this program knows " + std::to_string(kFormatVersion) + "; use the newer program"};
    }
  }
  if (code == 0) code = mdb_dbi_open(begun, kRowsTree, MDB_CREATE, &trees_.rows);
  mdb_filehandle_t file{};
  struct stat status{};
  if (code == 0) code = mdb_env_get_fd(env_.get(), &file);
  if (code == 0 && ::fstat(file, &status) != 0) code = errno;
  if (code != 0) return lmdb_error(code, "opening the table", directory_);
  Result<std::unique_ptr<LmdbLeases>> leases = LmdbLeases::open(directory_, status.st_ino);
  if (!leases) return leases.error();
  leases_ = *std::move(leases);
  leases_->begin(mdb_txn_id(begun));
  code = mdb_txn_commit(txn.release());
  if (code != 0) return lmdb_error(code, "opening the table", directory_);
  return {};
}

Result<void> LmdbEnvironment::check_unused() const {
  // A line for each reader, that of its process first; titles above.
  const auto note = [](const char* line, void* context) {
    const long process = std::strtol(line, nullptr, 10);
    if (process > 0 && process != ::getpid()) *static_cast<long*>(context) = process;
    return 0;
  };
  long other = 0;
  mdb_reader_list(env_.get(), note, &other);
  if (other == 0) return {};
  return Error{ErrorCode::unavailable,
               "lmdb:" + directory_ + " is in format 1 and in use by process " + std::to_string(other) +
                   " of an older program, which would not see leases of this one; stop it first"};
}

LmdbEnvironment::Reader::Reader(LmdbEnvironment& environment)
    : environment_(environment), slot_(environment.slot_of_this_thread()) {
  txn_ = slot_.txn.exchange(nullptr, std::memory_order_acquire);
  renew();
}

LmdbEnvironment::Reader::Reader(LmdbEnvironment& environment, const LmdbLeases::Scope& scope)
    : Reader(environment, std::span(&scope, 1)) {}

LmdbEnvironment::Reader::Reader(LmdbEnvironment& environment, std::span<const LmdbLeases::Scope> scopes)
    : environment_(environment), slot_(environment.slot_of_this_thread()) {
  txn_ = slot_.txn.exchange(nullptr, std::memory_order_acquire);
  const LmdbLeases& leases = *environment.leases_;
  Txn all_others_wait;
  for (int look = 1;; ++look) {
    const std::uint64_t before = leases.changes(scopes);
    renew();
    if (error_ != 0) return;
    leases_ = leases.rows(scopes, mdb_txn_id(txn_));
    if (leases.changes(scopes) == before) return;
    mdb_txn_reset(txn_);
    if (look == kLooksWithoutLock) {
      MDB_txn* begun = nullptr;
      error_ = mdb_txn_begin(environment.env_.get(), nullptr, 0, &begun);
      all_others_wait.reset(begun);
      if (error_ != 0) return;
    }
  }
}

void LmdbEnvironment::Reader::renew() {
  if (txn_ != nullptr) {
    error_ = mdb_txn_renew(txn_);
    if (error_ != 0) mdb_txn_abort(std::exchange(txn_, nullptr));
  } else {
    MDB_env* const env = environment_.env_.get();
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

Result<void> LmdbEnvironment::check_place() {
  const auto now = std::chrono::steady_clock::now();
  if (now >= next_place_check_) {
    next_place_check_ = now + options_.place_check_interval;
    const std::string path = directory_ + "/data.mdb";
    mdb_filehandle_t file{};
    struct stat ours{};
    struct stat theirs{};
    const bool is_known = mdb_env_get_fd(env_.get(), &file) == 0 && ::fstat(file, &ours) == 0;
    const bool is_there = ::stat(path.c_str(), &theirs) == 0;
    const bool is_gone = !is_there && (errno == ENOENT || errno == ENOTDIR);
    const bool is_another = is_there && (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
    is_displaced_ = is_known && (is_gone || is_another);
  }
  if (!is_displaced_) return {};
  return Error{
      ErrorCode::unavailable,
      "lmdb:" + directory_ +
          " was deleted or replaced while it was open, and what was written now would be lost; put it "
          "back, or restart this program to begin with what is there now"};
}

void LmdbEnvironment::refuse_the_late(Batch& batch) const {
  const auto latest = std::chrono::steady_clock::now() - options_.patience;
  std::erase_if(batch, [&](const std::unique_ptr<LmdbJob>& job) {
    if (job->made_at() >= latest) return false;
    job->complete(
        Error{ErrorCode::unavailable,
              "lmdb:" + directory_ +
                  " could not be written for longer than a write waits: its lock was held by another "
                  "process, which was stopped perhaps, or the disk hung"});
    return true;
  });
}

Result<LmdbEnvironment::Outcomes> LmdbEnvironment::commit(Batch& batch) {
  if (Result<void> good = check_place(); !good) return good.error();
  const bool durable = std::any_of(batch.begin(), batch.end(), [](const std::unique_ptr<LmdbJob>& job) {
    return job->durability() == Durability::machine;
  });
  mdb_env_set_flags(env_.get(), MDB_NOMETASYNC, durable ? 0 : 1);
  MDB_txn* begun = nullptr;
  if (const int code = mdb_txn_begin(env_.get(), nullptr, 0, &begun); code != 0) {
    return lmdb_error(code, "beginning a write", directory_);
  }
  Txn txn(begun);
  refuse_the_late(batch);
  BatchWriter writer(begun, trees_, directory_, *leases_);
  Outcomes outcomes;
  for (auto job = batch.begin(); job != batch.end();) {
    Result<Judgement> judgement = writer.judge(**job);
    if (!judgement) {
      outcomes.emplace_back(judgement.error());
    } else if (auto* cancelled = std::get_if<Cancelled>(&*judgement)) {
      outcomes.emplace_back(TransactOutcome(std::move(*cancelled)));
    } else {
      const auto& effects = std::get<std::vector<Effect>>(*judgement);
      if (writer.write_lease(**job, effects)) {
        (*job)->complete(TransactOutcome(Committed{}));
        job = batch.erase(job);
        continue;
      }
      if (Result<void> good = writer.write(**job, effects); !good) return good.error();
      outcomes.emplace_back(TransactOutcome(Committed{}));
    }
    ++job;
  }
  if (writer.growth() == 0) return outcomes;  // Every condition failed, or there were only checks and leases.
  if (Result<void> good = reserve(writer.growth() + kGrowthBytes); !good) return good.error();
  int code = writer.prepare_commit();
  if (code == 0) code = mdb_txn_commit(txn.release());
  if (code != 0) return lmdb_error(code, "committing a write", directory_);
  writer.note_in(commits_);
  return outcomes;
}

}  // namespace facetheory
