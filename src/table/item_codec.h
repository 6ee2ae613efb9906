// The bytes of a row's attributes in the embedded table. docs/formats.md has the format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "facetheory/table/value.h"

namespace facetheory {

void encode_varint(std::uint64_t value, std::string& out);
// Length, then the bytes.
void encode_bytes(std::string_view bytes, std::string& out);
void encode_attributes(const Attributes& attributes, std::string& out);

// Reads forward through encoded bytes, whatever they hold. Once something does not fit, the decoder is broken: what is
// read from then on is zero or empty, and means nothing.
class Decoder {
 public:
  explicit Decoder(std::string_view input) : at_(input.data()), end_(input.data() + input.size()) {}

  std::uint64_t varint() {
    if (at_ == end_ || static_cast<unsigned char>(*at_) >= 0x80) return long_varint();
    return static_cast<unsigned char>(*at_++);
  }
  std::string_view bytes() {
    const std::size_t length = count();
    return {std::exchange(at_, at_ + length), length};
  }
  std::optional<Attributes> attributes();  // Empty: broken.
  // The bytes of one of the attributes where they stand; empty: it is not there, or no Binary, or the decoder is
  // broken.
  std::optional<std::string_view> binary_attribute(std::string_view wanted);

  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }

  bool broken() const { return broken_; }
  bool at_end() const { return at_ == end_; }

 private:
  void fail() {
    at_ = end_;
    broken_ = true;
  }
  std::uint64_t long_varint();
  std::uint8_t byte();
  // How many bytes or elements follow; more than there are bytes left cannot be.
  std::size_t count() {
    const std::uint64_t value = varint();
    if (value <= static_cast<std::size_t>(end_ - at_)) return value;
    fail();
    return 0;
  }
  // Gives `take` what a Value is made of, so that it can be made in its place.
  template <typename Take>
  void value(int depth, Take take);
  Attributes attributes(int depth);
  List list(int depth);
  template <typename T, typename Read>
  SetOf<T> set(Read read);

  const char* at_;
  const char* end_;
  bool broken_ = false;
};

}  // namespace facetheory
