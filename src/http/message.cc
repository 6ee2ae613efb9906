#include "facetheory/http/message.h"

#include <algorithm>
#include <utility>

#include "facetheory/base/letter_case.h"

namespace facetheory {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower_case(x) == lower_case(y); });
}

}  // namespace

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (same_name(field.name, name)) return field.value;
  }
  return std::nullopt;
}

void Headers::add(std::string name, std::string value) {
  fields_.push_back({std::move(name), std::move(value)});
}

void Headers::set(std::string name, std::string value) {
  std::erase_if(fields_, [&](const Field& field) { return same_name(field.name, name); });
  add(std::move(name), std::move(value));
}

}  // namespace facetheory
