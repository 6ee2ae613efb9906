// RowSet: which rows, in 32 bytes. Two that have a row in common always meet; two that have none may, now and then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "facetheory/table/item.h"

namespace facetheory {

class RowSet {
 public:
  static constexpr std::size_t kWords = 4;
  using Words = std::array<std::uint64_t, kWords>;

  RowSet() = default;
  explicit RowSet(const Words& words) : words_(words) {}

  void add(const Key& key) { add_bit(bit_of(key)); }
  // The number of the bit that stands for that row, by which it can be added once more.
  static std::uint8_t bit_of(const Key& key);
  void add_bit(std::uint8_t bit) { words_[bit / 64] |= std::uint64_t{1} << (bit % 64); }
  const Words& words() const { return words_; }

  bool meets(const RowSet& other) const {
    std::uint64_t common = 0;
    for (std::size_t i = 0; i < kWords; ++i)
      common |= words_[i] & other.words_[i];
    return common != 0;
  }

 private:
  Words words_{};  // One bit for each row.
};

}  // namespace facetheory
