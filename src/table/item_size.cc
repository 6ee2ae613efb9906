#include "facetheory/table/item_size.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

namespace facetheory {
namespace {

struct Bytes {
  std::size_t operator()(const std::string& text) const { return text.size(); }
  // One byte, one more for each pair of digits (aligned at the point, zero pairs at the ends left out), one
  // for a minus.
  std::size_t operator()(const Number& number) const {
    std::string_view text = number.text();
    if (text == "0") return 1;
    const bool negative = text.front() == '-';
    if (negative) text.remove_prefix(1);
    const std::size_t point = std::min(text.find('.'), text.size());
    std::string digits = (point % 2 == 1 ? "0" : "") + std::string(text.substr(0, point));
    if (point < text.size()) digits += text.substr(point + 1);
    if (digits.size() % 2 == 1) digits += '0';
    const std::size_t first_pair = digits.find_first_not_of('0') / 2;
    const std::size_t last_pair = digits.find_last_not_of('0') / 2;
    return 1 + (last_pair - first_pair + 1) + (negative ? 1 : 0);
  }
  std::size_t operator()(const Binary& binary) const { return binary.bytes.size(); }
  std::size_t operator()(bool) const { return 1; }
  std::size_t operator()(Null) const { return 1; }
  std::size_t operator()(const List& list) const {
    std::size_t bytes = 3;
    for (const Value& value : list)
      bytes += 1 + std::visit(*this, value.variant());
    return bytes;
  }
  std::size_t operator()(const Attributes& map) const {
    std::size_t bytes = 3;
    for (const Attribute& entry : map)
      bytes += 1 + entry.name.size() + std::visit(*this, entry.value.variant());
    return bytes;
  }
  template <typename T>
  std::size_t operator()(const SetOf<T>& set) const {
    std::size_t bytes = 0;
    for (const T& element : set)
      bytes += (*this)(element);
    return bytes;
  }
};

}  // namespace

std::size_t value_bytes(const Value& value) {
  return std::visit(Bytes{}, value.variant());
}

std::size_t item_bytes(const Key& key, const Attributes& attributes) {
  std::size_t bytes = 4 + key.pk.size() + key.sk.size();  // "pk" and "sk" are two bytes each.
  for (const Attribute& entry : attributes)
    bytes += entry.name.size() + value_bytes(entry.value);
  return bytes;
}

Result<void> validate_size(const Key& key, const Attributes& attributes) {
  const std::size_t bytes = item_bytes(key, attributes);
  if (bytes <= kMaxItemBytes) return {};
  return Error{ErrorCode::invalid, "item " + to_string(key) + " has " + std::to_string(bytes) +
                                       " bytes; at most " + std::to_string(kMaxItemBytes) +
                                       " are allowed (keep large content in bodies)"};
}

}  // namespace facetheory
