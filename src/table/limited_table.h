// A table whose answers come in time. One that has stopped answering would keep a request waiting for as long as its
// client tries, which is most of a minute, or for ever; here, what has not been read within the limit is `unavailable`,
// and what has not been written is `ambiguous`: it may have happened, or may yet, and the protocol settles that by
// reading. The call itself goes on until its own end, with nobody waiting for it.
//
// Making and describing a table have no limit, nor has a scan. May be used from any thread.
#pragma once

#include <memory>
#include <optional>

#include "facetheory/base/clock.h"
#include "facetheory/base/pending_writes.h"
#include "facetheory/table/table.h"

namespace facetheory {

struct TableLimits {
  std::optional<Duration> read = {};  // Empty: as long as it takes, without another coroutine on the way.
  std::optional<Duration> write = {};
  // Those of this table, where others want to see them. Beyond their number a write is `unavailable` at once.
  std::shared_ptr<PendingWrites> pending = std::make_shared<PendingWrites>(1'000, std::size_t{64} << 20);
};

// Calls that have a limit run on that executor. The clock outlives the table.
std::unique_ptr<Table> with_limits(std::unique_ptr<Table> table, TableLimits limits,
                                   const boost::asio::any_io_executor& executor,
                                   Clock& clock = system_clock());

}  // namespace facetheory
