// Input: a byte that says what follows: the metadata fields of an object ("name: value" lines), or the first line of a
// body's file.
//
// Metadata that is read can be written, and is the same then.
#include <algorithm>
#include <string>

#include "facetheory/base/utf8.h"
#include "facetheory/bodies/body_file.h"
#include "facetheory/bodies/metadata_fields.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

void require_fields(std::string_view text) {
  MetadataFields fields;
  for (const auto& [name, value] : headers_of(text))
    fields.emplace_back(name, value);
  const auto metadata = decode_metadata(fields, "text/plain");
  if (!metadata) {
    require(metadata.error().code == ErrorCode::corrupt, "senseless metadata is corrupt");
    return;
  }
  require(metadata->status >= 100 && metadata->status <= 999, "a status is one");
  const MetadataFields written = encode_metadata(*metadata);
  for (const auto& [name, value] : written) {
    // Foreign writers may have put anything into the digest; ours is hexadecimal.
    require(name == "facetheory-sha256" || is_printable_ascii(value), "fields are printable");
  }
  require(size_of(written) >= written.size(), "they have a size");
  const auto again = decode_metadata(written, "");
  require(again && again->status == metadata->status && again->headers == metadata->headers &&
              again->sha256 == metadata->sha256,
          "what is written is read as it was");
}

void require_file(std::string_view line) {
  const auto header = decode_body_header(line, "x");
  if (!header) {
    require(header.error().code == ErrorCode::corrupt || header.error().code == ErrorCode::invalid,
            "a damaged file is told from one of a later format");
    return;
  }
  const std::string written = encode_body_header(*header);
  require(
      written.ends_with('\n') && is_printable_ascii(std::string_view(written).substr(0, written.size() - 1)),
      "a header is one line of ASCII");
  const auto again = decode_body_header(std::string_view(written).substr(0, written.size() - 1), "x");
  require(again && *again == *header, "what is written is read as it was");
}

}  // namespace

void fuzz_body_metadata(std::string_view bytes) {
  Input input(bytes);
  if ((input.byte() & 1) == 0) {
    require_fields(input.rest());
  } else {
    require_file(input.rest());
  }
  std::string back;
  require(text_to_bytes(bytes_to_text(input.rest()), back) && back == input.rest(),
          "every byte has its character");
}

}  // namespace facetheory::fuzz
