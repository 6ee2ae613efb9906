#include "facetheory/base/duration.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

namespace facetheory {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};
constexpr std::array kUnits = {Unit{"", 1000},    Unit{"s", 1000},      Unit{"ms", 1},
                               Unit{"m", 60'000}, Unit{"h", 3'600'000}, Unit{"d", 86'400'000}};

Error invalid(std::string_view text, const std::string& why) {
  return Error{ErrorCode::invalid, "'" + std::string(text) + "' " + why};
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text.empty()) return Error{ErrorCode::invalid, "the duration is empty; write 30s, 5m, 2h or 7d"};
  if (text.front() == '-') return invalid(text, "is negative; a duration is 30s, 5m, 2h or 7d");
  std::int64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc::invalid_argument) return invalid(text, "is no duration; write 30s, 5m, 2h or 7d");
  const std::string_view name = text.substr(static_cast<std::size_t>(rest - text.data()));
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    constexpr std::int64_t kLongest = std::chrono::milliseconds(kLongestDuration).count();
    if (error == std::errc::result_out_of_range || count > kLongest / unit.milliseconds) {
      return invalid(text, "is longer than a hundred years");
    }
    return std::chrono::milliseconds(count * unit.milliseconds);
  }
  return invalid(text, "is no duration; write a whole number and s, m, h or d: 30s, 5m, 2h, 7d");
}

Result<std::chrono::seconds> parse_seconds(std::string_view text, std::chrono::seconds at_least,
                                           std::chrono::seconds at_most) {
  const Result<std::chrono::milliseconds> parsed = parse_duration(text);
  if (!parsed) return parsed.error();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*parsed);
  if (seconds != *parsed) return invalid(text, "is not a whole number of seconds, which the rows need");
  if (seconds < at_least) {
    return invalid(text, "is too short; give at least " + std::to_string(at_least.count()) + "s");
  }
  if (seconds > at_most) {
    return invalid(text, "is too long; give at most " + std::to_string(at_most.count()) + "s");
  }
  return seconds;
}

std::string in_milliseconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) + " ms";
}

std::string in_words(Duration duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (milliseconds % 1000 == 0) return std::to_string(milliseconds / 1000) + " s";
  return in_milliseconds(duration);
}

}  // namespace facetheory
