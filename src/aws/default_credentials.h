// Finds AWS credentials, unless somebody gives them, in the places in which AWS's own tools look, too.
//
// The chain asks in this order, and goes on with the first that answers: environment (AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN); the profile AWS_PROFILE (or "default") of the shared credentials
// and config files; the container endpoint (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, with
// _AUTHORIZATION_TOKEN or its _FILE); the instance metadata service, version 2 (unless
// AWS_EC2_METADATA_DISABLED=true). Credentials that expire are fetched again before they do, by one caller
// while the others go on with those that still hold.
#pragma once

#include <memory>

#include "facetheory/aws/credentials.h"
#include "facetheory/base/platform.h"
#include "facetheory/base/task.h"

namespace facetheory {

// The chain described above. May be used from any thread.
std::shared_ptr<CredentialsProvider> default_credentials(const boost::asio::any_io_executor& executor,
                                                         Platform platform);

}  // namespace facetheory
