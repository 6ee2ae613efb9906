#include "facetheory/table/faulty_table.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/meet_fault.h"

namespace facetheory {

FaultyTable::FaultyTable(std::shared_ptr<Table> inner, std::shared_ptr<FaultScript> script, Clock& clock)
    : ForwardingTable(std::move(inner)), script_(std::move(script)), clock_(clock) {}

Task<Result<std::optional<Item>>> FaultyTable::do_get(Key key, Consistency consistency) {
  return meet_fault(*script_, "get", OperationKind::read, clock_, inner().get(std::move(key), consistency));
}

Task<Result<std::vector<std::optional<Item>>>> FaultyTable::do_get_all(std::vector<Key> keys,
                                                                       Consistency consistency) {
  return meet_fault(*script_, "get_all", OperationKind::read, clock_,
                    inner().get_all(std::move(keys), consistency));
}

Task<Result<WriteOutcome>> FaultyTable::do_write(Write write, Durability durability) {
  return meet_fault(*script_, "write", OperationKind::write, clock_,
                    inner().write(std::move(write), durability));
}

Task<Result<TransactOutcome>> FaultyTable::do_transact(std::vector<TransactItem> items,
                                                       std::string client_token) {
  return meet_fault(*script_, "transact", OperationKind::write, clock_,
                    inner().transact(std::move(items), std::move(client_token)));
}

Task<Result<QueryPage>> FaultyTable::do_query(Query query) {
  return meet_fault(*script_, "query", OperationKind::read, clock_, inner().query(std::move(query)));
}

Task<Result<ScanPage>> FaultyTable::do_scan(Scan scan) {
  return meet_fault(*script_, "scan", OperationKind::read, clock_, inner().scan(std::move(scan)));
}

}  // namespace facetheory
