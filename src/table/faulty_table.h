// A table that wraps another and loses answers, delays, throttles, conflicts and fails, on command of a
// script. Operations are named "get", "get_all", "write", "transact", "query" and "scan" in the script.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/fault.h"
#include "facetheory/table/forwarding_table.h"

namespace facetheory {

class FaultyTable final : public ForwardingTable {
 public:
  // The clock must outlive the table.
  FaultyTable(std::shared_ptr<Table> inner, std::shared_ptr<FaultScript> script,
              Clock& clock = system_clock());

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
  std::shared_ptr<FaultScript> script_;
  Clock& clock_;
};

}  // namespace facetheory
