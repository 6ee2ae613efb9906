#include "facetheory/table/table.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

template <typename T>
Task<Result<T>> refused(Error error) {
  co_return error;
}

}  // namespace

Task<Result<std::optional<Item>>> Table::get(Key key, Consistency consistency) {
  if (Result<void> good = validate(key); !good) return refused<std::optional<Item>>(std::move(good).error());
  return do_get(std::move(key), consistency);
}

Task<Result<std::vector<std::optional<Item>>>> Table::get_all(std::vector<Key> keys,
                                                              Consistency consistency) {
  for (const Key& key : keys) {
    if (Result<void> good = validate(key); !good)
      return refused<std::vector<std::optional<Item>>>(std::move(good).error());
  }
  return do_get_all(std::move(keys), consistency);
}

Task<Result<WriteOutcome>> Table::write(Write write, Durability durability) {
  if (Result<void> good = validate(write); !good) return refused<WriteOutcome>(std::move(good).error());
  return do_write(std::move(write), durability);
}

Task<Result<TransactOutcome>> Table::transact_unchecked(std::vector<TransactItem> items,
                                                        std::string client_token) {
  return do_transact(std::move(items), std::move(client_token));
}

Task<Result<TransactOutcome>> Table::transact(std::vector<TransactItem> items, std::string client_token) {
  if (Result<void> good = validate(items, client_token); !good) {
    return refused<TransactOutcome>(std::move(good).error());
  }
  return do_transact(std::move(items), std::move(client_token));
}

Task<Result<QueryPage>> Table::query(Query query) {
  if (Result<void> good = validate(query); !good) return refused<QueryPage>(std::move(good).error());
  return do_query(std::move(query));
}

Task<Result<ScanPage>> Table::scan(Scan scan) {
  if (Result<void> good = validate(scan); !good) return refused<ScanPage>(std::move(good).error());
  return do_scan(std::move(scan));
}

}  // namespace facetheory
