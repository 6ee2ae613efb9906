// The tables the suite runs on: each as it is, and each behind faults that a caller is expected to absorb.
//
// moto, which is the second S3 of the bodies' suite, has a DynamoDB, too, and it is not good enough to be the second
// here. Version 5.2.5 fails 23 of the 295 cases: its transactions are not isolated, so that several writers under one
// version all commit (OfSimultaneousTransactionsUnderOneVersionExactlyOneIsCommitted); it answers 500 to comparisons of
// an absent attribute or of another type with a number, the lease rule among them; `<>` does not hold of an absent
// item; begins_with and contains do not know binaries; size() counts characters instead of UTF-16 units; numbers grow
// beyond 38 digits; an update that is refused half-way leaves its first half; items of the greatest size are refused.
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "facetheory/table/faulty_table.h"
#include "facetheory/table/forwarding_table.h"
#include "facetheory/table/measured_table.h"
#include "facetheory/table/memory_table.h"
#include "facetheory/table/open_table.h"

#include "tests/conformance/retrying_table.h"
#include "tests/conformance/table_suite.h"
#include "tests/support/run.h"
#include "tests/support/servers.h"

namespace facetheory::test {
namespace {

std::unique_ptr<Table> made(Result<std::unique_ptr<Table>> table) {
  if (!table) throw std::runtime_error(to_string(table.error()));
  const Result<void> created = run((*table)->create());
  if (!created) throw std::runtime_error(to_string(created.error()));
  return std::move(table).value();
}

OpenedTable open_memory() {
  return {{}, std::make_unique<MemoryTable>()};
}

OpenedTable open_lmdb() {
  auto directory = std::make_shared<TemporaryDirectory>();
  return {directory, made(open_table("lmdb:" + directory->path().string(), executor()))};
}

// Through the proxy, which checks every signature.
OpenedTable open_dynamodb() {
  static FaultProxy proxy("dynamodb", shared_dynamodb_local());
  static std::atomic<int> count = 0;
  Platform platform;
  platform.environment = proxy.environment();
  return {{}, made(open_table("dynamodb:suite-" + std::to_string(++count), executor(), platform))};
}

TableBackend with_faults(TableBackend backend) {
  const auto open = [inner = backend.open] {
    static std::atomic<std::uint64_t> seed = 0;
    auto script = std::make_shared<FaultScript>(++seed);
    script->set_delay(std::chrono::milliseconds(1));
    script->queue("", Fault::throttle);
    script->chance(Fault::delay, 0.1);
    script->chance(Fault::throttle, 0.1);
    script->chance(Fault::conflict, 0.1);
    script->chance(Fault::fail, 0.1);
    OpenedTable opened = inner();
    opened.table = retrying(std::make_unique<FaultyTable>(std::move(opened.table), std::move(script)));
    return opened;
  };
  return {backend.name + "_with_faults", open};
}

// Hands writes on as ones that need not survive the machine: all of them, or every other one.
class LeasingTable final : public ForwardingTable {
 public:
  LeasingTable(std::unique_ptr<Table> inner, bool all) : ForwardingTable(std::move(inner)), all_(all) {}

 private:
  Task<Result<WriteOutcome>> do_write(Write write, Durability) override {
    const bool lease = all_ || ++writes_ % 2 == 0;
    return inner().write(std::move(write), lease ? Durability::process : Durability::machine);
  }

  const bool all_;
  std::atomic<int> writes_ = 0;
};

TableBackend with_leases(TableBackend backend, bool all) {
  const auto open = [inner = backend.open, all] {
    OpenedTable opened = inner();
    opened.table = std::make_unique<LeasingTable>(std::move(opened.table), all);
    return opened;
  };
  return {backend.name + (all ? "_leases_only" : "_leases_too"), open};
}

TableBackend measured(TableBackend backend) {
  const auto open = [inner = backend.open] {
    OpenedTable opened = inner();
    opened.table =
        std::make_unique<MeasuredTable>(std::move(opened.table), [](std::string_view, bool, Duration) {});
    return opened;
  };
  return {backend.name + "_measured", open};
}

}  // namespace

const std::vector<TableBackend>& backends() {
  static const std::vector<TableBackend> all = [] {
    const TableBackend memory{"memory", open_memory};
    const TableBackend lmdb{"lmdb", open_lmdb};
    const TableBackend dynamodb{"dynamodb", open_dynamodb};
    return std::vector<TableBackend>{memory,
                                     lmdb,
                                     dynamodb,
                                     with_leases(lmdb, true),
                                     with_leases(lmdb, false),
                                     measured(memory),
                                     with_faults(memory),
                                     with_faults(lmdb),
                                     with_faults(dynamodb)};
  }();
  return all;
}

}  // namespace facetheory::test
