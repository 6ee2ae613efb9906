// ForwardingBodies: a body store that stands before another and hands every operation on, with the form of its keys and
// its limits. Who does something to some of the operations derives from it and writes those alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/bodies/body_store.h"

namespace facetheory {

class ForwardingBodies : public BodyStore {
 public:
  explicit ForwardingBodies(std::shared_ptr<BodyStore> inner);
  explicit ForwardingBodies(BodyStore& inner);  // The inner store outlives it.

  std::string reference(std::string_view key) const override { return inner_->reference(key); }
  std::string address(std::string_view key) const override { return inner_->address(key); }
  std::size_t max_metadata_bytes() const override { return inner_->max_metadata_bytes(); }
  Task<Result<std::optional<DiskUse>>> disk_use() override;

 protected:
  BodyStore& inner() const { return *inner_; }
  // An operation that may still be under way when this store is gone holds this.
  const std::shared_ptr<BodyStore>& shared_inner() const { return inner_; }

  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<void>> do_remove_all(std::vector<std::string> keys) override;
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;

 private:
  const std::shared_ptr<BodyStore> inner_;
};

}  // namespace facetheory
