// KeptText: text that is kept long and never changed, in as few bytes as may be: a handle of eight, and one piece of
// memory of exactly the size that it needs. std::string takes four times the handle, and a byte more for its end, with
// which 1,024 bytes take 1,280 of most allocators. A plain value.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace facetheory {

// What an allocation of that size takes, about: allocators have four sizes for each doubling.
constexpr std::size_t allocated(std::size_t size) {
  if (size <= 16) return size == 0 ? 0 : 16;
  const std::size_t step = std::max<std::size_t>(16, std::bit_floor(size - 1) / 4);
  return (size + step - 1) / step * step;
}

class KeptText {
 public:
  KeptText() = default;
  explicit KeptText(std::string_view text) {
    if (text.empty()) return;
    const auto size = static_cast<std::uint32_t>(text.size());
    piece_ = std::make_unique_for_overwrite<char[]>(sizeof size + size);
    std::memcpy(piece_.get(), &size, sizeof size);
    std::memcpy(piece_.get() + sizeof size, text.data(), size);
  }

  std::string_view text() const {
    if (!piece_) return {};
    std::uint32_t size = 0;
    std::memcpy(&size, piece_.get(), sizeof size);
    return {piece_.get() + sizeof size, size};
  }
  // Asks for it before it is waited for.
  void fetch_ahead() const {
    if (!piece_) return;
    for (std::size_t i = 0; i < 2; ++i)
      __builtin_prefetch(piece_.get() + 64 * i);
  }
  // What it takes of memory besides itself.
  std::size_t memory() const { return piece_ ? allocated(sizeof(std::uint32_t) + text().size()) : 0; }

 private:
  std::unique_ptr<char[]> piece_;  // The size, and then the text.
};

}  // namespace facetheory
