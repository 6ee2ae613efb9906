// A body store that wraps another and tells an observer how long each operation took and whether it succeeded. Operations
// are named "write", "read", "remove" (of one or of many at once) and "list". What validation refuses reaches neither.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "facetheory/base/store_observer.h"
#include "facetheory/bodies/body_store.h"

namespace facetheory {

class MeasuredBodies final : public BodyStore {
 public:
  // The clock must outlive the store.
  MeasuredBodies(std::shared_ptr<BodyStore> inner, StoreObserver observer, Clock& clock = system_clock());

  std::string reference(std::string_view key) const override { return inner_->reference(key); }
  std::string address(std::string_view key) const override { return inner_->address(key); }
  std::size_t max_metadata_bytes() const override { return inner_->max_metadata_bytes(); }
  Task<Result<std::optional<DiskUse>>> disk_use() override;

 private:
  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<void>> do_remove_all(std::vector<std::string> keys) override;
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;

  // Constant after construction.
  std::shared_ptr<BodyStore> inner_;
  StoreObserver observer_;
  Clock& clock_;
};

}  // namespace facetheory
