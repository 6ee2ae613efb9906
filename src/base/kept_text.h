// KeptText: text that is kept long and never changed, in as few bytes as may be: a handle of eight, and one piece of
// memory of exactly the size that it needs. std::string takes four times the handle, and a byte more for its end, with
// which 1,024 bytes take 1,280 of most allocators. A plain value.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace facetheory {

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
  // What it takes of memory besides itself.
  std::size_t memory() const { return piece_ ? sizeof(std::uint32_t) + text().size() : 0; }

 private:
  std::unique_ptr<char[]> piece_;  // The size, and then the text.
};

}  // namespace facetheory
