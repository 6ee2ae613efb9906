#include "facetheory/bodies/limited_bodies.h"

#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/duration.h"
#include "facetheory/base/limited_call.h"
#include "facetheory/bodies/forwarding_bodies.h"

namespace facetheory {
namespace {

class LimitedBodies final : public ForwardingBodies {
 public:
  LimitedBodies(std::unique_ptr<BodyStore> inner, BodyLimits limits, boost::asio::any_io_executor executor,
                Clock& clock)
      : ForwardingBodies(std::move(inner)),
        limits_(std::move(limits)),
        executor_(std::move(executor)),
        clock_(clock) {}

 private:
  Task<Result<void>> do_write(std::string key, Body body) override {
    if (!limits_.write) return write_to(inner(), std::move(key), std::move(body));
    const std::size_t bytes = body.bytes.size();
    const auto more = std::chrono::seconds(bytes / BodyLimits::kBytesASecond);
    return written_within(*limits_.write + more, bytes, write_to(inner(), std::move(key), std::move(body)));
  }
  Task<Result<std::optional<Body>>> do_read(std::string key) override {
    if (!limits_.read) return read_from(inner(), std::move(key));
    return read_within(*limits_.read, std::move(key));
  }
  Task<Result<void>> do_remove(std::string key) override {
    if (!limits_.write) return inner().remove(std::move(key));
    return written_within(*limits_.write, 0, inner().remove(std::move(key)));
  }

  Task<Result<std::optional<Body>>> read_within(Duration limit, std::string key) {
    Task<Result<std::optional<Body>>> task = read_from(inner(), std::move(key));
    auto found = co_await call_within(executor_, clock_, limit, shared_inner(), std::move(task));
    if (found) co_return *std::move(found);
    co_return Error{ErrorCode::unavailable, "the body store did not answer within " + in_milliseconds(limit)};
  }

  Task<Result<void>> written_within(Duration limit, std::size_t bytes, Task<Result<void>> task) {
    struct Kept {
      std::shared_ptr<BodyStore> bodies;
      std::shared_ptr<PendingWrites::Place> place;
    };
    auto kept = std::make_shared<Kept>();
    kept->bodies = shared_inner();
    kept->place = limits_.pending->begin(bytes);
    if (!kept->place)
      co_return Error{ErrorCode::unavailable, std::to_string(limits_.pending->count()) +
                                                  " writes to the body store have begun and not ended"};
    std::shared_ptr<void> until_it_ends = std::move(kept);
    auto outcome = co_await call_within(executor_, clock_, limit, std::move(until_it_ends), std::move(task));
    if (outcome) co_return *std::move(outcome);
    co_return Error{ErrorCode::ambiguous,
                    "the body store did not acknowledge a write within " + in_milliseconds(limit)};
  }

  // Constant after construction.
  const BodyLimits limits_;
  const boost::asio::any_io_executor executor_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<BodyStore> with_limits(std::unique_ptr<BodyStore> bodies, BodyLimits limits,
                                       const boost::asio::any_io_executor& executor, Clock& clock) {
  return std::make_unique<LimitedBodies>(std::move(bodies), std::move(limits), executor, clock);
}

}  // namespace facetheory
