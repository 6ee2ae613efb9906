#include "facetheory/base/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace facetheory {
namespace {

// Length of the well-formed sequence at `i`, or 0.
std::size_t sequence_length(std::string_view bytes, std::size_t i) {
  const auto at = [&](std::size_t k) -> unsigned {
    return k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0U;
  };
  const auto is_continuation = [](unsigned byte) { return (byte & 0xc0U) == 0x80U; };
  const unsigned lead = at(i);
  const unsigned second = at(i + 1);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || !is_continuation(second)) return 0;
  if (lead < 0xe0) return 2;
  if (!is_continuation(at(i + 2))) return 0;
  if (lead < 0xf0) {
    const bool overlong = lead == 0xe0 && second < 0xa0;
    const bool surrogate = lead == 0xed && second >= 0xa0;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead > 0xf4 || !is_continuation(at(i + 3))) return 0;
  const bool overlong = lead == 0xf0 && second < 0x90;
  const bool beyond = lead == 0xf4 && second >= 0x90;
  return overlong || beyond ? 0 : 4;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    // Most text is ASCII: eight bytes at a time as long as none has its high bit set. What is left of them at the end
    // is looked at in the last eight, where there are so many.
    std::uint64_t word = 0;
    if (bytes.size() >= sizeof word) {
      std::memcpy(&word, bytes.data() + std::min(i, bytes.size() - sizeof word), sizeof word);
      if ((word & 0x8080808080808080U) == 0) {
        i += sizeof word;
        continue;
      }
    }
    const std::size_t length = sequence_length(bytes, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = sequence_length(bytes, i);
    text += length > 0 ? bytes.substr(i, length) : "\xef\xbf\xbd";
    i += length > 0 ? length : 1;
  }
  return text;
}

}  // namespace facetheory
