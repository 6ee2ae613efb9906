// SQLite in WAL mode with synchronous=FULL. Cycles go through the writer thread's queue, reads happen in the
// caller's thread on a connection of its own.
#include <algorithm>
#include <utility>
#include <vector>

#include "bench/peers/peer.h"
#include "bench/peers/sqlite_writer.h"

namespace facetheory::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kSchema =
    "CREATE TABLE meta (pk TEXT PRIMARY KEY, s3_key TEXT NOT NULL, generated_at INTEGER NOT NULL, "
    "revalidate_seconds INTEGER NOT NULL, etag TEXT, ttl INTEGER) WITHOUT ROWID;"
    "CREATE TABLE lock (pk TEXT PRIMARY KEY, lease_token TEXT NOT NULL, lease_expires_at INTEGER NOT NULL, "
    "ttl INTEGER) WITHOUT ROWID";

// Memory enough for every page of the file: the best that SQLite can do.
constexpr const char* kSettings =
    "PRAGMA synchronous = FULL; PRAGMA mmap_size = 4294967296; PRAGMA cache_size = -1048576";

constexpr const char* kGetMeta =
    "SELECT s3_key, generated_at, revalidate_seconds, etag, ttl FROM meta WHERE pk = ?1";

constexpr std::size_t kRowsPerTransaction = 50'000;

void copy_text(sqlite3_stmt& statement, int column, std::string& text) {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(&statement, column));
  text.assign(bytes, static_cast<std::size_t>(sqlite3_column_bytes(&statement, column)));
}

class SqlitePeer final : public Peer {
 public:
  explicit SqlitePeer(std::filesystem::path file) : file_(std::move(file)) {}

  std::string name() const override { return "sqlite"; }
  std::string version() const override {
    return std::string("SQLite ") + sqlite3_libversion() + ", WAL, synchronous=FULL, one writer thread";
  }

  // Filled without any journal, which is quick, and turned to WAL afterwards.
  Result<void> populate(const KeyList& pages, const Progress& progress) override {
    auto database = open_database(file_);
    if (!database) return database.error();
    for (const char* sql :
         {"PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "PRAGMA cache_size = -2097152", kSchema}) {
      if (Result<void> done = execute(**database, sql); !done) return done;
    }
    {
      auto statement = prepare(**database, kPutMeta);
      if (!statement) return statement.error();
      SeededRandom random(++seed_);
      for (std::size_t begin = 0; begin < pages.size(); begin += kRowsPerTransaction) {
        const std::size_t end = std::min(begin + kRowsPerTransaction, pages.size());
        if (Result<void> begun = execute(**database, "BEGIN"); !begun) return begun;
        for (std::size_t i = begin; i < end; ++i) {
          if (!put_meta(**statement, pages[i], make_meta(pages[i], now_seconds(), random))) {
            return sqlite_error("insert", **database);
          }
        }
        if (Result<void> committed = execute(**database, "COMMIT"); !committed) return committed;
        progress(end);
      }
    }
    if (Result<void> done = execute(**database, "PRAGMA journal_mode = WAL"); !done) return done;
    database->reset();
    return open_for_use();
  }

  Result<Tally> cycles(const KeyList& pages, int callers, Deadline until) override {
    SeededRandom random(++seed_);
    std::vector<SqliteOperation> operations(static_cast<std::size_t>(callers));
    std::vector<SqliteOperation*> ready;
    std::vector<SqliteOperation*> done;
    for (SqliteOperation& operation : operations) {
      make_acquire(operation, pages, random);
      ready.push_back(&operation);
    }
    Tally tally;
    int working = callers;
    while (working > 0) {
      writer_->submit(ready);
      done.clear();
      if (Result<void> completed = writer_->completed(done); !completed) return completed.error();
      for (SqliteOperation* operation : done) {
        if (operation->kind == SqliteOperation::Kind::acquire && operation->happened) {
          operation->kind = SqliteOperation::Kind::publish;
          operation->now = now_seconds();
          operation->meta = make_meta(operation->pk, operation->now, random);
          ready.push_back(operation);
          continue;
        }
        if (operation->happened) {
          ++tally.operations;
        } else if (operation->kind == SqliteOperation::Kind::acquire) {
          ++tally.refused;
        } else {
          return Error{ErrorCode::internal, "sqlite: a publish under a lease just taken was refused"};
        }
        if (Clock::now() >= until) {
          --working;
        } else {
          make_acquire(*operation, pages, random);
          ready.push_back(operation);
        }
      }
    }
    return tally;
  }

  Result<Tally> reads(const KeyList& keys, Deadline until) override {
    Tally tally;
    sqlite3_stmt& statement = *get_meta_;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i % 64 == 0 && Clock::now() >= until) break;
      bind_parameter(statement, 1, keys[i]);
      if (sqlite3_step(&statement) != SQLITE_ROW) {
        return Error{ErrorCode::internal, "sqlite: page " + std::string(keys[i]) + " is not there"};
      }
      Meta meta;
      copy_text(statement, 0, meta.s3_key);
      meta.generated_at = sqlite3_column_int64(&statement, 1);
      meta.revalidate_seconds = sqlite3_column_int64(&statement, 2);
      copy_text(statement, 3, meta.etag);
      meta.ttl = sqlite3_column_int64(&statement, 4);
      sqlite3_reset(&statement);
      if (!plausible(meta))
        return Error{ErrorCode::corrupt, "sqlite: page " + std::string(keys[i]) + " is damaged"};
      ++tally.operations;
    }
    return tally;
  }

 private:
  static void make_acquire(SqliteOperation& operation, const KeyList& pages, Random& random) {
    operation.kind = SqliteOperation::Kind::acquire;
    operation.pk = draw_one(pages, random);
    operation.token = uuid_v4(random);
    operation.now = now_seconds();
  }

  Result<void> open_for_use() {
    auto for_reads = open_database(file_);
    if (!for_reads) return for_reads.error();
    if (Result<void> set = execute(**for_reads, kSettings); !set) return set;
    auto get_meta = prepare(**for_reads, kGetMeta);
    if (!get_meta) return get_meta.error();
    reader_ = std::move(*for_reads);
    get_meta_ = std::move(*get_meta);

    auto for_writes = open_database(file_);
    if (!for_writes) return for_writes.error();
    if (Result<void> set = execute(**for_writes, kSettings); !set) return set;
    auto writer = SqliteWriter::start(std::move(*for_writes));
    if (!writer) return writer.error();
    writer_ = std::move(*writer);
    return {};
  }

  const std::filesystem::path file_;
  std::unique_ptr<SqliteWriter> writer_;
  SqliteDatabase reader_;
  SqliteStatement get_meta_;
  std::uint64_t seed_ = 0;
};

}  // namespace

Result<std::unique_ptr<Peer>> open_sqlite_peer(const std::filesystem::path& directory) {
  return std::unique_ptr<Peer>(std::make_unique<SqlitePeer>(directory / "pages.sqlite"));
}

}  // namespace facetheory::bench
