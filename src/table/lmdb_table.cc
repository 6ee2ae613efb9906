#include "facetheory/table/lmdb_table.h"

#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "facetheory/table/lmdb_environment.h"
#include "facetheory/table/lmdb_error.h"
#include "facetheory/table/lmdb_keys.h"
#include "facetheory/table/lmdb_leases.h"
#include "facetheory/table/lmdb_rows.h"
#include "facetheory/table/operations.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;

// A job that resumes the coroutine waiting for it, on that coroutine's own executor.
template <typename Handler>
class WaitedJob final : public LmdbJob {
 public:
  WaitedJob(std::vector<TransactItem> items, Durability durability, Handler handler)
      : LmdbJob(std::move(items), durability),
        handler_(std::move(handler)),
        work_(asio::make_work_guard(handler_)) {}

  void complete(Result<TransactOutcome> outcome) override {
    auto resume = [handler = std::move(handler_), outcome = std::move(outcome)]() mutable {
      std::move(handler)(std::move(outcome));
    };
    asio::post(work_.get_executor(), std::move(resume));
    work_.reset();
  }

 private:
  Handler handler_;
  asio::executor_work_guard<asio::associated_executor_t<Handler>> work_;
};

// Runs `read` with the rows of one snapshot; the transaction ends before anything can be awaited.
template <typename T, typename Scopes, typename Read>
Result<T> with_snapshot(LmdbEnvironment& environment, const Scopes& scopes, Read read) {
  const LmdbEnvironment::Reader reader(environment, scopes);
  if (reader.error() != 0) return lmdb_error(reader.error(), "beginning a read", environment.directory());
  return read(LmdbRows(reader.txn(), environment.trees(), environment.directory(), reader.leases()));
}

class LmdbTable final : public Table {
 public:
  explicit LmdbTable(std::shared_ptr<LmdbEnvironment> environment) : environment_(std::move(environment)) {}

  Task<Result<void>> create() override;
  Task<Result<TableDescription>> describe() override;
  std::optional<DiskUse> disk_use() const override { return environment_->disk_use(); }
  std::optional<std::uint64_t> version() const override;
  std::optional<std::uint64_t> stamp(const std::vector<Key>& keys) const override;
  bool left_alone(const RowSet& rows, std::uint64_t from, std::uint64_t to) const override {
    return environment_->commits().left_alone(rows, from, to);
  }
  std::optional<FilePlace> place_of(const Key& key, std::string_view attribute) const override;

 private:
  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override;
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override;
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override;
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override;
  Task<Result<QueryPage>> do_query(Query query) override;
  Task<Result<ScanPage>> do_scan(Scan scan) override;

  Task<Result<TransactOutcome>> commit(std::vector<TransactItem> items, Durability durability);

  std::shared_ptr<LmdbEnvironment> environment_;
};

// Takes the number from a new snapshot: mdb_env_info's runs ahead of what readers see. Leases in memory do not change
// it.
std::optional<std::uint64_t> LmdbTable::version() const {
  const LmdbEnvironment::Reader reader(*environment_);
  if (reader.error() != 0) return std::nullopt;
  return mdb_txn_id(reader.txn());
}

std::optional<std::uint64_t> LmdbTable::stamp(const std::vector<Key>& keys) const {
  const LmdbEnvironment::Reader reader(*environment_);
  if (reader.error() != 0) return std::nullopt;
  const LmdbRows rows(reader.txn(), environment_->trees(), environment_->directory(), reader.leases());
  std::uint64_t all = keys.size();
  for (const Key& key : keys) {
    const auto one = rows.stamp(key);
    if (!one) return std::nullopt;
    all = all * 0x9E3779B97F4A7C15 + *one;  // Odd, so that every bit of each counts; their order does, too.
  }
  return all;
}

std::optional<FilePlace> LmdbTable::place_of(const Key& key, std::string_view attribute) const {
  const LmdbEnvironment::Reader reader(*environment_);
  if (reader.error() != 0 || !environment_->file()) return std::nullopt;
  const LmdbRows rows(reader.txn(), environment_->trees(), environment_->directory(), reader.leases());
  const auto offset = rows.offset_of(key, attribute);
  if (!offset) return std::nullopt;
  return FilePlace{environment_->file(), *offset};
}

Task<Result<void>> LmdbTable::create() {
  co_return Result<void>();
}

