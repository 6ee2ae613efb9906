#include "facetheory/site/toml_value.h"

#include <utility>

#include <toml++/toml.h>

#include "facetheory/base/shown_text.h"

namespace facetheory {
namespace {

TomlPlace place_of(const toml::source_region& region) {
  return {.line = region.begin.line, .column = region.begin.column};
}

TomlValue plain_value(const toml::node& node) {
  TomlValue plain;
  plain.place = place_of(node.source());
  if (const auto* text = node.as_string()) {
    plain.value = text->get();
  } else if (const auto* number = node.as_integer()) {
    plain.value = number->get();
  } else if (const auto* boolean = node.as_boolean()) {
    plain.value = boolean->get();
  } else if (const auto* array = node.as_array()) {
    TomlValue::Array elements;
    for (const toml::node& element : *array)
      elements.push_back(plain_value(element));
    plain.value = std::move(elements);
  } else if (const auto* table = node.as_table()) {
    TomlValue::Table entries;
    for (const auto& [key, value] : *table) {
      entries.push_back(TomlEntry{
          .key = std::string(key.str()), .place = place_of(key.source()), .value = plain_value(value)});
    }
    plain.value = std::move(entries);
  } else {
    plain.value = TomlValue::Other{node.is_floating_point() ? "a number with a fraction" : "a date or time"};
  }
  return plain;
}

}  // namespace

Result<TomlValue> parse_toml(std::string_view text, const std::string& file) {
  try {
    const toml::table document = toml::parse(text);
    return plain_value(document);
  } catch (const toml::parse_error& error) {
    const TomlPlace place = place_of(error.source());
    return Error{ErrorCode::invalid, without_controls(file) + ":" + std::to_string(place.line) + ":" +
                                         std::to_string(place.column) +
                                         ": this is not TOML: " + without_controls(error.description()) +
                                         " (text stands in quotes: revalidate = \"60s\")"};
  }
}

}  // namespace facetheory
