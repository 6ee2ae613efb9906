// Text that somebody else wrote, as a message or a log shows it to people: it can neither move a terminal's cursor nor
// fill the screen. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "facetheory/base/hex.h"
#include "facetheory/base/utf8.h"

namespace facetheory {

constexpr bool is_control_character(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// The same text with control characters as \xNN: a message that repeats what somebody wrote leaves the terminal alone.
inline std::string without_controls(std::string_view text) {
  std::string shown;
  for (const char c : text)
    shown += is_control_character(c) ? "\\x" + to_hex({&c, 1}) : std::string(1, c);
  return shown;
}

// Puts the text in quotes and cuts it after some 60 bytes; what a terminal could not show stands as \xNN.
inline std::string quoted_for_message(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  const bool utf8 = is_utf8(text);
  std::size_t length = text.size();
  if (length > kLongest) {
    length = kLongest;
    while (utf8 && (static_cast<unsigned char>(text[length]) & 0xc0U) == 0x80U)
      --length;
  }
  std::string quoted = "\"";
  for (const char c : text.substr(0, length)) {
    if (is_control_character(c) || (!utf8 && static_cast<unsigned char>(c) >= 0x80)) {
      quoted += "\\x" + to_hex({&c, 1});
    } else {
      quoted += c;
    }
  }
  return quoted + (length < text.size() ? "...\"" : "\"");
}

}  // namespace facetheory
