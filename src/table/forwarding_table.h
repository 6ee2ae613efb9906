// ForwardingTable: a table that stands before another and hands every operation on. Who does something to some of them
// derives from it and writes those alone.
//
// What answers without a round trip (version, stamp, left_alone, disk_use) is not handed on: whoever uses it would get
// past the one that stands before.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "facetheory/table/table.h"

namespace facetheory {

class ForwardingTable : public Table {
 public:
  explicit ForwardingTable(std::shared_ptr<Table> inner);
  explicit ForwardingTable(Table& inner);  // The inner table outlives it.

  Task<Result<void>> create() override;
  Task<Result<TableDescription>> describe() override;

 protected:
  Table& inner() const { return *inner_; }

  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override;
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override;
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override;
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override;
  Task<Result<QueryPage>> do_query(Query query) override;
  Task<Result<ScanPage>> do_scan(Scan scan) override;

 private:
  const std::shared_ptr<Table> inner_;
};

}  // namespace facetheory
