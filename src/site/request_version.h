// Deploy and policy version, as the configuration names them: parts of the idempotency keys of requests. A retry that
// comes after either has changed is another request.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/base/result.h"

namespace facetheory {

class ConfigValue;

struct RequestVersion {
  std::string deploy_id = {};  // Empty: not given.
  std::string policy_version = {};

  bool empty() const { return deploy_id.empty() && policy_version.empty(); }

  friend bool operator==(const RequestVersion&, const RequestVersion&) = default;
};

// One of the two; `what` is its name in a message. A mistake is noted, and leaves `into` alone.
void read_version_part(const ConfigValue& value, std::string_view what, std::string& into);

// What the configuration file says of both, and nothing else of it: a mistake in a route is no reason to refuse a
// request. `invalid` has the file's name and the line.
Result<RequestVersion> load_request_version(const std::string& path);

}  // namespace facetheory
