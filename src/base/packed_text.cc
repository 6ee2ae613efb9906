#include "facetheory/base/packed_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "facetheory/base/hex.h"

namespace facetheory {
namespace {

// Each piece begins with a byte: how many bytes follow, and whether each of them is two digits.
constexpr unsigned kDigits = 0x80;
constexpr std::size_t kMostBytes = 0x7f;
constexpr std::size_t kLeastDigits = 6;  // Fewer are not worth a piece of their own.
constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 16; ++i)
    values[static_cast<unsigned char>("0123456789abcdef"[i])] = i;
  return values;
}();

std::uint8_t value_of(char digit) {
  return kValues[static_cast<unsigned char>(digit)];
}

// How many digits the text begins with, in pairs.
std::size_t digits_in(std::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), [](char c) { return value_of(c) == kNoDigit; });
  return static_cast<std::size_t>(end - text.begin()) & ~std::size_t{1};
}

void add_plain(std::string_view text, std::string& packed) {
  for (; !text.empty(); text.remove_prefix(std::min(kMostBytes, text.size()))) {
    const std::string_view piece = text.substr(0, kMostBytes);
    packed += static_cast<char>(piece.size());
    packed += piece;
  }
}

void add_digits(std::string_view digits, std::string& packed) {
  for (; !digits.empty(); digits.remove_prefix(std::min(2 * kMostBytes, digits.size()))) {
    const std::string_view piece = digits.substr(0, 2 * kMostBytes);
    packed += static_cast<char>(kDigits | (piece.size() / 2));
    for (std::size_t i = 0; i < piece.size(); i += 2)
      packed += static_cast<char>((value_of(piece[i]) << 4) | value_of(piece[i + 1]));
  }
}

}  // namespace

std::string packed_text(std::string_view text) {
  std::string packed;
  packed.reserve(text.size());
  std::size_t plain = 0;  // So much of it is to be added as it is, first.
  while (plain < text.size()) {
    const std::size_t digits = digits_in(text.substr(plain));
    if (digits < kLeastDigits) {
      plain += std::max<std::size_t>(1, digits);
      continue;
    }
    add_plain(text.substr(0, plain), packed);
    add_digits(text.substr(plain, digits), packed);
    text.remove_prefix(plain + digits);
    plain = 0;
  }
  add_plain(text, packed);
  return packed;
}

std::string unpacked_text(std::string_view packed) {
  std::string text;
  while (!packed.empty()) {
    const auto head = static_cast<unsigned char>(packed[0]);
    const std::string_view piece = packed.substr(1, head & kMostBytes);
    text += (head & kDigits) != 0 ? to_hex(piece) : std::string(piece);
    packed.remove_prefix(1 + piece.size());
  }
  return text;
}

}  // namespace facetheory
