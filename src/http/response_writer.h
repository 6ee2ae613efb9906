// A response's head as the bytes to send, line by line. What goes in must be well-formed: whoever read or made it has
// checked it.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/http/reason_phrase.h"

namespace facetheory {

inline void append_status_line(std::string& to, int status) {
  to.append("HTTP/1.1 ")
      .append(std::to_string(status))
      .append(" ")
      .append(reason_phrase(status))
      .append("\r\n");
}

inline void append_field(std::string& to, std::string_view name, std::string_view value) {
  to.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace facetheory
