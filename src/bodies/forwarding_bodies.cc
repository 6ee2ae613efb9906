#include "facetheory/bodies/forwarding_bodies.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {

ForwardingBodies::ForwardingBodies(std::shared_ptr<BodyStore> inner) : inner_(std::move(inner)) {}
ForwardingBodies::ForwardingBodies(BodyStore& inner) : inner_(std::shared_ptr<void>(), &inner) {}

Task<Result<std::optional<DiskUse>>> ForwardingBodies::disk_use() {
  return inner_->disk_use();
}

Task<Result<void>> ForwardingBodies::do_write(std::string key, Body body) {
  return write_to(*inner_, std::move(key), std::move(body));
}

Task<Result<std::optional<Body>>> ForwardingBodies::do_read(std::string key) {
  return read_from(*inner_, std::move(key));
}

Task<Result<void>> ForwardingBodies::do_remove(std::string key) {
  return inner_->remove(std::move(key));
}

Task<Result<void>> ForwardingBodies::do_remove_all(std::vector<std::string> keys) {
  return inner_->remove_all(std::move(keys));
}

Task<Result<BodyPage>> ForwardingBodies::do_list(std::optional<std::string> after, std::size_t limit) {
  return inner_->list(std::move(after), limit);
}

}  // namespace facetheory
