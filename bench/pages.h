// The pages that every peer stores: the same keys, and rows of the same shape and size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "facetheory/base/random.h"

namespace facetheory::bench {

// Partition keys, "CACHE#<sha256 hex>", in one block of memory: a list drawn in advance is read as fast as
// memory streams, so that fetching the key is no part of what a read costs.
class KeyList {
 public:
  static constexpr std::size_t kKeySize = 6 + 64;

  void append(std::string_view pk) { bytes_.append(pk); }
  void reserve(std::size_t count) { bytes_.reserve(count * kKeySize); }
  std::size_t size() const { return bytes_.size() / kKeySize; }
  std::string_view operator[](std::size_t i) const {
    return std::string_view(bytes_).substr(i * kKeySize, kKeySize);
  }

 private:
  std::string bytes_;
};

// The keys of `count` pages in the order in which they are first stored: four passes over the key space. That
// is far quicker to store than a random order, and unlike a sorted one it leaves the leaves of a tree partly
// filled, as they are in a store that has lived for a while.
KeyList page_keys(std::size_t count);

// `count` keys drawn at random, with repetitions.
KeyList draw(const KeyList& pages, std::size_t count, Random& random);

std::string_view draw_one(const KeyList& pages, Random& random);

// What META carries.
struct Meta {
  std::string s3_key;
  std::int64_t generated_at = 0;
  std::int64_t revalidate_seconds = 0;
  std::string etag;
  std::int64_t ttl = 0;
};

Meta make_meta(std::string_view pk, std::int64_t now, Random& random);

// A META that was read back is one that make_meta could have made.
bool plausible(const Meta& meta);

inline constexpr std::int64_t kLeaseSeconds = 30;
inline constexpr std::int64_t kLockTtlSeconds =
    3600;  // How long after its expiry a LOCK row may be collected.

std::int64_t now_seconds();

}  // namespace facetheory::bench
