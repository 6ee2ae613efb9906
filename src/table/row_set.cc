#include "facetheory/table/row_set.h"

#include <xxhash.h>

namespace facetheory {

void RowSet::add(const Key& key) {
  const std::uint64_t seed = XXH3_64bits(key.sk.data(), key.sk.size());
  const std::uint64_t hash = XXH3_64bits_withSeed(key.pk.data(), key.pk.size(), seed);
  words_[hash / 64 % kWords] |= std::uint64_t{1} << (hash % 64);
}

}  // namespace facetheory
