// Stores whose reads end in time. A table or a bucket that has stopped answering would keep a request waiting for as long as
// its client tries, which is most of a minute; here, what has not been read within the limit is `unavailable`. The read
// itself goes on until its own end, with nobody waiting for it.
//
// Writes are left alone: whether they happened matters, and a request waits for a render no longer than its own limit.
// May be used from any thread.
#pragma once

#include <memory>

#include "facetheory/base/clock.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/table/table.h"

namespace facetheory {

// The reads run on that executor. The clock outlives the store.
std::unique_ptr<Table> with_read_limit(std::unique_ptr<Table> table, Duration limit,
                                       const boost::asio::any_io_executor& executor,
                                       Clock& clock = system_clock());
std::unique_ptr<BodyStore> with_read_limit(std::unique_ptr<BodyStore> bodies, Duration limit,
                                           const boost::asio::any_io_executor& executor,
                                           Clock& clock = system_clock());

}  // namespace facetheory
