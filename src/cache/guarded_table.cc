#include "facetheory/cache/guarded_table.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {

Task<Result<WriteOutcome>> GuardedTable::do_write(Write write, Durability durability) {
  if (auto rests = writes_.rests()) co_return *std::move(rests);
  const Duration began = clock_.monotonic();
  auto outcome = co_await inner().write(std::move(write), durability);
  writes_.wrote(outcome ? nullptr : &outcome.error(), began);
  co_return outcome;
}

Task<Result<TransactOutcome>> GuardedTable::do_transact(std::vector<TransactItem> items,
                                                        std::string client_token) {
  if (auto rests = writes_.rests()) co_return *std::move(rests);
  const Duration began = clock_.monotonic();
  auto outcome = co_await inner().transact(std::move(items), std::move(client_token));
  writes_.wrote(outcome ? nullptr : &outcome.error(), began);
  co_return outcome;
}

Task<void> GuardedTable::probe() {
  const Duration began = clock_.monotonic();
  // No row has this key. The table looks for it as for any other that is to be removed.
  Write nobodys = Delete{Key{"READYZ", "READYZ"}, attr("pk").exists()};
  auto outcome = co_await inner().write(std::move(nobodys), Durability::machine);
  writes_.wrote(outcome ? nullptr : &outcome.error(), began);
}

}  // namespace facetheory
