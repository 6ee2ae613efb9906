#include "facetheory/bodies/faulty_bodies.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/meet_fault.h"

namespace facetheory {

FaultyBodies::FaultyBodies(std::shared_ptr<BodyStore> inner, std::shared_ptr<FaultScript> script,
                           Clock& clock)
    : ForwardingBodies(std::move(inner)), script_(std::move(script)), clock_(clock) {}

Task<Result<void>> FaultyBodies::do_write(std::string key, Body body) {
  return meet_fault(*script_, "write", OperationKind::write, clock_,
                    inner().write(std::move(key), std::move(body)));
}

Task<Result<std::optional<Body>>> FaultyBodies::do_read(std::string key) {
  return meet_fault(*script_, "read", OperationKind::read, clock_, inner().read(std::move(key)));
}

Task<Result<void>> FaultyBodies::do_remove(std::string key) {
  return meet_fault(*script_, "remove", OperationKind::write, clock_, inner().remove(std::move(key)));
}

Task<Result<void>> FaultyBodies::do_remove_all(std::vector<std::string> keys) {
  for (std::string& key : keys) {
    auto removed = co_await do_remove(std::move(key));
    if (!removed) co_return removed;
  }
  co_return Result<void>{};
}

Task<Result<BodyPage>> FaultyBodies::do_list(std::optional<std::string> after, std::size_t limit) {
  return meet_fault(*script_, "list", OperationKind::read, clock_, inner().list(std::move(after), limit));
}

}  // namespace facetheory
