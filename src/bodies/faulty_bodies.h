// A body store that wraps another and loses answers, delays, throttles and fails, on command of a script.
// Operations are named "write", "read", "remove" and "list" in the script.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "facetheory/base/fault.h"
#include "facetheory/bodies/forwarding_bodies.h"

namespace facetheory {

class FaultyBodies final : public ForwardingBodies {
 public:
  // The clock must outlive the store.
  FaultyBodies(std::shared_ptr<BodyStore> inner, std::shared_ptr<FaultScript> script,
               Clock& clock = system_clock());

 private:
  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<void>> do_remove_all(std::vector<std::string> keys) override;  // One after the other.
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;

  // Constant after construction.
  std::shared_ptr<FaultScript> script_;
  Clock& clock_;
};

}  // namespace facetheory
