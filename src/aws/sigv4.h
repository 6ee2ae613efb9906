// AWS Signature Version 4, by header. Pure: everything it depends on is a parameter.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/aws/credentials.h"
#include "facetheory/base/clock.h"
#include "facetheory/http/message.h"

namespace facetheory {

struct SigningScope {
  std::string region;  // "eu-west-1"
  std::string
      service;  // "dynamodb" or "s3". For s3 the path is signed as sent and the payload hash is a header.
};

// Adds X-Amz-Date, X-Amz-Security-Token (with a session token), X-Amz-Content-Sha256 (s3) and Authorization
// to the request, which must already carry every other field that is to be signed. `host` is the Host field
// as sent. Signed are host, content-type, and every x-amz-* field.
void sign(HttpRequest& request, std::string_view host, const Credentials& credentials,
          const SigningScope& scope, WallTime now);

// Percent-encodes all but unreserved characters (RFC 3986), as AWS wants it; '/' is kept in paths.
std::string percent_encode(std::string_view text);
std::string percent_encode_path(std::string_view path);

}  // namespace facetheory
