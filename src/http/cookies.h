// Cookies as a request's Cookie field has them (RFC 6265, 4.2.1), and as careless clients do.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace facetheory {

// Takes the first cookie, name and value, off the value of a Cookie field. Empty: there is none left. One without "="
// has no name.
std::optional<std::pair<std::string_view, std::string_view>> next_cookie(std::string_view& rest);

}  // namespace facetheory
