#include "facetheory/table/memory_table.h"

#include <functional>
#include <iterator>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/table/evaluate.h"
#include "facetheory/table/item_codec.h"

namespace facetheory {

Task<Result<void>> MemoryTable::create() {
  co_return Result<void>();
}

Task<Result<TableDescription>> MemoryTable::describe() {
  const std::lock_guard lock(mutex_);
  co_return TableDescription{
      .uri = "memory:", .status = "ACTIVE", .items = rows_.size(), .expires_rows = false};
}

std::optional<std::uint64_t> MemoryTable::stamp(const std::vector<Key>& keys) const {
  const std::lock_guard lock(mutex_);
  std::string rows;
  for (const Key& key : keys) {
    const auto row = rows_.find(key);
    std::string attributes;
    if (row != rows_.end()) encode_attributes(row->second, attributes);
    rows += row != rows_.end() ? '+' : '-';
    encode_bytes(attributes, rows);
  }
  return std::hash<std::string>()(rows);
}

Task<Result<std::optional<Item>>> MemoryTable::do_get(Key key, Consistency) {
  const std::lock_guard lock(mutex_);
  const auto row = rows_.find(key);
  if (row == rows_.end()) co_return std::optional<Item>();
  co_return std::optional<Item>(Item{std::move(key), row->second});
}

Task<Result<std::vector<std::optional<Item>>>> MemoryTable::do_get_all(std::vector<Key> keys, Consistency) {
  const std::lock_guard lock(mutex_);
  std::vector<std::optional<Item>> items(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto row = rows_.find(keys[i]);
    if (row != rows_.end()) items[i] = Item{std::move(keys[i]), row->second};
  }
  co_return items;
}

Task<Result<WriteOutcome>> MemoryTable::do_write(Write write, Durability) {
  std::vector<TransactItem> items;
  items.push_back(as_transact_item(std::move(write)));
  Result<TransactOutcome> outcome = commit(items);
  if (!outcome) co_return outcome.error();
  co_return as_write_outcome(*std::move(outcome));
}

Task<Result<TransactOutcome>> MemoryTable::do_transact(std::vector<TransactItem> items, std::string) {
  co_return commit(items);
}

Result<TransactOutcome> MemoryTable::commit(const std::vector<TransactItem>& items) {
  const std::lock_guard lock(mutex_);
  Result<Judgement> judgement = judge(items, [this](const Key& key) -> Result<std::optional<Attributes>> {
    const auto row = rows_.find(key);
    return row == rows_.end() ? std::nullopt : std::optional(row->second);
  });
  if (!judgement) return judgement.error();
  if (auto* cancelled = std::get_if<Cancelled>(&*judgement)) return TransactOutcome(std::move(*cancelled));
  auto& effects = std::get<std::vector<Effect>>(*judgement);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (auto* store = std::get_if<Store>(&effects[i])) {
      rows_.insert_or_assign(key_of(items[i]), std::move(store->attributes));
    } else if (std::holds_alternative<Erase>(effects[i])) {
      rows_.erase(key_of(items[i]));
    }
  }
  ++version_;
  return TransactOutcome(Committed{});
}

Task<Result<QueryPage>> MemoryTable::do_query(Query query) {
  const std::lock_guard lock(mutex_);
  QueryPage page;
  const auto matches = [&](const Key& key) {
    return key.pk == query.pk && key.sk.starts_with(query.sk_prefix);
  };
  const auto take = [&](const Key& key, const Attributes& attributes) {
    page.items.push_back(Item{key, attributes});
    if (page.items.size() == query.limit) page.next = key.sk;
    return !page.next;
  };
  if (query.direction == Direction::forward) {
    auto row = query.after ? rows_.upper_bound({query.pk, *query.after})
                           : rows_.lower_bound({query.pk, query.sk_prefix});
    while (row != rows_.end() && matches(row->first) && take(row->first, row->second))
      ++row;
  } else {
    // UTF-8 never contains the byte 0xff, so that nothing with the prefix sorts after prefix + 0xff.
    const Key end{query.pk, query.after ? *query.after : query.sk_prefix + '\xff'};
    auto row = std::make_reverse_iterator(rows_.lower_bound(end));
    while (row != rows_.rend() && matches(row->first) && take(row->first, row->second))
      ++row;
  }
  co_return page;
}

Task<Result<ScanPage>> MemoryTable::do_scan(Scan scan) {
  const std::lock_guard lock(mutex_);
  ScanPage page;
  for (auto row = scan.after ? rows_.upper_bound(*scan.after) : rows_.begin(); row != rows_.end(); ++row) {
    page.items.push_back(Item{row->first, row->second});
    if (page.items.size() == scan.limit) {
      page.next = row->first;
      break;
    }
  }
  co_return page;
}

}  // namespace facetheory
