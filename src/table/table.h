// Table: items of typed attributes under (pk, sk), as DynamoDB has them. The protocol is written against this
// contract alone, and proven over every implementation.
//
// Operations may be awaited on any executor and from any thread. All validation happens here, once, before a
// backend sees a request: oversized keys or items, more than 100 items in a transaction, an item named twice
// in one, conditions and changes that DynamoDB would refuse are `invalid` everywhere, so that no test on one
// table hides what another refuses.
//
// Errors of writes: `unavailable` means that nothing was written. `ambiguous` means that it may have been
// written: read before acting. A write is never repeated behind the caller's back once it may have happened,
// because by then somebody else may have built upon it; a transaction is, under its client token, where the
// backend recognises that token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/disk_use.h"
#include "facetheory/base/open_file.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/table/item.h"
#include "facetheory/table/operations.h"
#include "facetheory/table/row_set.h"

namespace facetheory {

struct TableDescription {
  std::string uri;            // What opens this table again.
  std::string status;         // "ACTIVE", or what DynamoDB calls it.
  std::uint64_t items = 0;    // DynamoDB counts them every six hours only.
  bool expires_rows = false;  // Whether the table itself deletes rows past their `ttl`.
  // Says what to do where the table's keys are not pk and sk, both text; empty: they are.
  std::string wrong_keys = {};
};

class Table {
 public:
  virtual ~Table() = default;

  // Reads one item. A missing item is an empty optional; an error means "could not tell".
  Task<Result<std::optional<Item>>> get(Key key, Consistency consistency);

  // Reads several items: one answer for each key, in the order of the keys, and empty where there is no such item. A
  // key may be named twice. Embedded tables read all of them at one moment, DynamoDB each at a moment of its own;
  // either way a strong read sees every write that was acknowledged before it began. On DynamoDB it is one round trip
  // for 100 keys.
  Task<Result<std::vector<std::optional<Item>>>> get_all(std::vector<Key> keys, Consistency consistency);

  // One put, update or delete, if its condition holds.
  Task<Result<WriteOutcome>> write(Write write, Durability durability);

  // All of the items (1 to 100, each key once) or none. A repeat of a transaction must carry the same client
  // token (1 to 36 characters) and the same items, and may then be recognised; where it is not, a failed
  // condition can be the echo of the first attempt, so compare the stored items with your own before you call
  // it lost.
  Task<Result<TransactOutcome>> transact(std::vector<TransactItem> items, std::string client_token);

  // The same of whatever is given, without validation: how a backend of somebody else's judges it. Not for writing
  // pages.
  Task<Result<TransactOutcome>> transact_unchecked(std::vector<TransactItem> items, std::string client_token);

  Task<Result<QueryPage>> query(Query query);
  Task<Result<ScanPage>> scan(Scan scan);

  // A number that another one takes the place of with every write that reads can see, whoever made it: while it is the
  // same, so is all that was read since it was taken. Rows that were last put or updated with Durability::process are
  // left out: they may come, change and go without it. Empty: this table cannot tell. Quick, and never waits.
  virtual std::optional<std::uint64_t> version() const { return std::nullopt; }

  // The same for the rows under a few keys: a number that is the same only while they are, each of them there with the
  // same content or not there; with the same exception. Empty: this table cannot tell. Quick, and never waits.
  virtual std::optional<std::uint64_t> stamp(const std::vector<Key>&) const { return std::nullopt; }

  // Whether these rows are certainly the same at both versions, `to` being the later one. False: perhaps they are not,
  // ask for the stamp. Quicker than that.
  virtual bool left_alone(const RowSet&, std::uint64_t from, std::uint64_t to) const { return from == to; }

  // Where the bytes of that attribute, a Binary, lie in a file of this machine at this moment; at any later one there
  // may be others in their place. Empty: they do not lie in one as they are. May wait for a disk.
  virtual std::optional<FilePlace> place_of(const Key&, std::string_view /*attribute*/) const {
    return std::nullopt;
  }

  // What the table takes on a disk of this machine; empty: it is not on one. Quick.
  virtual std::optional<DiskUse> disk_use() const { return std::nullopt; }

  // Makes the table if it is not there and waits until it can be used; one of another shape is `invalid`.
  virtual Task<Result<void>> create() = 0;
  virtual Task<Result<TableDescription>> describe() = 0;

 private:
  // Called with what validation let through.
  virtual Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) = 0;
  virtual Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                                    Consistency consistency) = 0;
  virtual Task<Result<WriteOutcome>> do_write(Write write, Durability durability) = 0;
  virtual Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                                    std::string client_token) = 0;
  virtual Task<Result<QueryPage>> do_query(Query query) = 0;
  virtual Task<Result<ScanPage>> do_scan(Scan scan) = 0;
};

}  // namespace facetheory
