// A TOML document as plain values that know where they stand. The library that parses is seen by toml_value.cc only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "facetheory/base/result.h"

namespace facetheory {

struct TomlPlace {
  std::uint32_t line = 0;  // From 1; 0: nowhere, as with a value from the command line.
  std::uint32_t column = 0;

  friend auto operator<=>(const TomlPlace&, const TomlPlace&) = default;
};

struct TomlEntry;

struct TomlValue {
  struct Other {
    std::string what;  // "a date", "a number with a fraction"
  };
  using Array = std::vector<TomlValue>;
  using Table = std::vector<TomlEntry>;

  std::variant<std::string, std::int64_t, bool, Array, Table, Other> value;
  TomlPlace place = {};
};

struct TomlEntry {
  std::string key;
  TomlPlace place;  // Of the key.
  TomlValue value;
};

// The document's table. `invalid` begins with "<file>:<line>:<column>: ".
Result<TomlValue> parse_toml(std::string_view text, const std::string& file);

}  // namespace facetheory
