#include "facetheory/http/message.h"

#include <utility>

#include "facetheory/base/letter_case.h"

namespace facetheory {

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (same_text(field.name, name)) return field.value;
  }
  return std::nullopt;
}

void Headers::add(std::string name, std::string value) {
  fields_.push_back({std::move(name), std::move(value)});
}

void Headers::set(std::string name, std::string value) {
  std::erase_if(fields_, [&](const Field& field) { return same_text(field.name, name); });
  add(std::move(name), std::move(value));
}

}  // namespace facetheory
