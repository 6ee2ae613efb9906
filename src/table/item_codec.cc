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

std::uint8_t Decoder::byte() {
  if (at_ != end_) return static_cast<std::uint8_t>(*at_++);
  fail();
  return 0;
}

std::uint64_t Decoder::long_varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t next = byte();
    value |= static_cast<std::uint64_t>(next & 0x7fU) << shift;
    if (next < 0x80) return value;
  }
  fail();
  return 0;
}

template <typename T, typename Read>
SetOf<T> Decoder::set(Read read) {
  const std::size_t size = count();
  std::vector<T> elements;
  elements.reserve(size);
  for (std::size_t i = 0; i < size && !broken_; ++i)
    elements.push_back(read());
  if (broken_) return {};  // They may not even be fit to be sorted.
  return SetOf<T>(std::move(elements));
}

List Decoder::list(int depth) {
  const std::size_t size = count();
  List list;
  list.reserve(size);
  const auto add = [&list](auto&& element) { list.emplace_back(std::forward<decltype(element)>(element)); };
  for (std::size_t i = 0; i < size && !broken_; ++i)
    value(depth, add);
  return list;
}

template <typename Take>
void Decoder::value(int depth, Take take) {
  if (depth > kMaxDecodedDepth) return fail();
  const auto number = [this] {
    const Number::Canonical canonical{bytes()};
    if (canonical.text.empty()) fail();
    return canonical;
  };
  const auto binary = [this] { return Binary{std::string(bytes())}; };
  switch (static_cast<Type>(byte())) {
    case Type::string:
      return take(bytes());
    case Type::number:
      return take(number());
    case Type::binary:
      return take(binary());
    case Type::boolean: {
      const std::uint8_t flag = byte();
      if (flag > 1) return fail();
      return take(flag == 1);
    }
    case Type::null:
      return take(Null{});
    case Type::list:
      return take(list(depth + 1));
    case Type::map:
      return take(attributes(depth + 1));
    case Type::string_set:
      return take(set<std::string>([this] { return std::string(bytes()); }));
    case Type::number_set:
      return take(set<Number>([&number] { return Number(number()); }));
    case Type::binary_set:
      return take(set<Binary>(binary));
  }
  fail();
}

Attributes Decoder::attributes(int depth) {
  const std::size_t size = count();
  Attributes attributes;
  attributes.reserve(size);
  std::string_view last;
  for (std::size_t i = 0; i < size && !broken_; ++i) {
    const std::string_view name = bytes();
    if (i > 0 && name <= last) {
      fail();
      break;
    }
    value(depth, [&](auto&& part) { attributes.append(name, std::forward<decltype(part)>(part)); });
    last = name;
  }
  return attributes;
}

std::optional<std::string_view> Decoder::binary_attribute(std::string_view wanted) {
  const std::size_t size = count();
  for (std::size_t i = 0; i < size && !broken_; ++i) {
    const std::string_view name = bytes();
    if (name != wanted) {
      value(0, [](auto&&) {});
      continue;
    }
    const bool is_binary = static_cast<Type>(byte()) == Type::binary;
    const std::string_view found = is_binary ? bytes() : std::string_view();
    if (is_binary && !broken_) return found;
    break;
  }
  return std::nullopt;
}

std::optional<Attributes> Decoder::attributes() {
  std::optional<Attributes> result = attributes(0);
  if (broken_) result.reset();
  return result;
}

}  // namespace facetheory
