#include "facetheory/table/limited_table.h"

#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/duration.h"
#include "facetheory/base/limited_call.h"
#include "facetheory/table/forwarding_table.h"

namespace facetheory {
namespace {

class LimitedTable final : public TransparentTable {
 public:
  LimitedTable(std::unique_ptr<Table> inner, TableLimits limits, boost::asio::any_io_executor executor,
               Clock& clock)
      : TransparentTable(std::move(inner)),
        limits_(std::move(limits)),
        executor_(std::move(executor)),
        clock_(clock) {}

 private:
  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override {
    return read(inner().get(std::move(key), consistency));
  }
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override {
    return read(inner().get_all(std::move(keys), consistency));
  }
  Task<Result<QueryPage>> do_query(Query query) override { return read(inner().query(std::move(query))); }
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override {
    return written(inner().write(std::move(write), durability));
  }
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override {
    return written(inner().transact(std::move(items), std::move(client_token)));
  }

  template <typename T>
  Task<Result<T>> read(Task<Result<T>> task) const {
    if (!limits_.read) return task;
    return read_within(*limits_.read, std::move(task));
  }
  template <typename T>
  Task<Result<T>> read_within(Duration limit, Task<Result<T>> task) const {
    auto found = co_await call_within(executor_, clock_, limit, shared_inner(), std::move(task));
    if (found) co_return *std::move(found);
    co_return Error{ErrorCode::unavailable, "the table did not answer within " + in_milliseconds(limit)};
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
    kept->table = shared_inner();
    kept->place = limits_.pending->begin(0);
    if (!kept->place)
      co_return Error{ErrorCode::unavailable, std::to_string(limits_.pending->count()) +
                                                  " writes to the table have begun and not ended"};
    std::shared_ptr<void> until_it_ends = std::move(kept);
    auto outcome = co_await call_within(executor_, clock_, limit, std::move(until_it_ends), std::move(task));
    if (outcome) co_return *std::move(outcome);
    co_return Error{ErrorCode::ambiguous,
                    "the table did not acknowledge a write within " + in_milliseconds(limit)};
  }

  // Constant after construction.
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
