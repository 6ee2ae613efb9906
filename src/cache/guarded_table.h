// GuardedTable: a table behind a circuit breaker for writes (write_breaker.h). Reads are passed on. For .cc files only,
// since it needs Asio. May be used from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "facetheory/cache/write_breaker.h"
#include "facetheory/table/table.h"

namespace facetheory {

class GuardedTable final : public Table {
 public:
  // The table and the clock outlive it.
  GuardedTable(Table& inner, Clock& clock, int failures, Duration pause)
      : inner_(inner), clock_(clock), writes_("the table", clock, failures, pause) {}

  Task<Result<void>> create() override { return inner_.create(); }
  Task<Result<TableDescription>> describe() override { return inner_.describe(); }
  std::optional<DiskUse> disk_use() const override { return inner_.disk_use(); }
  std::optional<std::uint64_t> version() const override { return inner_.version(); }
  std::optional<std::uint64_t> stamp(const std::vector<Key>& keys) const override {
    return inner_.stamp(keys);
  }
  bool left_alone(const RowSet& rows, std::uint64_t from, std::uint64_t to) const override {
    return inner_.left_alone(rows, from, to);
  }

  WriteBreaker& writes() { return writes_; }
  const WriteBreaker& writes() const { return writes_; }
  // A write that changes nothing.
  Task<void> probe();

 private:
  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override {
    return inner_.get(std::move(key), consistency);
  }
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override {
    return inner_.get_all(std::move(keys), consistency);
  }
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override;
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override;
  Task<Result<QueryPage>> do_query(Query query) override { return inner_.query(std::move(query)); }
  Task<Result<ScanPage>> do_scan(Scan scan) override { return inner_.scan(std::move(scan)); }

  // Constant after construction.
  Table& inner_;
  Clock& clock_;

  WriteBreaker writes_;
};

}  // namespace facetheory
