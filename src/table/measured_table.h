// A table that wraps another and tells an observer how long each operation took and whether it succeeded. Operations
// are named as the methods are. What validation refuses reaches neither.
//
// It costs some 0.3 microseconds: two looks at the clock, a coroutine's frame, and validating twice.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/store_observer.h"
#include "facetheory/table/forwarding_table.h"

namespace facetheory {

class MeasuredTable final : public TransparentTable {
 public:
  // The clock must outlive the table.
  MeasuredTable(std::shared_ptr<Table> inner, StoreObserver observer, Clock& clock = system_clock());

  Task<Result<void>> create() override;
  Task<Result<TableDescription>> describe() override;

 private:
  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override;
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override;
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override;
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override;
  Task<Result<QueryPage>> do_query(Query query) override;
  Task<Result<ScanPage>> do_scan(Scan scan) override;

  // Constant after construction.
  StoreObserver observer_;
  Clock& clock_;
};

}  // namespace facetheory