Task<Result<TableDescription>> LmdbTable::describe() {
  TableDescription description{.uri = "lmdb:" + environment_->directory(), .status = "ACTIVE"};
  const LmdbEnvironment::Reader reader(*environment_, LmdbLeases::Scope::table());
  MDB_stat rows{};
  MDB_stat leases{};
  int code = reader.error();
  if (code == 0) code = mdb_stat(reader.txn(), environment_->trees().rows, &rows);
  if (code == 0) code = mdb_stat(reader.txn(), environment_->trees().leases, &leases);
  if (code != 0) co_return lmdb_error(code, "describing the table", environment_->directory());
  // The table's own two records, format and large tree, are not rows; a list of overlong keys counts as one.
  description.items = rows.ms_entries + leases.ms_entries - 2;
  for (const auto& [key, record] : reader.leases()) {
    MDB_val bytes = to_val(key);
    MDB_val value{};
    const auto absent = [&](MDB_dbi tree) {
      return mdb_get(reader.txn(), tree, &bytes, &value) == MDB_NOTFOUND;
    };
    if (absent(environment_->trees().rows) && absent(environment_->trees().leases)) ++description.items;
  }
  co_return description;
}

Task<Result<std::optional<Item>>> LmdbTable::do_get(Key key, Consistency) {
  const LmdbKey where = LmdbKey::of(key);
  Result<std::optional<Attributes>> attributes =
      with_snapshot<std::optional<Attributes>>(*environment_, LmdbLeases::Scope::row(where.bytes),
                                               [&](const LmdbRows& rows) { return rows.get(where, key); });
  if (!attributes) co_return attributes.error();
  if (!*attributes) co_return std::optional<Item>();
  co_return std::optional<Item>(Item{std::move(key), **std::move(attributes)});
}

Task<Result<std::vector<std::optional<Item>>>> LmdbTable::do_get_all(std::vector<Key> keys, Consistency) {
  using Items = std::vector<std::optional<Item>>;
  std::vector<LmdbKey> where;
  where.reserve(keys.size());
  for (const Key& key : keys)
    where.push_back(LmdbKey::of(key));
  std::vector<LmdbLeases::Scope> scopes;
  scopes.reserve(keys.size());
  for (const LmdbKey& one : where)
    scopes.push_back(LmdbLeases::Scope::row(one.bytes));
  co_return with_snapshot<Items>(*environment_, scopes, [&](const LmdbRows& rows) -> Result<Items> {
    Items items;
    items.reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Result<std::optional<Attributes>> attributes = rows.get(where[i], keys[i]);
      if (!attributes) return std::move(attributes).error();
      auto& item = items.emplace_back();
      if (*attributes) item = Item{std::move(keys[i]), **std::move(attributes)};
    }
    return items;
  });
}

Task<Result<QueryPage>> LmdbTable::do_query(Query query) {
  const std::string partition = LmdbKey::partition_prefix(query.pk);
  co_return with_snapshot<QueryPage>(*environment_, LmdbLeases::Scope::partition(partition),
                                     [&query](const LmdbRows& rows) { return rows.query(query); });
}

Task<Result<ScanPage>> LmdbTable::do_scan(Scan scan) {
  co_return with_snapshot<ScanPage>(*environment_, LmdbLeases::Scope::table(),
                                    [&scan](const LmdbRows& rows) { return rows.scan(scan); });
}

Task<Result<WriteOutcome>> LmdbTable::do_write(Write write, Durability durability) {
  std::vector<TransactItem> items;
  items.push_back(as_transact_item(std::move(write)));
  Result<TransactOutcome> outcome = co_await commit(std::move(items), durability);
  if (!outcome) co_return outcome.error();
  co_return as_write_outcome(*std::move(outcome));
}

Task<Result<TransactOutcome>> LmdbTable::do_transact(std::vector<TransactItem> items, std::string) {
  return commit(std::move(items), Durability::machine);
}

Task<Result<TransactOutcome>> LmdbTable::commit(std::vector<TransactItem> items, Durability durability) {
  auto submit = [&](auto handler) {
    using Job = WaitedJob<decltype(handler)>;
    environment_->submit(std::make_unique<Job>(std::move(items), durability, std::move(handler)));
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Result<TransactOutcome>)>(
      submit, asio::use_awaitable);
}

}  // namespace

Result<std::unique_ptr<Table>> open_lmdb_table(const std::string& directory, const LmdbOptions& options) {
  Result<std::shared_ptr<LmdbEnvironment>> environment = LmdbEnvironment::open(directory, options);
  if (!environment) return environment.error();
  return std::unique_ptr<Table>(std::make_unique<LmdbTable>(*std::move(environment)));
}

}  // namespace facetheory
