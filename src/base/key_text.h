// Text that becomes part of a key: what it may contain.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/base/utf8.h"

namespace facetheory {

// `invalid` unless the text is UTF-8 without control characters. `what` names it: "cache key".
inline Result<void> check_key_text(std::string_view what, std::string_view text) {
  const auto refused = [&](const char* why) {
    return Error{ErrorCode::invalid, std::string(what) + " " + quoted_for_message(text) + why};
  };
  if (!is_utf8(text)) return refused(" is not UTF-8; percent-encode bytes that are no text");
  for (const char c : text) {
    if (is_control_character(c))
      return refused(" contains a control character; leave it out or percent-encode it");
  }
  return {};
}

}  // namespace facetheory
