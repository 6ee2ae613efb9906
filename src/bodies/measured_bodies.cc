#include "facetheory/bodies/measured_bodies.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/measure.h"

namespace facetheory {

MeasuredBodies::MeasuredBodies(std::shared_ptr<BodyStore> inner, StoreObserver observer, Clock& clock)
    : ForwardingBodies(std::move(inner)), observer_(std::move(observer)), clock_(clock) {}

Task<Result<void>> MeasuredBodies::do_write(std::string key, Body body) {
  return measure(observer_, "write", clock_, write_to(inner(), std::move(key), std::move(body)));
}

Task<Result<std::optional<Body>>> MeasuredBodies::do_read(std::string key) {
  return measure(observer_, "read", clock_, read_from(inner(), std::move(key)));
}

Task<Result<void>> MeasuredBodies::do_remove(std::string key) {
  return measure(observer_, "remove", clock_, inner().remove(std::move(key)));
}

Task<Result<void>> MeasuredBodies::do_remove_all(std::vector<std::string> keys) {
  return measure(observer_, "remove", clock_, inner().remove_all(std::move(keys)));
}

Task<Result<BodyPage>> MeasuredBodies::do_list(std::optional<std::string> after, std::size_t limit) {
  return measure(observer_, "list", clock_, inner().list(std::move(after), limit));
}

}  // namespace facetheory
