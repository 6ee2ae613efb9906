#include "facetheory/site/config_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <system_error>

#include "facetheory/base/key_text.h"
#include "facetheory/base/letter_case.h"
#include "facetheory/base/shown_text.h"

namespace facetheory {
namespace {

struct ByteUnit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array kByteUnits = {ByteUnit{"B", 1}, ByteUnit{"KiB", 1ULL << 10}, ByteUnit{"MiB", 1ULL << 20},
                                   ByteUnit{"GiB", 1ULL << 30}, ByteUnit{"TiB", 1ULL << 40}};

std::string_view toml_kind(const TomlValue& value) {
  constexpr std::array<std::string_view, 5> kKinds = {"text", "a number", "true or false", "a list",
                                                      "a table"};
  if (const auto* other = std::get_if<TomlValue::Other>(&value.value)) return other->what;
  return kKinds[value.value.index()];
}

// How many letters must be added, dropped, changed or swapped with their neighbour.
std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::vector<std::size_t>> rows(left.size() + 1, std::vector<std::size_t>(right.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    rows[i][0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t changed = left[i - 1] == right[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[left.size()][right.size()];
}

std::string list_of(const std::vector<std::string_view>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 == names.size() ? " or " : ", ";
    list += names[i];
  }
  return list;
}

// A flag, or a variable of the environment: neither stands in a file.
bool stands_in_no_file(std::string_view key) {
  return key.starts_with("--") || (!key.empty() && key.front() >= 'A' && key.front() <= 'Z');
}

}  // namespace

void ConfigProblems::add(TomlPlace place, const std::string& key, const std::string& what) {
  std::string where;
  if (place.line > 0) {
    where = file_ + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
  } else if (!file_.empty() && !stands_in_no_file(key)) {
    where = file_ + ": ";
  }
  problems_.emplace_back(place, without_controls(where + (key.empty() ? "" : key + ": ") + what));
}

Error ConfigProblems::error() const {
  constexpr std::size_t kMost = 20;
  auto sorted = problems_;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMost); ++i)
    text += (i > 0 ? "\n" : "") + sorted[i].second;
  if (sorted.size() > kMost) text += "\nand " + std::to_string(sorted.size() - kMost) + " more";
  return Error{ErrorCode::invalid, text};
}

std::optional<std::string> ConfigProblems::elsewhere(std::string_view name) const {
  const std::string suffix = "." + std::string(name);
  for (const std::string& key : keys_) {
    if (key == name || key.ends_with(suffix)) return key;
  }
  return std::nullopt;
}

void ConfigValue::expected(std::string_view what) const {
  problem("expected " + std::string(what) + ", found " + std::string(toml_kind(*value_)));
}

std::optional<std::string> ConfigValue::text() const {
  const auto* text = std::get_if<std::string>(&value_->value);
  if (text == nullptr) {
    expected("text in quotes");
    return std::nullopt;
  }
  if (auto checked = check_key_text("the text", *text); !checked) {
    problem(checked.error().message);
    return std::nullopt;
  }
  return *text;
}

bool ConfigValue::is_text(std::string_view text) const {
  const auto* given = std::get_if<std::string>(&value_->value);
  return given != nullptr && *given == text;
}

std::optional<bool> ConfigValue::boolean() const {
  if (const auto* boolean = std::get_if<bool>(&value_->value)) return *boolean;
  expected("true or false, without quotes");
  return std::nullopt;
}

std::optional<int> ConfigValue::integer(int least, int most) const {
  const auto* number = std::get_if<std::int64_t>(&value_->value);
  if (number == nullptr) {
    expected("a whole number");
    return std::nullopt;
  }
  if (*number < least || *number > most) {
    problem(std::to_string(*number) + " is out of range; give " + std::to_string(least) + " to " +
            std::to_string(most));
    return std::nullopt;
  }
  return static_cast<int>(*number);
}

// It tells where a bare number means the same as its text.
std::optional<std::string> ConfigValue::number_or_text(std::string_view what) const {
  if (const auto* number = std::get_if<std::int64_t>(&value_->value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value_->value)) return *text;
  expected(what);
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> ConfigValue::duration(std::chrono::milliseconds least,
                                                               std::chrono::milliseconds most) const {
  const std::optional<std::string> given = number_or_text("a duration, such as \"30s\", \"5m\" or \"2h\"");
  if (!given) return std::nullopt;
  const Result<std::chrono::milliseconds> parsed = parse_duration(*given);
  if (!parsed) {
    problem(parsed.error().message);
    return std::nullopt;
  }
  if (*parsed < least || *parsed > most) {
    problem("'" + *given + "' is out of range; give " + format_duration(least) + " to " +
            format_duration(most));
    return std::nullopt;
  }
  return *parsed;
}

std::optional<std::chrono::seconds> ConfigValue::seconds(std::chrono::seconds least,
                                                         std::chrono::seconds most) const {
  const std::optional<std::chrono::milliseconds> parsed = duration(least, most);
  if (!parsed) return std::nullopt;
  const auto whole = std::chrono::floor<std::chrono::seconds>(*parsed);
  if (whole != *parsed) {
    problem("a whole number of seconds is needed; write " + format_duration(whole + std::chrono::seconds(1)));
    return std::nullopt;
  }
  return whole;
}

std::optional<std::uint64_t> ConfigValue::bytes(std::uint64_t least, std::uint64_t most) const {
  const std::optional<std::string> given = number_or_text("a size, such as \"256 MiB\"");
  if (!given) return std::nullopt;
  const Result<std::uint64_t> parsed = parse_bytes(*given);
  if (!parsed) {
    problem(parsed.error().message);
    return std::nullopt;
  }
  if (*parsed < least || *parsed > most) {
    problem("'" + *given + "' is out of range; give " + format_bytes(least) + " to " + format_bytes(most));
    return std::nullopt;
  }
  return *parsed;
}

std::vector<ConfigValue> ConfigValue::elements() const {
  const auto* array = std::get_if<TomlValue::Array>(&value_->value);
  if (array == nullptr) return {*this};
  std::vector<ConfigValue> elements;
  for (std::size_t i = 0; i < array->size(); ++i) {
    elements.emplace_back((*array)[i], key_place_, key_ + "[" + std::to_string(i) + "]", *problems_);
  }
  return elements;
}

std::optional<std::vector<std::string>> ConfigValue::texts() const {
  if (!is_array()) {
    expected("a list of texts, such as [\"a\", \"b\"]");
    return std::nullopt;
  }
  std::vector<std::string> texts;
  bool complete = true;
  for (const ConfigValue& element : elements()) {
    std::optional<std::string> text = element.text();
    if (text && text->empty()) {
      element.problem("is empty; leave it out");
      text.reset();
    }
    complete = complete && text;
    if (text) texts.push_back(*std::move(text));
  }
  if (!complete) return std::nullopt;
  return texts;
}

std::optional<NamePatterns> ConfigValue::names() const {
  std::optional<std::vector<std::string>> given = texts();
  if (!given) return std::nullopt;
  for (const std::string& name : *given) {
    if (name.find('*') < name.size() - 1) {
      problem("'" + name + "' has a '*' that is not at its end; write utm_* or *");
      return std::nullopt;
    }
  }
  return NamePatterns(*std::move(given));
}

namespace {

constexpr std::string_view kFieldNameCharacters = "!#$%&'+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";

}  // namespace

std::optional<std::string> ConfigValue::field_name() const {
  const std::optional<std::string> given = text();
  if (!given) return std::nullopt;
  std::string lower = lower_case(*given);
  if (lower.empty() || lower.find_first_not_of(kFieldNameCharacters) != std::string::npos) {
    problem(quoted_for_message(*given) + " is no name of a header field; write it as in \"accept-language\"");
    return std::nullopt;
  }
  return lower;
}

std::optional<NamePatterns> ConfigValue::field_names() const {
  std::optional<NamePatterns> given = names();
  if (!given) return std::nullopt;
  std::vector<std::string> lower;
  for (const std::string& name : *given) {
    lower.push_back(lower_case(name));
    std::string_view letters = lower.back();
    if (letters.ends_with('*')) letters.remove_suffix(1);
    if (letters.find_first_not_of(kFieldNameCharacters) != std::string_view::npos) {
      problem(quoted_for_message(name) + " is no name of a header field; write it as in \"accept-language\"");
      return std::nullopt;
    }
  }
  return NamePatterns(std::move(lower));
}

std::optional<NamePatterns> ConfigValue::cookie_names() const {
  std::optional<NamePatterns> given = names();
  if (!given) return std::nullopt;
  for (const std::string& name : *given) {
    const bool odd =
        std::ranges::any_of(name, [](unsigned char letter) { return letter <= ' ' || letter == 127; });
    if (odd || name.find_first_of("=;,\"") != std::string::npos) {
      problem(quoted_for_message(name) + " is no name of a cookie; write it as in \"session\"");
      return std::nullopt;
    }
  }
  return given;
}

std::optional<std::vector<std::pair<std::string_view, ConfigValue>>> ConfigValue::entries() const {
  const auto* table = std::get_if<TomlValue::Table>(&value_->value);
  if (table == nullptr) {
    expected("a table");
    return std::nullopt;
  }
  std::vector<std::pair<std::string_view, ConfigValue>> entries;
  for (const TomlEntry& entry : *table) {
    entries.emplace_back(
        entry.key,
        ConfigValue(entry.value, entry.place, key_.empty() ? entry.key : key_ + "." + entry.key, *problems_));
  }
  return entries;
}

void ConfigValue::unknown(std::string_view name, const std::vector<std::string_view>& known) const {
  std::string remedy = "known here are " + list_of(known);
  if (const std::optional<std::string> other = problems_->elsewhere(name)) {
    remedy = "it belongs elsewhere, as " + *other;
  } else if (const std::optional<std::string_view> meant = closest(name, known)) {
    remedy = "did you mean " + std::string(*meant) + "?";
  }
  problems_->add(key_place_, key_, "unknown key; " + remedy);
}

void ConfigValue::not_one_of(const std::string& given, const std::vector<std::string_view>& known) const {
  problem(quoted_for_message(given) + " is not known; write " + list_of(known));
}

std::optional<std::string_view> closest(std::string_view name, const std::vector<std::string_view>& known) {
  std::optional<std::string_view> best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(lower_case(name), candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

Result<std::string> read_config_text(const std::string& path) {
  std::error_code error;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, error)) {
    return Error{ErrorCode::invalid,
                 without_controls(path) + ": cannot be read; correct --config, or leave it away"};
  }
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return Error{ErrorCode::unavailable, without_controls(path) + ": reading it failed"};
  return text;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const auto refused = [&](const std::string& why) {
    return Error{ErrorCode::invalid, "'" + std::string(text) + "' " + why};
  };
  std::uint64_t count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc::invalid_argument) return refused("is no size; write 64 KiB, 256 MiB or 2 GiB");
  std::string_view unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  while (unit.starts_with(' '))
    unit.remove_prefix(1);
  if (unit.empty()) unit = "B";
  for (const ByteUnit& known : kByteUnits) {
    if (known.name != unit) continue;
    if (error == std::errc::result_out_of_range ||
        count > std::numeric_limits<std::uint64_t>::max() / known.bytes) {
      return refused("is too large");
    }
    return count * known.bytes;
  }
  return refused("has an unknown unit; there are B, KiB, MiB, GiB and TiB, as in 256 MiB");
}

std::string format_bytes(std::uint64_t bytes) {
  for (std::size_t i = kByteUnits.size(); i > 0; --i) {
    const ByteUnit& unit = kByteUnits[i - 1];
    if (bytes >= unit.bytes && bytes % unit.bytes == 0) {
      return std::to_string(bytes / unit.bytes) + " " + std::string(unit.name);
    }
  }
  return "0 B";
}

std::string format_duration(std::chrono::milliseconds duration) {
  struct Unit {
    std::string_view name;
    std::int64_t milliseconds;
  };
  constexpr std::array kUnits = {Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                                 Unit{"s", 1'000}, Unit{"ms", 1}};
  for (const Unit& unit : kUnits) {
    if (duration.count() > 0 && duration.count() % unit.milliseconds == 0) {
      return std::to_string(duration.count() / unit.milliseconds) + std::string(unit.name);
    }
  }
  return "0s";
}

}  // namespace facetheory
