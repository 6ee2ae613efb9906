#include "facetheory/bodies/body_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/log.h"
#include "facetheory/bodies/body_file.h"
#include "facetheory/table/lmdb_table.h"
#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

constexpr const char* kSortKey = "BODY";
constexpr const char* kBody = "body";               // What would be the body's file.
constexpr const char* kModifiedAt = "modified_at";  // Milliseconds.
constexpr std::size_t kRowsAtOnce = 100;            // They are read as a whole.

Key row_of(std::string key) {
  return Key{std::move(key), kSortKey};
}

Error malformed(const std::string& place) {
  return Error{ErrorCode::corrupt,
               place + " has not the attributes of one: remove it so that its page is rendered again"};
}

const std::string* bytes_of(const Item& item) {
  const Value* value = item.attributes.find(kBody);
  const Binary* binary = value == nullptr ? nullptr : value->as<Binary>();
  return binary == nullptr ? nullptr : &binary->bytes;
}

}  // namespace

Result<std::unique_ptr<BodyTable>> BodyTable::open(const std::string& directory, const Clock& clock) {
  auto table = open_lmdb_table(directory);
  if (!table) return table.error();
  return std::unique_ptr<BodyTable>(new BodyTable(std::move(*table), directory, clock));
}

std::string BodyTable::called(const std::string& key) const {
  return "the row of the body \"" + key + "\" in " + directory_;
}

Result<BodyEntry> BodyTable::entry_of(const Item& item) const {
  const std::string& key = item.key.pk;
  const std::string* bytes = bytes_of(item);
  const Value* modified_at = item.attributes.find(kModifiedAt);
  if (bytes == nullptr || modified_at == nullptr) return malformed(called(key));
  const Number* number = modified_at->as<Number>();
  const auto milliseconds = number == nullptr ? std::nullopt : number->to_int64();
  if (!milliseconds) return malformed(called(key));
  auto header = body_header_of(*bytes, called(key));
  if (!header) return header.error();
  return BodyEntry{key, header->size, WallTime(std::chrono::milliseconds(*milliseconds))};
}

Task<Result<bool>> BodyTable::write(const std::string& key, const Body& body) {
  Item item{row_of(key), {}};
  std::string bytes = encode_body_header(BodyFileHeader{key, body.metadata, body.bytes.size()});
  bytes += body.bytes;
  item.attributes.set(kBody, Binary{std::move(bytes)});
  item.attributes.set(kModifiedAt, Number(clock_.now().time_since_epoch().count()));
  Write put = Put{std::move(item), attr("pk").not_exists()};
  auto outcome = co_await table_->write(std::move(put), Durability::machine);
  if (!outcome) co_return outcome.error();
  const auto* failed = std::get_if<ConditionFailed>(&*outcome);
  if (failed == nullptr) co_return true;

  const std::string* stored = failed->stored ? bytes_of(*failed->stored) : nullptr;
  if (stored == nullptr) co_return malformed(called(key));
  auto decoded = decode_body_file(*stored, key, called(key));
  if (!decoded) co_return decoded.error();
  auto same = check_same_body(key, *decoded, body, called(key));
  if (!same) co_return same.error();
  co_return false;
}

Task<Result<std::optional<Body>>> BodyTable::read(std::string key) {
  auto item = co_await table_->get(row_of(key), Consistency::strong);
  if (!item) co_return item.error();
  if (!*item) co_return std::optional<Body>();
  const std::string* bytes = bytes_of(**item);
  if (bytes == nullptr) co_return malformed(called(key));
  auto body = decode_body_file(*bytes, key, called(key));
  if (!body) co_return body.error();
  if (auto place = table_->place_of(row_of(key), kBody)) {
    place->offset += bytes->size() - body->bytes.size();
    body->on_disk.emplace(*std::move(place), body->bytes);
  }
  co_return std::optional<Body>(std::move(*body));
}

// Deletes without a condition, since a damaged row would meet none. One that comes back after power loss is collected
// again.
Task<Result<void>> BodyTable::remove(std::string key) {
  Write erase = Delete{row_of(std::move(key)), {}};
  auto outcome = co_await table_->write(std::move(erase), Durability::process);
  if (!outcome) co_return outcome.error();
  co_return Result<void>();
}

// A hundred for one flush.
Task<Result<void>> BodyTable::remove_all(std::vector<std::string> keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (std::size_t begin = 0; begin < keys.size(); begin += kMaxTransactItems) {
    std::vector<TransactItem> removals;
    for (std::size_t i = begin; i < std::min(keys.size(), begin + kMaxTransactItems); ++i)
      removals.emplace_back(Delete{row_of(std::move(keys[i])), {}});
    auto outcome = co_await table_->transact(std::move(removals), "remove");
    if (!outcome) co_return outcome.error();
  }
  co_return Result<void>();
}

Task<Result<bool>> BodyTable::is_empty() {
  Scan scan;
  scan.limit = 1;
  auto rows = co_await table_->scan(std::move(scan));
  if (!rows) co_return rows.error();
  co_return rows->items.empty();
}

Task<Result<BodyPage>> BodyTable::list(std::optional<std::string> after, std::size_t limit) {
  BodyPage page;
  Scan scan{.pass_over_damaged = true};
  if (after) scan.after = row_of(*std::move(after));
  do {
    scan.limit = std::min(kRowsAtOnce, limit - page.entries.size());
    auto rows = co_await table_->scan(scan);
    if (!rows) co_return rows.error();
    for (const Item& item : rows->items) {
      auto entry = entry_of(item);
      if (entry) {
        page.entries.push_back(*std::move(entry));
      } else {
        log(LogLevel::warning, "left out of the list of bodies: " + entry.error().message);
      }
    }
    scan.after = std::move(rows->next);
  } while (scan.after && page.entries.size() < limit);
  if (scan.after) page.next = scan.after->pk;
  co_return page;
}

}  // namespace facetheory
