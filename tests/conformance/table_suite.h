// The conformance suite of the Table contract: the same cases on every backend. DynamoDB is the oracle; where
// a case looks odd, that is what DynamoDB does.
//
// Cases share one table per backend and keep to partitions of their own; a case that needs the whole table (a
// scan) opens a fresh one. A backend joins with an entry in backends().
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "facetheory/table/table.h"

namespace facetheory::test {

// A table that exists and is empty, with whatever must live as long as it does.
struct OpenedTable {
  std::shared_ptr<void> keep_alive = {};
  std::unique_ptr<Table> table = {};
};

struct TableBackend {
  std::string name;
  std::function<OpenedTable()> open;
};

const std::vector<TableBackend>& backends();

class TableSuite : public testing::TestWithParam<TableBackend> {
 protected:
  TableSuite();

  Table& table() { return *table_; }

  // Every case has a partition of its own, and as many more as it names.
  std::string pk(std::string_view suffix = "") const { return pk_ + std::string(suffix); }
  Key key(std::string_view sk = "item") const { return {pk_, std::string(sk)}; }
  Item item(Attributes attributes, std::string_view sk = "item") const {
    return {key(sk), std::move(attributes)};
  }

  // Each fails the test on an error.
  std::optional<Attributes> stored(std::string_view sk = "item");
  void put(Attributes attributes, std::string_view sk = "item");
  void update(Changes changes, std::string_view sk = "item");
  WriteOutcome write(Write write);
  TransactOutcome transact(std::vector<TransactItem> items);
  std::vector<std::string> sks_of(const QueryPage& page);
  QueryPage query(Query query);
  // All pages of it, in order.
  std::vector<std::string> query_all(Query query);

  // Whether the condition holds of an item with these attributes. Also checks that a failed condition brings
  // back exactly that item, and that a write under it happened or not accordingly.
  bool holds(const Attributes& attributes, const Condition& condition);
  bool holds_of_absent(const Condition& condition);

  // What the attributes are after that update.
  std::optional<Attributes> updated(Attributes before, Changes changes);
  std::optional<Attributes> updated_absent(Changes changes);

  // The message of an `invalid`; fails the test when it is something else, or when the item at `sk` changed.
  std::string refusal(Write write, std::string_view sk = "item");
  std::string refusal(std::vector<TransactItem> items, std::string client_token = "token",
                      std::string_view sk = "item");
  std::string refusal(Query query);
  std::string refusal(Scan scan);
  std::string refusal_of_get(Key key);

  std::string token();  // Never the same twice.

 private:
  std::string next_sk();

  Table* table_;
  std::string pk_;
  int count_ = 0;
};

// A table of the backend's own that nobody else uses.
OpenedTable fresh_table(const TableBackend& backend);

std::string backend_name(const testing::TestParamInfo<TableBackend>& info);
inline void PrintTo(const TableBackend& backend, std::ostream* out) {
  *out << backend.name;
}

Number number(std::string_view text);

}  // namespace facetheory::test

namespace facetheory {
// So that failed expectations are readable; long values are cut.
void PrintTo(const Value& value, std::ostream* out);
void PrintTo(const Attributes& attributes, std::ostream* out);
void PrintTo(const Item& item, std::ostream* out);
}  // namespace facetheory
