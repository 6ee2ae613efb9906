// GuardedTable: a table behind a circuit breaker for writes (write_breaker.h). Reads are passed on. For .cc files only,
// since it needs Asio. May be used from any thread.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "facetheory/cache/write_breaker.h"
#include "facetheory/table/forwarding_table.h"

namespace facetheory {

class GuardedTable final : public TransparentTable {
 public:
  // The table and the clock outlive it.
  GuardedTable(Table& inner, Clock& clock, int failures, Duration pause)
      : TransparentTable(inner), clock_(clock), writes_("the table", clock, failures, pause) {}

  WriteBreaker& writes() { return writes_; }
  const WriteBreaker& writes() const { return writes_; }
  // A write that changes nothing.
  Task<void> probe();

 private:
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override;
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override;

  // Constant after construction.
  Clock& clock_;

  WriteBreaker writes_;
};

}  // namespace facetheory
