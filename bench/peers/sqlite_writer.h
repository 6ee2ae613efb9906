// SQLite as a store of leases and pages, in its fastest honest form: two tables without row ids, prepared
// statements, and one thread that writes: it takes everything that is queued into one transaction and commits
// once for all of it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sqlite3.h>

#include "facetheory/base/result.h"

#include "bench/pages.h"

namespace facetheory::bench {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
using SqliteDatabase = std::unique_ptr<sqlite3, CloseDatabase>;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

Result<SqliteDatabase> open_database(const std::filesystem::path& file);
Result<void> execute(sqlite3& database, const char* sql);
Result<SqliteStatement> prepare(sqlite3& database, const char* sql);
Error sqlite_error(const std::string& what, sqlite3& database);

// Binds text that stays in place until the statement has run.
void bind_parameter(sqlite3_stmt& statement, int index, std::string_view text);
void bind_parameter(sqlite3_stmt& statement, int index, std::int64_t number);

// Runs a statement that answers no rows, and makes it ready for the next time. False: see the database's
// message.
bool run(sqlite3_stmt& statement);

// Inserts or replaces a page's META row.
inline constexpr const char* kPutMeta =
    "INSERT INTO meta (pk, s3_key, generated_at, revalidate_seconds, etag, ttl) VALUES (?1, ?2, ?3, ?4, ?5, "
    "?6) "
    "ON CONFLICT (pk) DO UPDATE SET s3_key = excluded.s3_key, generated_at = excluded.generated_at, "
    "revalidate_seconds = excluded.revalidate_seconds, etag = excluded.etag, ttl = excluded.ttl";
bool put_meta(sqlite3_stmt& statement, std::string_view pk, const Meta& meta);

// Half a cycle of one caller. Belongs to the writer from submit() until it comes back from completed().
struct SqliteOperation {
  enum class Kind { acquire, publish };
  Kind kind = Kind::acquire;
  std::string_view pk;
  std::string token;
  std::int64_t now = 0;
  Meta meta;
  bool happened = false;
};

class SqliteWriter {
 public:
  static Result<std::unique_ptr<SqliteWriter>> start(SqliteDatabase database);
  ~SqliteWriter();
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  // Queues them all; takes the vector's elements and leaves it empty.
  void submit(std::vector<SqliteOperation*>& operations);

  // Waits until something is committed and adds it to `operations`.
  Result<void> completed(std::vector<SqliteOperation*>& operations);

 private:
  explicit SqliteWriter(SqliteDatabase database) : database_(std::move(database)) {}
  Result<void> prepare_statements();
  void work();
  Result<void> commit(const std::vector<SqliteOperation*>& operations);
  bool perform(SqliteOperation& operation);

  // Once the writer's thread runs, only that thread touches these.
  SqliteDatabase database_;
  SqliteStatement begin_, commit_, acquire_, delete_lock_, put_meta_;

  std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::condition_variable work_done_;
  // Guarded by mutex_.
  std::vector<SqliteOperation*> queued_;
  std::vector<SqliteOperation*> done_;
  Result<void> failure_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace facetheory::bench
