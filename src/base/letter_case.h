// Upper and lower case of ASCII letters, whatever the locale; all other bytes stay as they are.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace facetheory {

constexpr char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr char upper_case(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    c = lower_case(c);
  return lower;
}

inline std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper)
    c = upper_case(c);
  return upper;
}

// Equal but for the case of letters.
inline bool same_text(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower_case(x) == lower_case(y); });
}

}  // namespace facetheory
