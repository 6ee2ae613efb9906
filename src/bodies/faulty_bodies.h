// A body store that wraps another and loses answers, delays, throttles and fails, on command of a script.
// Operations are named "write", "read", "remove" and "list" in the script.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "facetheory/base/fault.h"
#include "facetheory/bodies/body_store.h"

namespace facetheory {

class FaultyBodies final : public BodyStore {
 public:
  // The clock must outlive the store.
  FaultyBodies(std::shared_ptr<BodyStore> inner, std::shared_ptr<FaultScript> script,
               Clock& clock = system_clock());

  std::string reference(std::string_view key) const override { return inner_->reference(key); }
  std::string address(std::string_view key) const override { return inner_->address(key); }
  std::size_t max_metadata_bytes() const override { return inner_->max_metadata_bytes(); }

 private:
  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;

  // Constant after construction.
  std::shared_ptr<BodyStore> inner_;
  std::shared_ptr<FaultScript> script_;
  Clock& clock_;
};

}  // namespace facetheory
