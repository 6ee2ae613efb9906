#include "facetheory/table/lmdb_keys.h"

#include "facetheory/base/sha256.h"

namespace facetheory {
namespace {

// The first byte of a key. All others are free for the table's own records.
constexpr char kInlinePartition = '\x01';
constexpr char kHashedPartition = '\x02';
constexpr std::size_t kHashBytes = 32;

}  // namespace

std::string LmdbKey::partition_prefix(std::string_view pk) {
  std::string prefix;
  prefix.reserve(kInlinePkBytes + kInlineSkBytes + 3);
  if (pk.size() <= kInlinePkBytes) {
    prefix += kInlinePartition;
    prefix += static_cast<char>(pk.size());
    prefix += pk;
  } else {
    prefix += kHashedPartition;
    prefix += sha256(pk);
  }
  return prefix;
}

LmdbKey LmdbKey::of(const Key& key) {
  LmdbKey result{.bytes = partition_prefix(key.pk),
                 .hashed = key.pk.size() > kInlinePkBytes,
                 .overflow = key.sk.size() > kInlineSkBytes};
  result.bytes += std::string_view(key.sk).substr(0, kInlineSkBytes);
  if (result.overflow) result.bytes += kOverflowMark;
  return result;
}

std::string_view LmdbKey::partition_of(std::string_view bytes) {
  const bool hashed = bytes[0] == kHashedPartition;
  return bytes.substr(0, hashed ? 1 + kHashBytes : 2 + static_cast<unsigned char>(bytes[1]));
}

std::string LmdbKey::first() {
  return {kInlinePartition};
}

bool LmdbKey::is_row(std::string_view bytes) {
  return !bytes.empty() && (bytes[0] == kInlinePartition || bytes[0] == kHashedPartition);
}

LmdbKey::Parsed LmdbKey::parse(std::string_view bytes) {
  Parsed parsed;
  if (bytes.size() < 2) return parsed;
  std::size_t prefix = 0;
  if (bytes[0] == kInlinePartition) {
    prefix = 2 + static_cast<unsigned char>(bytes[1]);
    if (prefix > 2 + kInlinePkBytes || prefix >= bytes.size()) return parsed;
    parsed.pk = bytes.substr(2, prefix - 2);
  } else if (bytes[0] == kHashedPartition) {
    prefix = 1 + kHashBytes;
    if (prefix >= bytes.size()) return parsed;
    parsed.hashed = true;
  } else {
    return parsed;
  }
  parsed.sk = bytes.substr(prefix);
  parsed.overflow = parsed.sk.size() > kInlineSkBytes;
  if (parsed.overflow) {
    if (parsed.sk.size() != kInlineSkBytes + 1 || parsed.sk.back() != kOverflowMark) return parsed;
    parsed.sk.remove_suffix(1);
  }
  parsed.valid = true;
  return parsed;
}

std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff')
    prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace facetheory
