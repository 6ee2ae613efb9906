#include "facetheory/table/limited_table.h"

#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/limited_call.h"

namespace facetheory {
namespace {

std::string milliseconds_of(Duration limit) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()) + " ms";
}

class LimitedTable final : public Table {
 public:
  LimitedTable(std::unique_ptr<Table> inner, TableLimits limits, boost::asio::any_io_executor executor,
               Clock& clock)
      : inner_(std::move(inner)), limits_(std::move(limits)), executor_(std::move(executor)), clock_(clock) {}

  Task<Result<void>> create() override { return inner_->create(); }
  Task<Result<TableDescription>> describe() override { return inner_->describe(); }
  std::optional<DiskUse> disk_use() const override { return inner_->disk_use(); }
  std::optional<std::uint64_t> version() const override { return inner_->version(); }
  std::optional<std::uint64_t> stamp(const std::vector<Key>& keys) const override {
    return inner_->stamp(keys);
  }
  bool left_alone(const RowSet& rows, std::uint64_t from, std::uint64_t to) const override {
    return inner_->left_alone(rows, from, to);
  }

 private:
  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override {
    return read(inner_->get(std::move(key), consistency));
  }
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override {
    return read(inner_->get_all(std::move(keys), consistency));
  }
  Task<Result<QueryPage>> do_query(Query query) override { return read(inner_->query(std::move(query))); }
  Task<Result<ScanPage>> do_scan(Scan scan) override { return inner_->scan(std::move(scan)); }
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override {
    return written(inner_->write(std::move(write), durability));
  }
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override {
    return written(inner_->transact(std::move(items), std::move(client_token)));
  }

  template <typename T>
  Task<Result<T>> read(Task<Result<T>> task) const {
    if (!limits_.read) return task;
    return read_within(*limits_.read, std::move(task));
  }
  template <typename T>
  Task<Result<T>> read_within(Duration limit, Task<Result<T>> task) const {
    auto found = co_await call_within(executor_, clock_, limit, inner_, std::move(task));
    if (found) co_return *std::move(found);
    co_return Error{ErrorCode::unavailable, "the table did not answer within " + milliseconds_of(limit)};
  }

  template <typename T>
  Task<Result<T>> written(Task<Result<T>> task) const {
    if (!limits_.write) return task;
    return written_within(*limits_.write, std::move(task));
  }
  template <typename T>
  Task<Result<T>> written_within(Duration limit, Task<Result<T>> task) const {
    struct Kept {
      std::shared_ptr<Table> table;
      std::shared_ptr<PendingWrites::Place> place;
    };
    auto kept = std::make_shared<Kept>();
    kept->table = inner_;
    kept->place = limits_.pending->begin(0);
    if (!kept->place)
      co_return Error{ErrorCode::unavailable, std::to_string(limits_.pending->count()) +
                                                  " writes to the table have begun and not ended"};
    std::shared_ptr<void> until_it_ends = std::move(kept);
    auto outcome = co_await call_within(executor_, clock_, limit, std::move(until_it_ends), std::move(task));
    if (outcome) co_return *std::move(outcome);
    co_return Error{ErrorCode::ambiguous,
                    "the table did not acknowledge a write within " + milliseconds_of(limit)};
  }

  // Constant after construction.
  const std::shared_ptr<Table> inner_;
  const TableLimits limits_;
  const boost::asio::any_io_executor executor_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<Table> with_limits(std::unique_ptr<Table> table, TableLimits limits,
                                   const boost::asio::any_io_executor& executor, Clock& clock) {
  return std::make_unique<LimitedTable>(std::move(table), std::move(limits), executor, clock);
}

}  // namespace facetheory
