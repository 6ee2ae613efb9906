#include "facetheory/table/row_set.h"

#include <xxhash.h>

namespace facetheory {

std::uint8_t RowSet::bit_of(const Key& key) {
  const std::uint64_t seed = XXH3_64bits(key.sk.data(), key.sk.size());
  const std::uint64_t hash = XXH3_64bits_withSeed(key.pk.data(), key.pk.size(), seed);
  static_assert(kWords * 64 == 256);
  return static_cast<std::uint8_t>(hash);
}

}  // namespace facetheory
