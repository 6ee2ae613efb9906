// The protocol's tests: the same cases on every table and body store, as they are and behind faults that lose
// answers and requests, delay and throttle. Time is moved by hand; the protocol's own pauses cost none.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/fault.h"
#include "facetheory/isr/history.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/regenerate.h"
#include "facetheory/isr/requests.h"
#include "facetheory/isr/sweep.h"
#include "facetheory/table/forwarding_table.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory::test {

struct ProtocolStores {
  std::shared_ptr<void> keep_alive = {};
  std::shared_ptr<Table> table = {};
  std::shared_ptr<BodyStore> bodies = {};
};

struct ProtocolBackend {
  std::string name;
  bool faulty = false;
  std::function<ProtocolStores(Clock&)> open;
};

const std::vector<ProtocolBackend>& protocol_backends();
std::string protocol_backend_name(const testing::TestParamInfo<ProtocolBackend>& info);
inline void PrintTo(const ProtocolBackend& backend, std::ostream* out) {
  *out << backend.name;
}

class ProtocolSuite : public testing::TestWithParam<ProtocolBackend> {
 protected:
  ProtocolSuite();

  // Runs the operation, again while it says that it may be tried again.
  template <typename Operation>
  auto done(Operation operation) {
    for (int attempt = 0;; ++attempt) {
      auto result = run(operation());
      if (result) {
        using Value = std::remove_cvref_t<decltype(*result)>;
        return Value(*std::move(result));
      }
      const bool again =
          result.error().code == ErrorCode::unavailable || result.error().code == ErrorCode::ambiguous;
      if (!again || attempt == 50) throw std::runtime_error(to_string(result.error()));
    }
  }

  // Rows as somebody else would write or read them: past the faults.
  std::optional<Item> row(std::string_view sk);
  void put(Item item);
  void put(std::string_view sk, Attributes attributes);
  std::optional<std::int64_t> number(std::string_view sk, std::string_view attribute);
  std::optional<std::string> text(std::string_view sk, std::string_view attribute);
  bool has_body(std::string key);
  std::vector<std::string> version_sks();  // Oldest first.

  Lease acquired(std::chrono::seconds length = std::chrono::seconds(30));
  Lease acquired_by(const Isr& isr, std::chrono::seconds length = std::chrono::seconds(30));
  Published published(PublishOptions options = {}, std::string bytes = "<h1>page</h1>");
  Rendered rendered(std::string bytes = "<h1>page</h1>") const;
  RequestClaim claimed(std::string id, std::string hash = "hash");

  std::int64_t now() const { return isr_.now(); }
  void advance(std::chrono::seconds by) { clock_.advance(by); }

  // The clock starts at the present: DynamoDB Local deletes rows whose ttl has passed by its own clock.
  ManualClock clock_{std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())};
  SeededRandom random_;  // Every case has tokens of its own: they may share a table.
  ProtocolStores stores_;
  ProtocolStores plain_;  // The same, without faults.
  Isr isr_;
  Page page_;
};

// A table that no other case uses.
std::shared_ptr<Table> fresh_dynamodb_table();

// The same stores, misbehaving by chance.
ProtocolStores behind_faults(const ProtocolStores& plain, Clock& clock);
// The same stores, misbehaving as the script wants it.
ProtocolStores behind(const ProtocolStores& plain, const std::shared_ptr<FaultScript>& script, Clock& clock);

// Chosen faults, one at a time, on the executable specification.
class OneFaultSuite : public testing::Test {
 protected:
  OneFaultSuite();

  std::optional<Item> row(std::string sk);

  ManualClock clock_;
  SeededRandom random_{7};
  std::shared_ptr<FaultScript> script_ = std::make_shared<FaultScript>();
  ProtocolStores plain_;
  ProtocolStores faulty_;
  Isr isr_;
  Page page_ = *page_of("/answers");
};

// A table on which somebody else acts in between: just before one of our writes or transactions is carried out.
class MeddledTable final : public ForwardingTable {
 public:
  explicit MeddledTable(Table& inner) : ForwardingTable(inner) {}

  // Called each time; an error is returned in place of the outcome.
  std::function<Task<Result<void>>(const Write&)> before_write;
  std::function<Task<Result<void>>(const std::vector<TransactItem>&)> before_transact;

 private:
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override;
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override;
};

// The error of an operation that must fail for good.
template <typename T>
Error error_of(const Result<T>& result) {
  if (result) return {ErrorCode::internal, "(it succeeded)"};
  return result.error();
}

}  // namespace facetheory::test
