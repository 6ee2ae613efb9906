// The header of a body's file: one line of JSON in ASCII, before the bytes; format in docs/formats.md. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/bodies/body_store.h"

namespace facetheory {

struct BodyFileHeader {
  std::string key;
  BodyMetadata metadata;  // With its sha256.
  std::uint64_t size = 0;

  friend bool operator==(const BodyFileHeader&, const BodyFileHeader&) = default;
};

// With its line feed. The key is UTF-8.
std::string encode_body_header(const BodyFileHeader& header);

// The line without its line feed. `corrupt`: it is none; `invalid`: it is of a later format. Messages name `path`.
Result<BodyFileHeader> decode_body_header(std::string_view line, const std::string& path);

}  // namespace facetheory
