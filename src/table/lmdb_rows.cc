#include "facetheory/table/lmdb_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL  // Records are short: a call through the library would cost as much as the hash.
#include <xxhash.h>

#include "facetheory/base/log.h"
#include "facetheory/table/item_codec.h"
#include "facetheory/table/item_size.h"
#include "facetheory/table/lmdb_error.h"

namespace facetheory {
namespace {

static_assert(std::endian::native == std::endian::little, "checksums are stored in little-endian order");

constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kMaxPageBytes = std::size_t{1} << 20;  // DynamoDB ends a page there, too.

std::string_view to_view(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

// Covers the key as well, so that a record cannot pass for another key's.
std::uint64_t checksum(std::string_view key, std::string_view payload) {
  return XXH3_64bits_withSeed(payload.data(), payload.size(), XXH3_64bits(key.data(), key.size()));
}

std::uint64_t stored_checksum(std::string_view value) {
  std::uint64_t stored = 0;
  std::memcpy(&stored, value.data(), kChecksumBytes);
  return stored;
}

// Puts the checksum into the place that was left for it.
std::string sealed(std::string_view key, std::string record) {
  const std::uint64_t sum = checksum(key, std::string_view(record).substr(kChecksumBytes));
  std::memcpy(record.data(), &sum, kChecksumBytes);
  return record;
}

struct OverflowEntry {
  std::string_view sk;
  std::string_view attributes;
};

std::optional<std::vector<OverflowEntry>> read_overflow(Decoder& decoder) {
  const std::uint64_t count = decoder.varint();
  std::vector<OverflowEntry> entries;
  for (std::uint64_t i = 0; i < count && !decoder.broken(); ++i) {
    const std::string_view sk = decoder.bytes();
    const std::string_view attributes = decoder.bytes();
    entries.push_back({sk, attributes});
  }
  if (decoder.broken()) return std::nullopt;
  return entries;
}

// A cursor over one tree's rows, in one direction; it steps over whatever is no row.
class RowCursor {
 public:
  RowCursor(MDB_txn* txn, MDB_dbi tree, Direction direction) : forward_(direction == Direction::forward) {
    MDB_cursor* opened = nullptr;
    code_ = mdb_cursor_open(txn, tree, &opened);
    cursor_.reset(opened);
  }

  void seek(std::string_view start) {
    if (code_ != 0) return;
    key_ = to_val(start);
    code_ = mdb_cursor_get(cursor_.get(), &key_, &value_, MDB_SET_RANGE);
    if (!forward_) move(code_ == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
    skip_others();
  }

  void next() {
    move(forward_ ? MDB_NEXT : MDB_PREV);
    skip_others();
  }

  int code() const { return code_; }  // 0: stands on a row; MDB_NOTFOUND: there are no more.
  std::string_view key() const { return to_view(key_); }
  std::string_view value() const { return to_view(value_); }

 private:
  struct Deleter {
    void operator()(MDB_cursor* cursor) const { mdb_cursor_close(cursor); }
  };

  void move(MDB_cursor_op operation) { code_ = mdb_cursor_get(cursor_.get(), &key_, &value_, operation); }

  void skip_others() {
    while (code_ == 0 && !LmdbKey::is_row(key()))
      move(forward_ ? MDB_NEXT : MDB_PREV);
  }

  const bool forward_;
  std::unique_ptr<MDB_cursor, Deleter> cursor_;
  MDB_val key_{};
  MDB_val value_{};
  int code_ = 0;
};

}  // namespace

Error LmdbRows::damaged(std::string_view key) const {
  const LmdbKey::Parsed parsed = LmdbKey::parse(key);
  const std::string row = parsed.valid && !parsed.hashed
                              ? std::string(parsed.pk) + " / " + std::string(parsed.sk)
                              : std::string("a row with a long key");
  return {ErrorCode::corrupt,
          row + " in lmdb:" + directory_ +
              " is damaged: its bytes are not those that were written; restore the directory, or "
              "delete it to start empty"};
}

Result<std::string_view> LmdbRows::checked(std::string_view key, std::string_view value) const {
  if (value.size() < kChecksumBytes) return damaged(key);
  const std::uint64_t stored = stored_checksum(value);
  value.remove_prefix(kChecksumBytes);
  if (stored != checksum(key, value)) return damaged(key);
  return value;
}

Result<std::optional<std::string_view>> LmdbRows::read_record(MDB_dbi tree, std::string_view key) const {
  std::string_view record;
  if (const auto lease = leases_.find(key); lease != leases_.end()) {
    record = lease->second;
  } else {
    MDB_val key_val = to_val(key);
    MDB_val value{};
    const int code = mdb_get(txn_, tree, &key_val, &value);
    if (code == MDB_NOTFOUND) return std::optional<std::string_view>();
    if (code != 0) return lmdb_error(code, "reading a row", directory_);
    record = to_view(value);
  }
  Result<std::string_view> payload = checked(key, record);
  if (!payload) return payload.error();
  return std::optional(*payload);
}

Result<void> LmdbRows::write_record(MDB_dbi tree, std::string_view key, std::string_view record) {
  MDB_val key_val = to_val(key);
  MDB_val value = to_val(record);
  if (const int code = mdb_put(txn_, tree, &key_val, &value, 0); code != 0) {
    return lmdb_error(code, "writing a row", directory_);
  }
  return {};
}

Result<std::uint64_t> LmdbRows::stamp(const Key& key) const {
  const LmdbKey where = LmdbKey::of(key);
  MDB_val key_val = to_val(where.bytes);
  MDB_val value{};
  const int code = mdb_get(txn_, tree_of(key), &key_val, &value);
  if (code == MDB_NOTFOUND) return std::uint64_t{0};
  if (code != 0) return lmdb_error(code, "reading a row", directory_);
  if (value.mv_size < kChecksumBytes) return damaged(where.bytes);
  return stored_checksum(to_view(value));
}

// LMDB maps its file page by page, and each of its pages begins with its number. A value that has pages of its own
// begins in the first of them.
std::optional<std::uint64_t> LmdbRows::offset_of(const Key& key, std::string_view attribute) const {
  const LmdbKey where = LmdbKey::of(key);
  MDB_stat pages{};
  MDB_val key_val = to_val(where.bytes);
  MDB_val value{};
  if (where.overflow || mdb_stat(txn_, tree_of(key), &pages) != 0) return std::nullopt;
  if (mdb_get(txn_, tree_of(key), &key_val, &value) != 0 || value.mv_size < kChecksumBytes)
    return std::nullopt;
  Decoder decoder(to_view(value).substr(kChecksumBytes));
  if (where.hashed) decoder.bytes();
  const auto bytes = decoder.binary_attribute(attribute);
  if (!bytes) return std::nullopt;
  const auto* begin = static_cast<const char*>(value.mv_data);
  const char* page = begin - reinterpret_cast<std::uintptr_t>(begin) % pages.ms_psize;
  std::uint64_t number = 0;
  std::memcpy(&number, page, sizeof number);
  return number * pages.ms_psize + static_cast<std::uint64_t>(bytes->data() - page);
}

Result<std::optional<Attributes>> LmdbRows::get(const LmdbKey& where, const Key& key) const {
  Result<std::optional<std::string_view>> record = read_record(tree_of(key), where.bytes);
  if (!record) return record.error();
  if (!*record) return std::optional<Attributes>();
  Decoder decoder(**record);
  if (where.hashed && decoder.bytes() != key.pk) return damaged(where.bytes);
  if (!where.overflow) {
    std::optional<Attributes> attributes = decoder.attributes();
    if (!attributes) return damaged(where.bytes);
    return attributes;
  }
  const auto entries = read_overflow(decoder);
  if (!entries) return damaged(where.bytes);
  for (const OverflowEntry& entry : *entries) {
    if (entry.sk != key.sk) continue;
    std::optional<Attributes> attributes = Decoder(entry.attributes).attributes();
    if (!attributes) return damaged(where.bytes);
    return attributes;
  }
  return std::optional<Attributes>();
}

namespace {

// The list of an overflow record with one sk's attributes replaced; an empty optional removes them.
std::vector<OverflowEntry> with_entry(std::vector<OverflowEntry> entries, std::string_view sk,
                                      std::optional<std::string_view> attributes) {
  const auto position =
      std::lower_bound(entries.begin(), entries.end(), sk,
                       [](const OverflowEntry& entry, std::string_view s) { return entry.sk < s; });
  const bool found = position != entries.end() && position->sk == sk;
  if (attributes && found) {
    position->attributes = *attributes;
  } else if (attributes) {
    entries.insert(position, {sk, *attributes});
  } else if (found) {
    entries.erase(position);
  }
  return entries;
}

std::string new_record(const LmdbKey& where, const Key& key) {
  std::string record(kChecksumBytes, '\0');
  if (where.hashed) encode_bytes(key.pk, record);
  return record;
}

}  // namespace

std::string LmdbRows::record_of(const LmdbKey& where, const Key& key, const Attributes& attributes) {
  std::string record = new_record(where, key);
  encode_attributes(attributes, record);
  return sealed(where.bytes, std::move(record));
}

Result<void> LmdbRows::put(const Key& key, const Attributes& attributes) {
  const LmdbKey where = LmdbKey::of(key);
  if (!where.overflow) {
    return write_record(tree_of(key), where.bytes, record_of(where, key, attributes));
  }
  std::string encoded;
  encode_attributes(attributes, encoded);
  return rewrite_overflow(where, key, encoded);
}

Result<void> LmdbRows::erase(const Key& key) {
  const LmdbKey where = LmdbKey::of(key);
  if (where.overflow) return rewrite_overflow(where, key, std::nullopt);
  return erase_record(tree_of(key), where.bytes);
}

Result<void> LmdbRows::erase_record(MDB_dbi tree, std::string_view key) {
  MDB_val key_val = to_val(key);
  const int code = mdb_del(txn_, tree, &key_val, nullptr);
  if (code != 0 && code != MDB_NOTFOUND) return lmdb_error(code, "deleting a row", directory_);
  return {};
}

Result<void> LmdbRows::rewrite_overflow(const LmdbKey& where, const Key& key,
                                        std::optional<std::string_view> attributes) {
  Result<std::optional<std::string_view>> stored = read_record(tree_of(key), where.bytes);
  if (!stored) return stored.error();
  std::vector<OverflowEntry> entries;
  if (*stored) {
    Decoder decoder(**stored);
    if (where.hashed && decoder.bytes() != key.pk) return damaged(where.bytes);
    auto decoded = read_overflow(decoder);
    if (!decoded) return damaged(where.bytes);
    entries = *std::move(decoded);
  }
  entries = with_entry(std::move(entries), key.sk, attributes);
  if (entries.empty()) return erase_record(tree_of(key), where.bytes);
  std::string record = new_record(where, key);
  encode_varint(entries.size(), record);
  for (const OverflowEntry& entry : entries) {
    encode_bytes(entry.sk, record);
    encode_bytes(entry.attributes, record);
  }
  return write_record(tree_of(key), where.bytes, sealed(where.bytes, std::move(record)));
}

Result<void> LmdbRows::items_at(std::string_view key, std::string_view value, std::vector<Item>& out) const {
  Result<std::string_view> payload = checked(key, value);
  if (!payload) return payload.error();
  const LmdbKey::Parsed parsed = LmdbKey::parse(key);
  if (!parsed.valid) return damaged(key);
  Decoder decoder(*payload);
  const std::string_view pk = parsed.hashed ? decoder.bytes() : parsed.pk;
  if (parsed.overflow) {
    auto decoded = read_overflow(decoder);
    if (!decoded) return damaged(key);
    for (const OverflowEntry& entry : *decoded) {
      std::optional<Attributes> attributes = Decoder(entry.attributes).attributes();
      if (!attributes) return damaged(key);
      out.push_back(Item{{std::string(pk), std::string(entry.sk)}, *std::move(attributes)});
    }
    return {};
  }
  std::optional<Attributes> attributes = decoder.attributes();
  if (!attributes) return damaged(key);
  out.push_back(Item{{std::string(pk), std::string(parsed.sk)}, *std::move(attributes)});
  return {};
}

Result<void> LmdbRows::walk(std::string_view start, Direction direction, const Visit& visit) const {
  const bool forward = direction == Direction::forward;
  RowCursor rows(txn_, trees_.rows, direction);
  RowCursor locks(txn_, trees_.leases, direction);
  rows.seek(start);
  locks.seek(start);
  // The leases that are still to come, between these two.
  auto begin = forward ? leases_.lower_bound(start) : leases_.begin();
  auto end = forward || start.empty() ? leases_.end() : leases_.lower_bound(start);
  while (true) {
    const auto lease = begin == end ? end : forward ? begin : std::prev(end);
    std::optional<std::string_view> next;
    const auto consider = [&](std::string_view key) {
      if (!next || (forward ? key < *next : key > *next)) next = key;
    };
    if (rows.code() == 0) consider(rows.key());
    if (locks.code() == 0) consider(locks.key());
    if (begin != end) consider(lease->first);
    if (!next) break;

    const bool in_rows = rows.code() == 0 && rows.key() == *next;
    const bool in_locks = locks.code() == 0 && locks.key() == *next;
    const bool in_leases = begin != end && lease->first == *next;
    Result<bool> go_on = visit(*next, in_leases ? lease->second : in_locks ? locks.value() : rows.value());
    if (!go_on) return go_on.error();
    if (!*go_on) return {};
    if (in_leases) (forward ? begin : end) = forward ? std::next(lease) : lease;
    if (in_locks) locks.next();
    if (in_rows) rows.next();
  }
  for (const int code : {rows.code(), locks.code()}) {
    if (code != MDB_NOTFOUND) return lmdb_error(code, "walking the rows", directory_);
  }
  return {};
}

Result<QueryPage> LmdbRows::query(const Query& query) const {
  const bool forward = query.direction == Direction::forward;
  const std::string partition = LmdbKey::partition_prefix(query.pk);
  const auto key_of_sk = [&](std::string_view sk) {
    return partition + std::string(sk.substr(0, kInlineSkBytes));
  };
  std::string start;
  if (forward) {
    start = key_of_sk(query.after ? *query.after : query.sk_prefix);
  } else {
    // Just behind the entry that may hold `after`, or behind everything with the prefix.
    start = query.after ? key_of_sk(*query.after) + '\x02' : end_of_prefix(key_of_sk(query.sk_prefix));
  }

  QueryPage page;
  std::size_t bytes = 0;
  std::vector<Item> items;
  Result<void> walked =
      walk(start, query.direction, [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (!key.starts_with(partition)) return false;
        items.clear();
        if (Result<void> good = items_at(key, value, items); !good) return good.error();
        if (!forward) std::reverse(items.begin(), items.end());
        for (Item& item : items) {
          const std::string& sk = item.key.sk;
          if (query.after && (forward ? sk <= *query.after : sk >= *query.after)) continue;
          if (!sk.starts_with(query.sk_prefix)) {
            const bool beyond = forward ? sk > query.sk_prefix : sk < query.sk_prefix;
            if (beyond) return false;
            continue;
          }
          bytes += item_bytes(item.key, item.attributes);
          page.items.push_back(std::move(item));
          if (page.items.size() == query.limit || bytes > kMaxPageBytes) {
            page.next = page.items.back().key.sk;
            return false;
          }
        }
        return true;
      });
  if (!walked) return walked.error();
  return page;
}

Result<ScanPage> LmdbRows::scan(const Scan& scan) const {
  const std::string start = scan.after ? LmdbKey::of(*scan.after).bytes : LmdbKey::first();
  ScanPage page;
  std::size_t bytes = 0;
  std::vector<Item> items;
  Result<void> walked =
      walk(start, Direction::forward, [&](std::string_view key, std::string_view value) -> Result<bool> {
        items.clear();
        if (Result<void> good = items_at(key, value, items); !good) {
          if (!scan.pass_over_damaged) return good.error();
          log(LogLevel::warning, "left out: " + good.error().message);
          return true;
        }
        for (Item& item : items) {
          if (scan.after && key == start && item.key.sk <= scan.after->sk) continue;
          bytes += item_bytes(item.key, item.attributes);
          page.items.push_back(std::move(item));
          if (page.items.size() == scan.limit || bytes > kMaxPageBytes) {
            page.next = page.items.back().key;
            return false;
          }
        }
        return true;
      });
  if (!walked) return walked.error();
  return page;
}

}  // namespace facetheory
