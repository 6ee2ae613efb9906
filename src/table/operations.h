// What is asked of a table, and what comes of it: writes and transactions with their outcomes, queries and scans with
// their pages. Plain values; table.h says what a table does with them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "facetheory/table/changes.h"
#include "facetheory/table/condition.h"
#include "facetheory/table/item.h"

namespace facetheory {

enum class Consistency {
  eventual,  // May miss the latest writes; half the price on DynamoDB. The same as strong elsewhere.
  strong,    // Sees every write that was acknowledged before the read began.
};

enum class Durability {
  // Survives the death of every process; may be lost when the machine goes down, and then the row is as it was before.
  // A later write of another row may survive it all the same. For leases: who could hold one is gone with the machine,
  // and one that reappears ends by its time.
  process,
  machine,  // Survives power loss once acknowledged.
};

struct Put {
  Item item;  // Replaces the whole stored item.
  Condition condition = {};
};
struct Update {
  Key key;
  Changes changes;
  Condition condition = {};
};
struct Delete {
  Key key;  // An absent item is no error.
  Condition condition = {};
};
// Stands in transactions only. It writes nothing, but must hold.
struct Check {
  Key key;
  Condition condition;
};

using Write = std::variant<Put, Update, Delete>;
using TransactItem = std::variant<Put, Update, Delete, Check>;

struct Written {};
struct ConditionFailed {
  std::optional<Item> stored;  // What the condition was judged on; empty: there was no item.
};
using WriteOutcome = std::variant<Written, ConditionFailed>;

struct Committed {};
// Nothing was written. One entry per item of the transaction, in its order; those whose conditions held are
// empty.
struct Cancelled {
  std::vector<std::optional<ConditionFailed>> reasons;
};
using TransactOutcome = std::variant<Committed, Cancelled>;

enum class Direction { forward, backward };

struct Query {
  std::string pk;
  std::string sk_prefix = {};  // The sk of the items wanted begins so; empty: all of the partition.
  Direction direction = Direction::forward;
  std::optional<std::string> after = {};  // `next` of the page before.
  std::size_t limit = 100;                // 1 to 1000 items a page.
  Consistency consistency = Consistency::strong;
};
struct QueryPage {
  std::vector<Item> items;          // Ordered by sk in the asked direction; may be fewer than the limit.
  std::optional<std::string> next;  // Empty: nothing follows. Set: perhaps something does.
};

struct Scan {
  std::optional<Key> after = {};  // `next` of the page before.
  std::size_t limit = 100;        // 1 to 1000 items a page.
  // Rows that were damaged are left out, and logged; otherwise the first one is the outcome.
  bool pass_over_damaged = false;
};
struct ScanPage {
  std::vector<Item>
      items;  // Items of one pk stand together, in sk order; partitions in an order of the table's own.
  std::optional<Key> next;
};

const Key& key_of(const TransactItem& operation);
const Condition& condition_of(const TransactItem& operation);

// A write is a transaction of one.
TransactItem as_transact_item(Write write);
WriteOutcome as_write_outcome(TransactOutcome outcome);

}  // namespace facetheory
