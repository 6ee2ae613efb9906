// ForwardingTable: a table that stands before another and hands every operation on. Who does something to some of them
// derives from it and writes those alone.
//
// A ForwardingTable does not hand on what answers without a round trip (version, stamp, left_alone, disk_use), because
// whoever used that would get past the one that stands before. A TransparentTable does: it may refuse or delay an
// operation, but the table behind it is what its callers see.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  // An operation that may still be under way when this table is gone holds this.
  const std::shared_ptr<Table>& shared_inner() const { return inner_; }

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

class TransparentTable : public ForwardingTable {
 public:
  using ForwardingTable::ForwardingTable;

  std::optional<DiskUse> disk_use() const override { return inner().disk_use(); }
  std::optional<std::uint64_t> version() const override { return inner().version(); }
  std::optional<std::uint64_t> stamp(const std::vector<Key>& keys) const override {
    return inner().stamp(keys);
  }
  bool left_alone(const RowSet& rows, std::uint64_t from, std::uint64_t to) const override {
    return inner().left_alone(rows, from, to);
  }
};

}  // namespace facetheory
