// AWS credentials, and whoever provides those that hold now (default_credentials.h finds them as AWS's own tools do).
#pragma once

#include <optional>
#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"

namespace facetheory {

struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;           // Empty for long-lived keys.
  std::optional<WallTime> expires_at;  // Empty: they do not expire.
};

class CredentialsProvider {
 public:
  virtual ~CredentialsProvider() = default;

  // Credentials that hold now. `unauthorized` names every source that was asked and what it lacked.
  virtual Task<Result<Credentials>> credentials() = 0;
};

}  // namespace facetheory
