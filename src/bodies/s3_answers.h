// What S3 says in XML: errors and lists of objects. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "facetheory/bodies/body_store.h"

namespace facetheory {

struct S3Error {
  std::string code;     // "NoSuchKey"; empty where the answer says nothing.
  std::string message;  // These are S3's words.
  std::string region;   // The bucket is in that region; empty: S3 did not say.
};
S3Error parse_s3_error(std::string_view xml);

// The objects under that prefix, their keys without it. Empty: it is no list of objects.
std::optional<BodyPage> parse_s3_list(std::string_view xml, std::string_view prefix);

}  // namespace facetheory
