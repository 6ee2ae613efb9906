// A body's file: one line of JSON in ASCII, the header, and then the bytes; format in docs/formats.md. Pure functions.
// `place` names the file in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/bodies/body.h"

namespace facetheory {

struct BodyFileHeader {
  std::string key;
  BodyMetadata metadata;  // Its sha256 is set.
  std::uint64_t size = 0;

  friend bool operator==(const BodyFileHeader&, const BodyFileHeader&) = default;
};

// Ends with the line feed. The key is UTF-8.
std::string encode_body_header(const BodyFileHeader& header);

// The line without its line feed. `corrupt`: it is none; `invalid`: it is of a later format.
Result<BodyFileHeader> decode_body_header(std::string_view line, const std::string& place);

// The header of a file of which the beginning is given; `corrupt` also where its line does not end there.
Result<BodyFileHeader> body_header_of(std::string_view file, const std::string& place);

// The whole file, which must be that of `key`.
Result<Body> decode_body_file(std::string file, const std::string& key, const std::string& place);

// What a second write under the same key comes to: `invalid` where the bytes are others, `corrupt` where those that are
// stored are not what they were.
Result<void> check_same_body(const std::string& key, const Body& stored, const Body& written,
                             const std::string& place);

}  // namespace facetheory
