// Input: two bytes for the year that it is, then a date.
//
// A date that is read is one of the three forms, and written in the preferred one it is the same time.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/http_date.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

constexpr std::int64_t kFirst = -62'167'219'200;  // The year 0 begins.
constexpr std::int64_t kLast = 253'402'300'799;   // The year 9999 ends.

int year_of(std::int64_t time) {
  const std::chrono::sys_seconds moment{std::chrono::seconds(time)};
  return static_cast<int>(std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(moment)).year());
}

}  // namespace

void fuzz_http_date(std::string_view bytes) {
  Input input(bytes);
  const std::int64_t now = std::int64_t{input.byte()} * 31'557'600 + std::int64_t{input.byte()} * 86'400;
  const std::string_view text = input.rest();

  if (const auto time = parse_http_date(text, now)) {
    const std::string preferred = format_http_date(*time);
    require(parse_http_date(preferred, now) == std::min(*time, kLast),
            "a date that is written again is the same time");
    const bool leap_second = text.find(":60") != std::string_view::npos;
    if (text.size() == preferred.size() && !leap_second && text[3] == ',') {
      require(same_text(text, preferred), "the preferred form says what it is read as");
    } else if (text.find('-') != std::string_view::npos) {
      const int year = year_of(*time - (leap_second ? 1 : 0));
      require(year <= year_of(now) + 50 && year > year_of(now) - 50,
              "two digits are a year close to this one");
      require(text.substr(text.find('-') + 5, 2) == preferred.substr(14, 2) || leap_second,
              "and its last two digits");
    } else {
      require(text.size() == 24 || text.size() == preferred.size(), "all else is asctime's form");
    }
  }

  std::int64_t time = 0;
  std::memcpy(&time, text.data(), std::min(text.size(), sizeof time));
  require(parse_http_date(format_http_date(time), now) == std::clamp(time, kFirst, kLast),
          "every time can be written, or its nearest");
}

}  // namespace facetheory::fuzz
