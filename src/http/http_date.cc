#include "facetheory/http/http_date.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include "facetheory/base/letter_case.h"

namespace facetheory {
namespace {

namespace chrono = std::chrono;

constexpr std::array<std::string_view, 7> kWeekdays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::size_t kShortName = 3;

// Takes one piece after another off the front of a date; once something did not fit, it stays failed.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : rest_(text) {}

  bool done() const { return good_ && rest_.empty(); }

  void literal(std::string_view expected) { good_ = good_ && take_name(expected); }

  // `width` digits; with `space_padded` a space may stand for the leading zero of two.
  int number(std::size_t width, bool space_padded = false) {
    if (!good_ || rest_.size() < width) return fail();
    int value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const char c = rest_[i];
      if (space_padded && i == 0 && c == ' ') continue;
      if (c < '0' || c > '9') return fail();
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(width);
    return value;
  }

  // The index of the name that comes next.
  template <std::size_t Count>
  unsigned one_of(const std::array<std::string_view, Count>& names, std::size_t length) {
    for (unsigned i = 0; good_ && i < Count; ++i) {
      if (take_name(names[i].substr(0, length))) return i;
    }
    fail();
    return 0;
  }

 private:
  bool take_name(std::string_view expected) {
    if (rest_.size() < expected.size()) return false;
    const bool same = std::equal(expected.begin(), expected.end(), rest_.begin(),
                                 [](char a, char b) { return lower_case(a) == lower_case(b); });
    if (same) rest_.remove_prefix(expected.size());
    return same;
  }

  int fail() {
    good_ = false;
    return 0;
  }

  std::string_view rest_;
  bool good_ = true;
};

struct DateParts {
  unsigned weekday = 0;
  int year = 0;
  unsigned month = 0;  // 0 to 11
  int day = 0;
  int hour = 0, minute = 0, second = 0;
};

void read_time_of_day(DateReader& reader, DateParts& parts) {
  parts.hour = reader.number(2);
  reader.literal(":");
  parts.minute = reader.number(2);
  reader.literal(":");
  parts.second = reader.number(2);
}

std::optional<std::int64_t> to_epoch(const DateParts& parts) {
  // Second 60 is a leap second.
  if (parts.hour > 23 || parts.minute > 59 || parts.second > 60) return std::nullopt;
  const chrono::year_month_day date{chrono::year(parts.year), chrono::month(parts.month + 1),
                                    chrono::day(static_cast<unsigned>(parts.day))};
  if (!date.ok()) return std::nullopt;
  const chrono::sys_days days(date);
  if (chrono::weekday(days).c_encoding() != parts.weekday) return std::nullopt;
  const auto time = days + chrono::hours(parts.hour) + chrono::minutes(parts.minute);
  return chrono::duration_cast<chrono::seconds>(time.time_since_epoch()).count() + parts.second;
}

std::optional<std::int64_t> parse_preferred(std::string_view text) {
  DateReader reader(text);
  DateParts parts;
  parts.weekday = reader.one_of(kWeekdays, kShortName);
  reader.literal(", ");
  parts.day = reader.number(2);
  reader.literal(" ");
  parts.month = reader.one_of(kMonths, kShortName);
  reader.literal(" ");
  parts.year = reader.number(4);
  reader.literal(" ");
  read_time_of_day(reader, parts);
  reader.literal(" GMT");
  return reader.done() ? to_epoch(parts) : std::nullopt;
}

std::optional<std::int64_t> parse_rfc850(std::string_view text, std::int64_t now) {
  DateReader reader(text);
  DateParts parts;
  parts.weekday = reader.one_of(kWeekdays, std::string_view::npos);
  reader.literal(", ");
  parts.day = reader.number(2);
  reader.literal("-");
  parts.month = reader.one_of(kMonths, kShortName);
  reader.literal("-");
  const int year_of_century = reader.number(2);
  reader.literal(" ");
  read_time_of_day(reader, parts);
  reader.literal(" GMT");
  if (!reader.done()) return std::nullopt;

  const chrono::year_month_day today{
      chrono::floor<chrono::days>(chrono::sys_time<chrono::seconds>(chrono::seconds(now)))};
  const int this_year = static_cast<int>(today.year());
  parts.year = this_year - this_year % 100 + year_of_century;
  if (parts.year > this_year + 50) parts.year -= 100;
  if (parts.year + 100 <= this_year + 50) parts.year += 100;
  return to_epoch(parts);
}

std::optional<std::int64_t> parse_asctime(std::string_view text) {
  DateReader reader(text);
  DateParts parts;
  parts.weekday = reader.one_of(kWeekdays, kShortName);
  reader.literal(" ");
  parts.month = reader.one_of(kMonths, kShortName);
  reader.literal(" ");
  parts.day = reader.number(2, true);
  reader.literal(" ");
  read_time_of_day(reader, parts);
  reader.literal(" ");
  parts.year = reader.number(4);
  return reader.done() ? to_epoch(parts) : std::nullopt;
}

void append_padded(std::string& text, int number, int width) {
  std::string digits = std::to_string(number);
  text.append(static_cast<std::size_t>(std::max(0, width - static_cast<int>(digits.size()))), '0');
  text.append(digits);
}

}  // namespace

std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now) {
  if (auto time = parse_preferred(text)) return time;
  if (auto time = parse_rfc850(text, now)) return time;
  return parse_asctime(text);
}

std::string format_http_date(std::int64_t time) {
  constexpr std::int64_t kFirst = -62'167'219'200;  // Sat, 01 Jan 0000 00:00:00
  constexpr std::int64_t kLast = 253'402'300'799;   // Fri, 31 Dec 9999 23:59:59
  const chrono::sys_time<chrono::seconds> moment{chrono::seconds(std::clamp(time, kFirst, kLast))};
  const auto days = chrono::floor<chrono::days>(moment);
  const chrono::year_month_day date(days);
  const chrono::hh_mm_ss<chrono::seconds> clock(moment - days);

  std::string text;
  text.append(kWeekdays[chrono::weekday(days).c_encoding()].substr(0, kShortName)).append(", ");
  append_padded(text, static_cast<int>(static_cast<unsigned>(date.day())), 2);
  text.append(" ").append(kMonths[static_cast<unsigned>(date.month()) - 1]).append(" ");
  append_padded(text, static_cast<int>(date.year()), 4);
  text.append(" ");
  append_padded(text, static_cast<int>(clock.hours().count()), 2);
  text.append(":");
  append_padded(text, static_cast<int>(clock.minutes().count()), 2);
  text.append(":");
  append_padded(text, static_cast<int>(clock.seconds().count()), 2);
  return text.append(" GMT");
}

}  // namespace facetheory
