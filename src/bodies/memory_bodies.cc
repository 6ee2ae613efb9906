#include "facetheory/bodies/memory_bodies.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {

Task<Result<void>> MemoryBodies::do_write(std::string key, Body body) {
  const WallTime now = clock_.now();
  const std::scoped_lock lock(mutex_);
  const auto found = bodies_.find(key);
  if (found == bodies_.end()) {
    bodies_.emplace(std::move(key), Stored{std::move(body), now});
    co_return Result<void>();
  }
  if (found->second.body.metadata.sha256 == body.metadata.sha256) co_return Result<void>();
  co_return Error{
      ErrorCode::invalid,
      "the body \"" + key + "\" exists with other bytes: a key is written once, take a fresh one"};
}

Task<Result<std::optional<Body>>> MemoryBodies::do_read(std::string key) {
  const std::scoped_lock lock(mutex_);
  const auto found = bodies_.find(key);
  if (found == bodies_.end()) co_return std::optional<Body>();
  co_return std::optional<Body>(found->second.body);
}

Task<Result<void>> MemoryBodies::do_remove(std::string key) {
  const std::scoped_lock lock(mutex_);
  bodies_.erase(key);
  co_return Result<void>();
}

Task<Result<BodyPage>> MemoryBodies::do_list(std::optional<std::string> after, std::size_t limit) {
  const std::scoped_lock lock(mutex_);
  BodyPage page;
  auto entry = after ? bodies_.upper_bound(*after) : bodies_.begin();
  for (; entry != bodies_.end() && page.entries.size() < limit; ++entry) {
    page.entries.push_back(
        BodyEntry{entry->first, entry->second.body.bytes.size(), entry->second.modified_at});
  }
  if (entry != bodies_.end()) page.next = page.entries.back().key;
  co_return page;
}

}  // namespace facetheory
