// CountingTable: passes everything on to a table in memory, and counts what DynamoDB would charge for it by its
// published rules: a read unit is 4 KiB read consistently, and half of one eventually, whether the item is there or
// not; a write unit is 1 KiB, and two of them in a transaction, whether the condition holds or not. (DynamoDB Local
// counts neither missing items nor transactions so.) May be used from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/table/forwarding_table.h"

namespace facetheory::test {

struct Units {
  int requests = 0;
  double read = 0;
  double write = 0;
  // Of the requests: those that read, and how many rows they named.
  int reads = 0;
  int keys = 0;
  int marks = 0;  // Of those rows: of tags and tenants.
  int writes = 0;
};

class CountingTable final : public ForwardingTable {
 public:
  // `takes`: how long every operation is on its way, by that clock, which outlives the table.
  explicit CountingTable(Clock& clock, Duration takes = Duration(0));

  // What was consumed since the last call.
  Units take();

 private:
  Task<void> travel();
  void count_read(double units);
  void count_request(const std::vector<Key>& keys);
  void count_write(double units);
  // One operation costs by the larger of what was there and what is there then.
  Task<double> cost_of_write(TransactItem write);

  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override;
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override;
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override;
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override;
  Task<Result<QueryPage>> do_query(Query query) override;
  Task<Result<ScanPage>> do_scan(Scan scan) override;

  // Constant after construction.
  Clock& clock_;
  const Duration takes_;

  std::mutex mutex_;
  Units units_;  // guarded by mutex_
};

}  // namespace facetheory::test
