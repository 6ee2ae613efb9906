// How (pk, sk) becomes an LMDB key of at most 511 bytes.
//
// An LMDB key is the partition's prefix followed by the beginning of sk. Partitions with a short pk carry it
// in the key; the others its SHA-256, and the record repeats the pk. Sort keys of up to kInlineSkBytes stand
// whole; all longer ones that share their first kInlineSkBytes share one key, with kOverflowMark behind,
// whose record is the list of those items in sk order. Since LMDB compares bytes, items of a partition follow
// each other in the order of their sk, at any length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "facetheory/table/item.h"

namespace facetheory {

inline constexpr std::size_t kInlinePkBytes = 128;
inline constexpr std::size_t kInlineSkBytes = 380;
inline constexpr char kOverflowMark = '\x01';

struct LmdbKey {
  std::string bytes;
  bool hashed = false;    // The record begins with the pk.
  bool overflow = false;  // The record is a list of items.

  // What every key of the partition begins with.
  static std::string partition_prefix(std::string_view pk);
  static LmdbKey of(const Key& key);
  // The same, of the bytes of a row's key.
  static std::string_view partition_of(std::string_view bytes);
  // Sorts before every row's key.
  static std::string first();
  // Whether these bytes are in the range of rows' keys, or name one of the table's own records.
  static bool is_row(std::string_view bytes);

  // What stored bytes say; not `valid` when they are no key of a row.
  struct Parsed {
    bool valid = false;
    bool hashed = false;
    bool overflow = false;
    std::string_view pk;  // Empty when hashed.
    std::string_view sk;  // Cut off when overflow.
  };
  static Parsed parse(std::string_view bytes);
};

// The smallest byte string that sorts after everything beginning with `prefix`; empty when there is none.
std::string end_of_prefix(std::string prefix);

}  // namespace facetheory
