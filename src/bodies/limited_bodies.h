// A body store whose answers come in time, as those of a table do (table/limited_table.h): what has not been read
// within the limit is `unavailable`, and what has not been written or removed is `ambiguous`. Listing has no limit, nor
// has removing many at once. May be used from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "facetheory/base/clock.h"
#include "facetheory/base/pending_writes.h"
#include "facetheory/bodies/body_store.h"

namespace facetheory {

struct BodyLimits {
  std::optional<Duration> read = {};   // Empty: as long as it takes.
  std::optional<Duration> write = {};  // It grows by a second for every kBytesASecond of the body.
  // Those of this store, where others want to see them. Beyond that a write is `unavailable` at once.
  std::shared_ptr<PendingWrites> pending = std::make_shared<PendingWrites>(256, std::size_t{128} << 20);

  static constexpr std::size_t kBytesASecond = std::size_t{4} << 20;
};

// Calls that have a limit run on that executor. The clock outlives the store.
std::unique_ptr<BodyStore> with_limits(std::unique_ptr<BodyStore> bodies, BodyLimits limits,
                                       const boost::asio::any_io_executor& executor,
                                       Clock& clock = system_clock());

}  // namespace facetheory
