#include "facetheory/bodies/stored_bytes.h"

#include <bit>
#include <random>
#include <utility>

#include <xxhash.h>

namespace facetheory {
namespace {

// Nobody outside of this process knows it.
std::uint64_t seed() {
  static const std::uint64_t drawn = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }();
  return drawn;
}

}  // namespace

std::uint64_t own_checksum(std::string_view bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed());
}

OwnDigest own_digest(std::string_view bytes) {
  return std::bit_cast<OwnDigest>(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed()));
}

StoredBytes::StoredBytes(FilePlace place, std::string_view bytes)
    : place_(std::move(place)), checksum_(own_checksum(bytes)), size_(bytes.size()) {}

bool StoredBytes::are(std::string_view bytes) const {
  return bytes.size() == size_ && own_checksum(bytes) == checksum_;
}

bool StoredBytes::read_at_once(char* into) const {
  return facetheory::read_at_once(place_.file->descriptor(), place_.offset, size_, into) &&
         are({into, size_});
}

}  // namespace facetheory
