// ConfigValue: one value of the configuration on its way into a Config.
//
// Reading never stops at a mistake: each is noted in ConfigProblems with its place, its key and the remedy, and the
// reader gets nothing. A table is read by a list of its keys, which is also what tells unknown keys and what the
// closest known one is. The class has a function for each kind of value, and so more than 25.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facetheory/base/duration.h"
#include "facetheory/base/result.h"
#include "facetheory/site/name_patterns.h"
#include "facetheory/site/toml_value.h"

namespace facetheory {

class ConfigProblems {
 public:
  // `keys` are all that there are, to tell where a misplaced one belongs.
  ConfigProblems(std::string file, std::vector<std::string> keys)
      : file_(std::move(file)), keys_(std::move(keys)) {}

  void add(TomlPlace place, const std::string& key, const std::string& what);
  bool empty() const { return problems_.empty(); }
  // All of them, in the file's order, a line each.
  Error error() const;
  // The full name of the first key that ends in `name`.
  std::optional<std::string> elsewhere(std::string_view name) const;

 private:
  std::string file_;
  std::vector<std::string> keys_;
  std::vector<std::pair<TomlPlace, std::string>> problems_;
};

class ConfigValue {
 public:
  ConfigValue(const TomlValue& value, TomlPlace key_place, std::string key, ConfigProblems& problems)
      : value_(&value), key_place_(key_place), key_(std::move(key)), problems_(&problems) {}

  const std::string& key() const { return key_; }
  TomlPlace place() const { return value_->place; }
  ConfigProblems& problems() const { return *problems_; }
  void problem(const std::string& what) const { problems_->add(place(), key_, what); }

  std::optional<std::string> text() const;
  std::optional<bool> boolean() const;
  std::optional<int> integer(int least, int most) const;
  // "60s", or a number of seconds.
  std::optional<std::chrono::milliseconds> duration(std::chrono::milliseconds least,
                                                    std::chrono::milliseconds most) const;
  std::optional<std::chrono::seconds> seconds(std::chrono::seconds least, std::chrono::seconds most) const;
  // "256 MiB", or a number of bytes.
  std::optional<std::uint64_t> bytes(std::uint64_t least, std::uint64_t most) const;

  bool is_text(std::string_view text) const;
  bool is_array() const { return std::holds_alternative<TomlValue::Array>(value_->value); }
  // The elements of an array, or the value itself in the place of an array of one.
  std::vector<ConfigValue> elements() const;
  std::optional<std::vector<std::string>> texts() const;
  // These read names: of parameters, of header fields, which become lower case, and of cookies.
  std::optional<NamePatterns> names() const;
  std::optional<NamePatterns> field_names() const;
  std::optional<NamePatterns> cookie_names() const;
  std::optional<std::string> field_name() const;

  template <typename Enum>
  std::optional<Enum> one_of(std::initializer_list<std::pair<std::string_view, Enum>> values) const {
    const std::optional<std::string> given = text();
    if (!given) return std::nullopt;
    std::vector<std::string_view> known;
    for (const auto& [name, value] : values) {
      if (name == *given) return value;
      known.push_back(name);
    }
    not_one_of(*given, known);
    return std::nullopt;
  }

  // The entries of a table, by name.
  std::optional<std::vector<std::pair<std::string_view, ConfigValue>>> entries() const;
  void unknown(std::string_view name, const std::vector<std::string_view>& known) const;
  TomlPlace key_place() const { return key_place_; }

 private:
  void expected(std::string_view what) const;
  std::optional<std::string> number_or_text(std::string_view what) const;
  void not_one_of(const std::string& given, const std::vector<std::string_view>& known) const;

  const TomlValue* value_;
  TomlPlace key_place_;
  std::string key_;
  ConfigProblems* problems_;
};

template <typename T>
struct ConfigKey {
  std::string_view name;
  void (*read)(const ConfigValue& value, T& into);
};

template <typename T>
void read_keys(const ConfigValue& table, std::span<const ConfigKey<T>> keys, T& into) {
  const auto entries = table.entries();
  if (!entries) return;
  std::vector<std::string_view> known;
  for (const ConfigKey<T>& key : keys)
    known.push_back(key.name);
  for (const auto& [name, value] : *entries) {
    bool found = false;
    for (const ConfigKey<T>& key : keys) {
      if (key.name != name) continue;
      key.read(value, into);
      found = true;
    }
    if (!found) value.unknown(name, known);
  }
}

// Assigns what was read, if it could be.
template <typename To, typename From>
void assign(To& to, std::optional<From> from) {
  if (from) to = static_cast<To>(*std::move(from));
}

// The one that the misspelt name most likely stands for.
std::optional<std::string_view> closest(std::string_view name, const std::vector<std::string_view>& known);

// All of the configuration file, for whoever was told its name.
Result<std::string> read_config_text(const std::string& path);

Result<std::uint64_t> parse_bytes(std::string_view text);
std::string format_bytes(std::uint64_t bytes);
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace facetheory
