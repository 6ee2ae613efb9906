#include "bench/peers/sqlite_writer.h"

#include <utility>

namespace facetheory::bench {
namespace {

constexpr const char* kAcquire =
    "INSERT INTO lock (pk, lease_token, lease_expires_at, ttl) VALUES (?1, ?2, ?3, ?4) "
    "ON CONFLICT (pk) DO UPDATE SET lease_token = excluded.lease_token, lease_expires_at = "
    "excluded.lease_expires_at, "
    "ttl = excluded.ttl WHERE lease_expires_at <= ?5";
constexpr const char* kDeleteLock =
    "DELETE FROM lock WHERE pk = ?1 AND lease_token = ?2 AND lease_expires_at > ?3";

}  // namespace

Error sqlite_error(const std::string& what, sqlite3& database) {
  return {ErrorCode::unavailable, "sqlite: " + what + ": " + sqlite3_errmsg(&database)};
}

Result<SqliteDatabase> open_database(const std::filesystem::path& file) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &opened,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  SqliteDatabase database(opened);
  if (code != SQLITE_OK) {
    return Error{ErrorCode::unavailable, "sqlite: open " + file.string() + ": " + sqlite3_errstr(code)};
  }
  sqlite3_busy_timeout(opened, 10'000);
  return database;
}

Result<void> execute(sqlite3& database, const char* sql) {
  if (sqlite3_exec(&database, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return sqlite_error(sql, database);
  return {};
}

Result<SqliteStatement> prepare(sqlite3& database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(&database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) {
    return sqlite_error(sql, database);
  }
  return SqliteStatement(statement);
}

void bind_parameter(sqlite3_stmt& statement, int index, std::string_view text) {
  sqlite3_bind_text(&statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

void bind_parameter(sqlite3_stmt& statement, int index, std::int64_t number) {
  sqlite3_bind_int64(&statement, index, number);
}

bool run(sqlite3_stmt& statement) {
  const int code = sqlite3_step(&statement);
  sqlite3_reset(&statement);
  return code == SQLITE_DONE;
}

bool put_meta(sqlite3_stmt& statement, std::string_view pk, const Meta& meta) {
  bind_parameter(statement, 1, pk);
  bind_parameter(statement, 2, meta.s3_key);
  bind_parameter(statement, 3, meta.generated_at);
  bind_parameter(statement, 4, meta.revalidate_seconds);
  bind_parameter(statement, 5, meta.etag);
  bind_parameter(statement, 6, meta.ttl);
  return run(statement);
}

Result<std::unique_ptr<SqliteWriter>> SqliteWriter::start(SqliteDatabase database) {
  auto writer = std::unique_ptr<SqliteWriter>(new SqliteWriter(std::move(database)));
  if (Result<void> prepared = writer->prepare_statements(); !prepared) return prepared.error();
  writer->thread_ = std::thread([raw = writer.get()] { raw->work(); });
  return writer;
}

SqliteWriter::~SqliteWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_arrived_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Result<void> SqliteWriter::prepare_statements() {
  const std::pair<SqliteStatement*, const char*> statements[] = {{&begin_, "BEGIN IMMEDIATE"},
                                                                 {&commit_, "COMMIT"},
                                                                 {&acquire_, kAcquire},
                                                                 {&delete_lock_, kDeleteLock},
                                                                 {&put_meta_, kPutMeta}};
  for (const auto& [statement, sql] : statements) {
    auto prepared = prepare(*database_, sql);
    if (!prepared) return prepared.error();
    *statement = std::move(*prepared);
  }
  return {};
}

void SqliteWriter::submit(std::vector<SqliteOperation*>& operations) {
  {
    const std::lock_guard lock(mutex_);
    queued_.insert(queued_.end(), operations.begin(), operations.end());
  }
  operations.clear();
  work_arrived_.notify_one();
}

Result<void> SqliteWriter::completed(std::vector<SqliteOperation*>& operations) {
  std::unique_lock lock(mutex_);
  work_done_.wait(lock, [this] { return !done_.empty() || !failure_; });
  operations.insert(operations.end(), done_.begin(), done_.end());
  done_.clear();
  return failure_;
}

void SqliteWriter::work() {
  std::vector<SqliteOperation*> batch;
  while (true) {
    batch.clear();
    {
      std::unique_lock lock(mutex_);
      work_arrived_.wait(lock, [this] { return stopping_ || !queued_.empty(); });
      if (stopping_) return;
      batch.swap(queued_);
    }
    Result<void> committed = commit(batch);
    {
      const std::lock_guard lock(mutex_);
      if (!committed) failure_ = committed;
      done_.insert(done_.end(), batch.begin(), batch.end());
    }
    work_done_.notify_one();
  }
}

Result<void> SqliteWriter::commit(const std::vector<SqliteOperation*>& operations) {
  if (!bench::run(*begin_)) return sqlite_error("begin", *database_);
  for (SqliteOperation* operation : operations) {
    if (!perform(*operation)) {
      const Error error = sqlite_error("write", *database_);
      if (Result<void> undone = execute(*database_, "ROLLBACK"); !undone) return undone;
      return error;
    }
  }
  if (!bench::run(*commit_)) return sqlite_error("commit", *database_);
  return {};
}

bool SqliteWriter::perform(SqliteOperation& operation) {
  if (operation.kind == SqliteOperation::Kind::acquire) {
    const std::int64_t expires_at = operation.now + kLeaseSeconds;
    bind_parameter(*acquire_, 1, operation.pk);
    bind_parameter(*acquire_, 2, operation.token);
    bind_parameter(*acquire_, 3, expires_at);
    bind_parameter(*acquire_, 4, expires_at + kLockTtlSeconds);
    bind_parameter(*acquire_, 5, operation.now);
    if (!bench::run(*acquire_)) return false;
    operation.happened = sqlite3_changes(database_.get()) == 1;
    return true;
  }
  // The lock goes first: whether it was there decides whether anything is written.
  bind_parameter(*delete_lock_, 1, operation.pk);
  bind_parameter(*delete_lock_, 2, operation.token);
  bind_parameter(*delete_lock_, 3, operation.now);
  if (!bench::run(*delete_lock_)) return false;
  operation.happened = sqlite3_changes(database_.get()) == 1;
  return !operation.happened || put_meta(*put_meta_, operation.pk, operation.meta);
}

}  // namespace facetheory::bench
