// A message head read as plainly as its grammar is written (RFC 9112, 2 to 5), without regard to speed: what the parser
// in message_head.h is compared with.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "facetheory/http/field_values.h"
#include "facetheory/http/message_head.h"

#include "tests/fuzz/fuzz.h"

namespace facetheory::fuzz {

struct PlainHead {
  std::string_view start_line;
  std::vector<FieldView> fields;
  std::size_t size = 0;
};

inline bool is_plain_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

// Empty: not a whole head, or none. The start line is not looked into.
inline std::optional<PlainHead> plainly_read(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  PlainHead head;
  head.size = end + 4;
  const std::vector<std::string_view> lines = split(bytes.substr(0, end), "\r\n");
  head.start_line = lines.front();
  if (!is_plain_value(head.start_line)) return std::nullopt;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t colon = lines[i].find(':');
    if (colon == std::string_view::npos || !is_token(lines[i].substr(0, colon))) return std::nullopt;
    const std::string_view value = lines[i].substr(colon + 1);
    if (!is_plain_value(value)) return std::nullopt;
    head.fields.push_back({lines[i].substr(0, colon), trimmed(value)});
  }
  if (head.fields.size() > kMaxHeadFields) return std::nullopt;
  return head;
}

}  // namespace facetheory::fuzz
