// Durations as people write them: 30s, 5m, 2h, 7d, 1500ms; a bare number is seconds.
//
// What is empty, negative, no whole number, of an unknown unit or longer than a century is `invalid`. The messages
// name the text; the caller puts the option's name before them. Messages say durations as in_words() or
// in_milliseconds() does.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"

namespace facetheory {

// Far beyond any use, and safe to add to any time.
inline constexpr std::chrono::seconds kLongestDuration{std::chrono::days{36525}};

Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// Whole seconds only: 1500ms is refused, 2000ms is two seconds.
Result<std::chrono::seconds> parse_seconds(std::string_view text, std::chrono::seconds at_least,
                                           std::chrono::seconds at_most = kLongestDuration);

std::string in_words(Duration duration);         // "30 s", "1500 ms"
std::string in_milliseconds(Duration duration);  // "30000 ms", as limits are configured

}  // namespace facetheory
