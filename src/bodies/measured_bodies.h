// A body store that wraps another and tells an observer how long each operation took and whether it succeeded.
// Operations are named "write", "read", "remove" (of one or of many at once) and "list". What validation refuses
// reaches neither.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "facetheory/base/store_observer.h"
#include "facetheory/bodies/forwarding_bodies.h"

namespace facetheory {

class MeasuredBodies final : public ForwardingBodies {
 public:
  // The clock must outlive the store.
  MeasuredBodies(std::shared_ptr<BodyStore> inner, StoreObserver observer, Clock& clock = system_clock());

 private:
  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<void>> do_remove_all(std::vector<std::string> keys) override;
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;

  // Constant after construction.
  StoreObserver observer_;
  Clock& clock_;
};

}  // namespace facetheory
