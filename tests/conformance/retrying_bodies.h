// A body store that repeats what another could not do, as a careful caller would: every operation of
// BodyStore may be repeated after `unavailable` and after `ambiguous`. For running the conformance suite
// through injected faults.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "facetheory/bodies/forwarding_bodies.h"

namespace facetheory::test {

class RetryingBodies final : public ForwardingBodies {
 public:
  explicit RetryingBodies(std::shared_ptr<BodyStore> inner) : ForwardingBodies(std::move(inner)) {}

 private:
  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<void>> do_remove_all(std::vector<std::string> keys) override;  // One after the other.
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;
};

}  // namespace facetheory::test
