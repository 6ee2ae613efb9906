// The table in memory: the executable specification of the contract. Every operation completes at once.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "facetheory/table/table.h"

namespace facetheory {

class MemoryTable final : public Table {
 public:
  Task<Result<void>> create() override;
  Task<Result<TableDescription>> describe() override;
  std::optional<std::uint64_t> version() const override { return version_; }
  std::optional<std::uint64_t> stamp(const std::vector<Key>& keys) const override;

 private:
  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override;
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override;
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override;
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override;
  Task<Result<QueryPage>> do_query(Query query) override;
  Task<Result<ScanPage>> do_scan(Scan scan) override;

  // All or nothing.
  Result<TransactOutcome> commit(const std::vector<TransactItem>& items);

  std::atomic<std::uint64_t> version_ = 0;
  mutable std::mutex mutex_;
  std::map<Key, Attributes> rows_;  // guarded by mutex_
};

}  // namespace facetheory
