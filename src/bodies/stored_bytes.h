// StoredBytes: bytes that lie in a file of this machine, to be read again at once while the system has them in memory.
//
// They are known by a checksum. The file may hold something else at that place by then, or may have been damaged:
// nobody gets other bytes for these. Plain values, for any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "facetheory/base/open_file.h"

namespace facetheory {

// Nobody outside of this process can know which it is, and so make other bytes that have the same.
std::uint64_t own_checksum(std::string_view bytes);

// Names bytes in this process: so long that no two that are different have the same.
using OwnDigest = std::array<char, 16>;
OwnDigest own_digest(std::string_view bytes);

class StoredBytes {
 public:
  // `bytes` are the ones that lie at that place now.
  StoredBytes(FilePlace place, std::string_view bytes);
  // What another one said of itself.
  StoredBytes(FilePlace place, std::size_t size, std::uint64_t checksum)
      : place_(std::move(place)), checksum_(checksum), size_(size) {}

  const FilePlace& place() const { return place_; }
  std::size_t size() const { return size_; }
  std::uint64_t checksum() const { return checksum_; }
  // Whether it is these bytes that are meant.
  bool are(std::string_view bytes) const;

  // Fills `into`, which has room for size(). False: a disk would have to be waited for, or they are not there any more.
  // What is in `into` then is nothing.
  bool read_at_once(char* into) const;

 private:
  FilePlace place_;
  std::uint64_t checksum_;
  std::size_t size_;
};

}  // namespace facetheory
