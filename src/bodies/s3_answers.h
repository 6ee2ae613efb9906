// What S3 says in XML: errors and lists of objects. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "facetheory/bodies/body_store.h"

namespace facetheory {

struct S3Error {
  std::string code;     // "NoSuchKey"; empty where the answer says nothing.
  std::string message;  // As S3 put it.
  std::string region;   // Where the bucket is, when it is elsewhere.
};
S3Error parse_s3_error(std::string_view xml);

// The objects under that prefix, their keys without it. Empty: it is no list of objects.
std::optional<BodyPage> parse_s3_list(std::string_view xml, std::string_view prefix);

}  // namespace facetheory
