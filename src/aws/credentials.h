// AWS credentials and where they come from.
//
// The chain asks in this order, and keeps to the first that answers: environment (AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN); the profile AWS_PROFILE (or "default") of the shared credentials
// and config files; the container endpoint (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, with
// _AUTHORIZATION_TOKEN or its _FILE); the instance metadata service, version 2 (unless
// AWS_EC2_METADATA_DISABLED=true). Credentials that expire are fetched again before they do, by one caller
// while the others go on with those that still hold.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/base/platform.h"
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

// The chain described above. May be used from any thread.
std::shared_ptr<CredentialsProvider> default_credentials(const boost::asio::any_io_executor& executor,
                                                         Platform platform);

}  // namespace facetheory
