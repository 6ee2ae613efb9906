#include "tests/conformance/retrying_table.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/table/forwarding_table.h"

namespace facetheory::test {
namespace {

constexpr int kAttempts = 50;

class RetryingTable final : public ForwardingTable {
 public:
  explicit RetryingTable(std::unique_ptr<Table> inner) : ForwardingTable(std::move(inner)) {}

 private:
  template <typename T, typename Operation>
  static Task<Result<T>> repeated(Operation operation) {
    for (int attempt = 1;; ++attempt) {
      Result<T> result = co_await operation();
      if (result || result.error().code != ErrorCode::unavailable || attempt == kAttempts) co_return result;
    }
  }

  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override {
    auto operation = [this, key, consistency] { return inner().get(key, consistency); };
    return repeated<std::optional<Item>>(std::move(operation));
  }
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override {
    auto operation = [this, keys, consistency] { return inner().get_all(keys, consistency); };
    return repeated<std::vector<std::optional<Item>>>(std::move(operation));
  }
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override {
    auto operation = [this, write, durability] { return inner().write(write, durability); };
    return repeated<WriteOutcome>(std::move(operation));
  }
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override {
    auto operation = [this, items, client_token] { return inner().transact(items, client_token); };
    return repeated<TransactOutcome>(std::move(operation));
  }
  Task<Result<QueryPage>> do_query(Query query) override {
    auto operation = [this, query] { return inner().query(query); };
    return repeated<QueryPage>(std::move(operation));
  }
  Task<Result<ScanPage>> do_scan(Scan scan) override {
    auto operation = [this, scan] { return inner().scan(scan); };
    return repeated<ScanPage>(std::move(operation));
  }
};

}  // namespace

std::unique_ptr<Table> retrying(std::unique_ptr<Table> inner) {
  return std::make_unique<RetryingTable>(std::move(inner));
}

}  // namespace facetheory::test
