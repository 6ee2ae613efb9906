#include "facetheory/table/item_codec.h"

#include <utility>

namespace facetheory {
namespace {

constexpr int kMaxDecodedDepth =
    40;  // Above what validation lets in; keeps damaged input from exhausting the stack.

struct Encoder {
  std::string& out;

  void operator()(const Value& value) const {
    out += static_cast<char>(value.type());
    std::visit(*this, value.variant());
  }

  void operator()(const std::string& text) const { encode_bytes(text, out); }
  void operator()(const Number& number) const { encode_bytes(number.text(), out); }
  void operator()(const Binary& binary) const { encode_bytes(binary.bytes, out); }
  void operator()(bool boolean) const { out += boolean ? '\1' : '\0'; }
  void operator()(Null) const {}
  void operator()(const List& list) const {
    encode_varint(list.size(), out);
    for (const Value& value : list)
      (*this)(value);
  }
  void operator()(const Attributes& map) const { encode_attributes(map, out); }
  template <typename T>
  void operator()(const SetOf<T>& set) const {
    encode_varint(set.size(), out);
    for (const T& element : set)
      (*this)(element);
  }
};

}  // namespace

void encode_varint(std::uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void encode_bytes(std::string_view bytes, std::string& out) {
  encode_varint(bytes.size(), out);
  out += bytes;
}

void encode_attributes(const Attributes& attributes, std::string& out) {
  encode_varint(attributes.size(), out);
  for (const Attribute& attribute : attributes) {
    encode_bytes(attribute.name, out);
    Encoder{out}(attribute.value);
  }
}

std::optional<std::uint8_t> Decoder::byte() {
  if (rest_.empty()) return std::nullopt;
  const auto value = static_cast<std::uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return value;
}

std::optional<std::uint64_t> Decoder::long_varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto next = byte();
    if (!next) return std::nullopt;
    value |= static_cast<std::uint64_t>(*next & 0x7fU) << shift;
    if (*next < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> Decoder::bytes() {
  const auto length = varint();
  if (!length || *length > rest_.size()) {
    rest_ = {};
    return std::nullopt;
  }
  const std::string_view result = rest_.substr(0, *length);
  rest_.remove_prefix(*length);
  return result;
}

std::optional<std::size_t> Decoder::count() {
  const auto value = varint();
  if (!value || *value > rest_.size()) return std::nullopt;
  return static_cast<std::size_t>(*value);
}

template <typename T, typename Read>
std::optional<Value> Decoder::set(Read read) {
  const auto size = count();
  if (!size) return std::nullopt;
  std::vector<T> elements;
  elements.reserve(*size);
  for (std::size_t i = 0; i < *size; ++i) {
    const auto element = bytes();
    if (!element) return std::nullopt;
    auto decoded = read(*element);
    if (!decoded) return std::nullopt;
    elements.push_back(*std::move(decoded));
  }
  return SetOf<T>(std::move(elements));
}

std::optional<Value> Decoder::value(int depth) {
  if (depth > kMaxDecodedDepth) return std::nullopt;
  const auto as_string = [](std::string_view text) { return std::optional(std::string(text)); };
  const auto as_binary = [](std::string_view text) { return std::optional(Binary{std::string(text)}); };
  const auto as_number = [](std::string_view text) {
    return text.empty() ? std::nullopt : std::optional(Number::from_canonical(text));
  };
  const auto type = byte();
  if (!type) return std::nullopt;
  switch (static_cast<Type>(*type)) {
    case Type::string: {
      const auto text = bytes();
      if (!text) return std::nullopt;
      return Value(*text);
    }
    case Type::number: {
      const auto text = bytes();
      if (!text || text->empty()) return std::nullopt;
      return Value(Number::from_canonical(*text));
    }
    case Type::binary: {
      const auto text = bytes();
      if (!text) return std::nullopt;
      return Value(Binary{std::string(*text)});
    }
    case Type::boolean: {
      const auto flag = byte();
      if (!flag || *flag > 1) return std::nullopt;
      return Value(*flag == 1);
    }
    case Type::null:
      return Value(Null{});
    case Type::list: {
      const auto size = count();
      if (!size) return std::nullopt;
      List list;
      list.reserve(*size);
      for (std::size_t i = 0; i < *size; ++i) {
        auto element = value(depth + 1);
        if (!element) return std::nullopt;
        list.push_back(*std::move(element));
      }
      return Value(std::move(list));
    }
    case Type::map: {
      auto map = attributes(depth + 1);
      if (!map) return std::nullopt;
      return Value(*std::move(map));
    }
    case Type::string_set:
      return set<std::string>(as_string);
    case Type::number_set:
      return set<Number>(as_number);
    case Type::binary_set:
      return set<Binary>(as_binary);
  }
  return std::nullopt;
}

std::optional<Attributes> Decoder::attributes(int depth) {
  const auto size = count();
  if (!size) return std::nullopt;
  Attributes attributes;
  attributes.reserve(*size);
  std::string_view last;
  for (std::size_t i = 0; i < *size; ++i) {
    const auto name = bytes();
    if (!name || (i > 0 && *name <= last)) return std::nullopt;
    auto decoded = value(depth);
    if (!decoded) return std::nullopt;
    attributes.append(*name, *std::move(decoded));
    last = *name;
  }
  return attributes;
}

std::optional<Attributes> Decoder::attributes() {
  return attributes(0);
}

}  // namespace facetheory
