#include "facetheory/table/measured_table.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/measure.h"

namespace facetheory {

MeasuredTable::MeasuredTable(std::shared_ptr<Table> inner, StoreObserver observer, Clock& clock)
    : TransparentTable(std::move(inner)), observer_(std::move(observer)), clock_(clock) {}

Task<Result<void>> MeasuredTable::create() {
  return measure(observer_, "create", clock_, inner().create());
}

Task<Result<TableDescription>> MeasuredTable::describe() {
  return measure(observer_, "describe", clock_, inner().describe());
}

Task<Result<std::optional<Item>>> MeasuredTable::do_get(Key key, Consistency consistency) {
  return measure(observer_, "get", clock_, inner().get(std::move(key), consistency));
}

Task<Result<std::vector<std::optional<Item>>>> MeasuredTable::do_get_all(std::vector<Key> keys,
                                                                         Consistency consistency) {
  return measure(observer_, "get_all", clock_, inner().get_all(std::move(keys), consistency));
}

Task<Result<WriteOutcome>> MeasuredTable::do_write(Write write, Durability durability) {
  return measure(observer_, "write", clock_, inner().write(std::move(write), durability));
}

Task<Result<TransactOutcome>> MeasuredTable::do_transact(std::vector<TransactItem> items,
                                                         std::string client_token) {
  return measure(observer_, "transact", clock_, inner().transact(std::move(items), std::move(client_token)));
}

Task<Result<QueryPage>> MeasuredTable::do_query(Query query) {
  return measure(observer_, "query", clock_, inner().query(std::move(query)));
}

Task<Result<ScanPage>> MeasuredTable::do_scan(Scan scan) {
  return measure(observer_, "scan", clock_, inner().scan(std::move(scan)));
}

}  // namespace facetheory
