#include "facetheory/table/forwarding_table.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {

ForwardingTable::ForwardingTable(std::shared_ptr<Table> inner) : inner_(std::move(inner)) {}
ForwardingTable::ForwardingTable(Table& inner) : inner_(std::shared_ptr<void>(), &inner) {}

Task<Result<void>> ForwardingTable::create() {
  return inner_->create();
}

Task<Result<TableDescription>> ForwardingTable::describe() {
  return inner_->describe();
}

Task<Result<std::optional<Item>>> ForwardingTable::do_get(Key key, Consistency consistency) {
  return inner_->get(std::move(key), consistency);
}

Task<Result<std::vector<std::optional<Item>>>> ForwardingTable::do_get_all(std::vector<Key> keys,
                                                                           Consistency consistency) {
  return inner_->get_all(std::move(keys), consistency);
}

Task<Result<WriteOutcome>> ForwardingTable::do_write(Write write, Durability durability) {
  return inner_->write(std::move(write), durability);
}

Task<Result<TransactOutcome>> ForwardingTable::do_transact(std::vector<TransactItem> items,
                                                           std::string client_token) {
  return inner_->transact(std::move(items), std::move(client_token));
}

Task<Result<QueryPage>> ForwardingTable::do_query(Query query) {
  return inner_->query(std::move(query));
}

Task<Result<ScanPage>> ForwardingTable::do_scan(Scan scan) {
  return inner_->scan(std::move(scan));
}

}  // namespace facetheory
