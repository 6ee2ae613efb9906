// A body's metadata as S3 stores it: named fields of printable ASCII. Also how every store measures it.
//
//   facetheory-status                    200
//   facetheory-content-type              text/html; charset=utf-8
//   facetheory-content-security-policy   default-src 'self'
//   facetheory-sha256                    lower-case hex; its presence marks a body of ours
//   facetheory-headers                   [["content-security-policy"],["cache-tag","a"]]
//
// The first three are what FaceTheory writes in other languages. `headers` holds all other header fields as
// JSON in ASCII, one string character per byte; an entry without a value says where the policy stood among
// them. Values that a field of their own could not carry unchanged (bytes outside ASCII, spaces at the ends)
// go into `headers` too.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/bodies/body.h"

namespace facetheory {

using MetadataFields = std::vector<std::pair<std::string, std::string>>;

// Prefix of the header fields in which S3 carries them.
inline constexpr std::string_view kMetadataFieldPrefix = "x-amz-meta-";

MetadataFields encode_metadata(const BodyMetadata& metadata);

// Names and values together, the prefix included.
std::size_t size_of(const MetadataFields& fields);

// The fields, without prefix, of any writer; those that are absent keep their defaults. `object_content_type`
// is the object's own Content-Type, which stands in where a foreign writer gave none. `corrupt` names the
// senseless field.
Result<BodyMetadata> decode_metadata(const MetadataFields& fields, std::string_view object_content_type);

// One string character (U+0000 to U+00FF) per byte, in UTF-8; and back, false where a character is beyond
// that.
std::string bytes_to_text(std::string_view bytes);
bool text_to_bytes(std::string_view text, std::string& bytes);

// JSON text with all but printable ASCII, and spaces that follow a space, escaped.
std::string ascii_json(std::string_view json);

}  // namespace facetheory
