// GatheredReads: of reads of a table that are wanted at about the same time, few requests are made. For .cc files only,
// since it needs Asio. May be used from any thread.
//
// A read that finds none under way goes at once. While one is under way the others gather, and go together: as soon as
// it has ended, when they are as many rows as fit into a request, or after kLongestGather, whichever comes first. So
// nobody waits longer than that for others. A row that several want is asked for once.
//
// Who comes first to a gathering reads for all of it, as part of its own request. If that is interrupted, the others
// gather anew. An answer that is an error concerns all who share it, though perhaps one row alone has caused it: where
// it came soon, each reads its own rows once more, by itself. A table that does not answer at all is not asked twice.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/distinct_keys.h"
#include "facetheory/table/item.h"

namespace facetheory {

class GatheredReads {
 public:
  using Items = Result<std::vector<std::optional<Item>>>;
  // Makes one request: an answer for each key, in their order.
  using Read = std::function<Task<Items>(std::vector<Key>)>;

  static constexpr std::chrono::milliseconds kLongestGather{1};
  static constexpr std::size_t kMostKeys = 100;  // DynamoDB takes no more in one request.

  // The clock, and what `read` refers to, outlive it.
  GatheredReads(Clock& clock, Read read) : clock_(clock), read_(std::move(read)) {}

  // As Table::get_all. Every row is read after the call.
  Task<Items> get_all(std::vector<Key> keys);

 private:
  // Reads that share a request.
  struct Gathering {
    DistinctKeys keys;
    int readers = 0;
    Event due;  // It is to go: there is no reason to wait for more.
    Event ended;
    // Before `ended`: empty. Afterwards: empty where whoever read was interrupted.
    std::optional<Items> found;
    bool is_worth_another_try = false;  // It failed, but soon.
  };
  enum class Part { reads_at_once, reads, follows };

  std::pair<std::shared_ptr<Gathering>, Part> take_part(const std::vector<Key>& keys);
  // Reads for all of it; ends it however that ends.
  Task<void> read_for_all(std::shared_ptr<Gathering> gathering, Part part);
  void close(const std::shared_ptr<Gathering>& gathering);
  void end(Gathering& gathering, bool was_under_way);

  Clock& clock_;
  const Read read_;

  std::mutex mutex_;                 // Guards what follows; never held across an await.
  int under_way_ = 0;                // Requests.
  std::shared_ptr<Gathering> open_;  // Whoever comes now takes part in it. Null: there is none.
};

}  // namespace facetheory
