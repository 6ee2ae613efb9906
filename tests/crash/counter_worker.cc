// One of the processes that increment one counter together: counter_worker TABLE_URI INCREMENTS [lease]. Each
// increment is an update under the condition that the counter is still what was last seen of it; of a lease, one that
// need not survive the machine.
#include <cstdlib>
#include <iostream>
#include <string>

#include "facetheory/table/open_table.h"

#include "tests/crash/crash_rows.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

std::int64_t value_of(const std::optional<Item>& item) {
  const Value* n = item ? item->attributes.find("n") : nullptr;
  return n == nullptr ? 0 : n->as<Number>()->to_int64().value();
}

int work(const std::string& uri, int increments, Durability durability) {
  auto table = open_table(uri, test::executor());
  if (!table) {
    std::cerr << to_string(table.error()) << '\n';
    return 1;
  }
  std::int64_t seen = 0;
  while (increments > 0) {
    const Condition unchanged = seen == 0 ? attr("n").not_exists() : attr("n") == seen;
    const auto outcome = test::run(
        (*table)->write(Update{test::counter_key(), Changes().set("n", seen + 1), unchanged}, durability));
    if (!outcome) {
      std::cerr << to_string(outcome.error()) << '\n';
      return 1;
    }
    if (const auto* failed = std::get_if<ConditionFailed>(&*outcome)) {
      seen = value_of(failed->stored);
      continue;
    }
    ++seen;
    --increments;
  }
  return 0;
}

}  // namespace
}  // namespace facetheory

int main(int argc, char** argv) {
  using facetheory::Durability;
  if (argc != 3 && argc != 4) return 2;
  return facetheory::work(argv[1], std::atoi(argv[2]), argc == 4 ? Durability::process : Durability::machine);
}
