#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "facetheory/http/field_values.h"
#include "facetheory/http/message_head.h"

namespace facetheory::fuzz {

void require(bool holds, std::string_view sentence, std::source_location where) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u: does not hold: %.*s\n", where.file_name(), static_cast<unsigned>(where.line()),
               static_cast<int>(sentence.size()), sentence.data());
  std::abort();
}

std::uint8_t Input::byte() {
  if (rest_.empty()) return 0;
  const auto first = static_cast<std::uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return first;
}

std::size_t Input::head_limit() {
  const std::uint8_t limited = byte();
  return limited < 128 ? 32768 : std::size_t{8} * (limited - 126U);
}

std::string_view Input::line() {
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  const std::string_view text = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  return text;
}

std::size_t Cuts::next() {
  state_ = state_ * 1664525U + 1013904223U;
  const std::uint32_t drawn = state_ >> 24;
  return drawn < 128 ? 1 + drawn % 3 : 1 + drawn % 61;
}

Headers headers_of(std::string_view lines) {
  Headers headers;
  Input input(lines);
  while (!input.rest().empty()) {
    const std::string_view line = input.line();
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (is_token(line.substr(0, colon)) && is_field_value(value))
      headers.add(std::string(line.substr(0, colon)), std::string(value));
  }
  return headers;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

}  // namespace facetheory::fuzz
