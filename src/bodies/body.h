// A body: the bytes of a page, and what whoever serves them has to know of them. Plain values.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "facetheory/bodies/stored_bytes.h"

namespace facetheory {

struct BodyMetadata {
  int status = 200;
  std::string content_type;  // Empty: not known.
  // Header fields worth replaying, in order, names in lower case; content-type is not among them.
  std::vector<std::pair<std::string, std::string>> headers;
  // Lower-case hex of the bytes' SHA-256. `write` fills it in; other writers' bodies lack it: unchecked then.
  std::optional<std::string> sha256;

  friend bool operator==(const BodyMetadata&, const BodyMetadata&) = default;
};

struct Body {
  std::string bytes;
  BodyMetadata metadata;
  // A body that was read has here where the same bytes are stored, if they lie in a file of this machine.
  std::optional<StoredBytes> on_disk = {};

  friend bool operator==(const Body& a, const Body& b) {
    return a.bytes == b.bytes && a.metadata == b.metadata;
  }
};

}  // namespace facetheory
