#include "facetheory/table/value.h"

#include <array>

#include "facetheory/base/hex.h"

namespace facetheory {
namespace {

auto position_of(std::vector<Attribute>& entries, std::string_view name) {
  return std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const Attribute& entry, std::string_view wanted) { return entry.name < wanted; });
}

// A JSON string; bytes of 0x80 and above pass through.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00" + to_hex(std::string_view(&c, 1));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <typename Range, typename Render>
std::string joined(char open, const Range& range, char close, Render render) {
  std::string out(1, open);
  for (const auto& element : range) {
    if (out.size() > 1) out += ',';
    out += render(element);
  }
  return out + close;
}

struct ValueRenderer {
  std::string operator()(const std::string& text) const { return quoted(text); }
  std::string operator()(const Number& number) const { return quoted(number.text()); }
  std::string operator()(const Binary& binary) const { return quoted("0x" + to_hex(binary.bytes)); }
  std::string operator()(bool boolean) const { return boolean ? "true" : "false"; }
  std::string operator()(Null) const { return "true"; }
  std::string operator()(const List& list) const {
    return joined('[', list, ']', [](const Value& value) { return to_string(value); });
  }
  std::string operator()(const Attributes& map) const { return to_string(map); }
  template <typename T>
  std::string operator()(const SetOf<T>& set) const {
    return joined('[', set, ']', *this);
  }
};

}  // namespace

std::string_view name(Type type) {
  constexpr std::array<std::string_view, 10> kNames = {"S", "N", "B",  "BOOL", "NULL",
                                                       "L", "M", "SS", "NS",   "BS"};
  return kNames.at(static_cast<std::size_t>(type));
}

Attributes::Attributes(std::initializer_list<Attribute> attributes) {
  entries_.reserve(attributes.size());
  for (const Attribute& attribute : attributes)
    set(attribute.name, attribute.value);
}

const Value* Attributes::find(std::string_view name) const {
  for (const Attribute& entry : entries_) {
    if (entry.name == name) return &entry.value;
  }
  return nullptr;
}

void Attributes::set(std::string name, Value value) {
  const auto position = position_of(entries_, name);
  if (position != entries_.end() && position->name == name) {
    position->value = std::move(value);
  } else {
    entries_.insert(position, Attribute{std::move(name), std::move(value)});
  }
}

void Attributes::erase(std::string_view name) {
  const auto position = position_of(entries_, name);
  if (position != entries_.end() && position->name == name) entries_.erase(position);
}

void Attributes::reserve(std::size_t count) {
  entries_.reserve(count);
}

std::size_t Attributes::size() const {
  return entries_.size();
}

bool Attributes::empty() const {
  return entries_.empty();
}

std::vector<Attribute>::const_iterator Attributes::begin() const {
  return entries_.begin();
}

std::vector<Attribute>::const_iterator Attributes::end() const {
  return entries_.end();
}

bool operator==(const Attributes& a, const Attributes& b) {
  return a.entries_ == b.entries_;
}

std::string to_string(const Value& value) {
  return "{\"" + std::string(name(value.type())) + "\":" + std::visit(ValueRenderer{}, value.variant()) + "}";
}

std::string to_string(const Attributes& attributes) {
  return joined('{', attributes, '}',
                [](const Attribute& entry) { return quoted(entry.name) + ":" + to_string(entry.value); });
}

}  // namespace facetheory
