#include "facetheory/http/cookies.h"

#include <algorithm>
#include <cstddef>

#include "facetheory/http/field_values.h"

namespace facetheory {

std::optional<std::pair<std::string_view, std::string_view>> next_cookie(std::string_view& rest) {
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view cookie = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (cookie.empty()) continue;
    const std::size_t equals = cookie.find('=');
    if (equals == std::string_view::npos) return std::pair(std::string_view(), cookie);
    return std::pair(trimmed(cookie.substr(0, equals)), trimmed(cookie.substr(equals + 1)));
  }
  return std::nullopt;
}

}  // namespace facetheory
