#include "tests/support/counting_table.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/table/item_size.h"
#include "facetheory/table/memory_table.h"
#include "facetheory/table/operations.h"

namespace facetheory::test {
namespace {

double in_units(std::size_t bytes, std::size_t unit) {
  return static_cast<double>(std::max<std::size_t>(1, (bytes + unit - 1) / unit));
}

std::size_t bytes_of(const std::optional<Item>& item) {
  return item ? item_bytes(item->key, item->attributes) : 0;
}

double cost_of_read(const std::optional<Item>& item, Consistency consistency) {
  return in_units(bytes_of(item), 4096) * (consistency == Consistency::strong ? 1 : 0.5);
}

// A query or a scan sums up all of its items first.
double cost_of_all(const std::vector<Item>& items) {
  std::size_t bytes = 0;
  for (const Item& item : items)
    bytes += bytes_of(item);
  return in_units(bytes, 4096);
}

}  // namespace

CountingTable::CountingTable(Clock& clock, Duration takes)
    : ForwardingTable(std::make_shared<MemoryTable>()), clock_(clock), takes_(takes) {}

Units CountingTable::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(units_, {});
}

Task<void> CountingTable::travel() {
  if (takes_ > Duration(0)) co_await clock_.sleep_for(takes_);
}

void CountingTable::count_read(double units) {
  const std::lock_guard lock(mutex_);
  units_.read += units;
}

void CountingTable::count_request(const std::vector<Key>& keys) {
  const std::lock_guard lock(mutex_);
  ++units_.requests;
  ++units_.reads;
  units_.keys += static_cast<int>(keys.size());
  units_.marks += static_cast<int>(
      std::ranges::count_if(keys, [](const Key& key) { return key.pk.starts_with("TAG#"); }));
}

void CountingTable::count_write(double units) {
  const std::lock_guard lock(mutex_);
  ++units_.requests;
  ++units_.writes;
  units_.write += units;
}

Task<double> CountingTable::cost_of_write(TransactItem write) {
  Key key = key_of(write);
  auto before = co_await inner().get(std::move(key), Consistency::strong);
  std::size_t bytes = before ? bytes_of(*before) : 0;
  if (const auto* put = std::get_if<Put>(&write)) bytes = std::max(bytes, bytes_of(put->item));
  co_return in_units(bytes, 1024);
}

Task<Result<std::optional<Item>>> CountingTable::do_get(Key key, Consistency consistency) {
  count_request({key});
  co_await travel();
  auto item = co_await inner().get(std::move(key), consistency);
  count_read(cost_of_read(*item, consistency));
  co_return item;
}

Task<Result<std::vector<std::optional<Item>>>> CountingTable::do_get_all(std::vector<Key> keys,
                                                                         Consistency consistency) {
  count_request(keys);
  co_await travel();
  auto items = co_await inner().get_all(std::move(keys), consistency);
  for (const auto& item : *items)
    count_read(cost_of_read(item, consistency));
  co_return items;
}

Task<Result<WriteOutcome>> CountingTable::do_write(Write write, Durability durability) {
  TransactItem item = std::visit([](const auto& one) -> TransactItem { return one; }, write);
  const double cost = co_await cost_of_write(std::move(item));
  count_write(cost);
  co_await travel();
  co_return co_await inner().write(std::move(write), durability);
}

Task<Result<TransactOutcome>> CountingTable::do_transact(std::vector<TransactItem> items,
                                                         std::string client_token) {
  double cost = 0;
  for (const TransactItem& item : items) {
    TransactItem one = item;
    cost += 2 * co_await cost_of_write(std::move(one));
  }
  count_write(cost);
  co_await travel();
  co_return co_await inner().transact(std::move(items), std::move(client_token));
}

Task<Result<QueryPage>> CountingTable::do_query(Query query) {
  count_request({});
  co_await travel();
  auto page = co_await inner().query(std::move(query));
  count_read(cost_of_all(page->items));
  co_return page;
}

Task<Result<ScanPage>> CountingTable::do_scan(Scan scan) {
  count_request({});
  co_await travel();
  auto page = co_await inner().scan(std::move(scan));
  count_read(cost_of_all(page->items));
  co_return page;
}

}  // namespace facetheory::test
