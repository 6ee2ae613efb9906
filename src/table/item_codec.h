// The bytes of a row's attributes in the embedded table. docs/formats.md has the format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/table/value.h"

namespace facetheory {

void encode_varint(std::uint64_t value, std::string& out);
// Length, then the bytes.
void encode_bytes(std::string_view bytes, std::string& out);
void encode_attributes(const Attributes& attributes, std::string& out);

// Reads forward through encoded bytes. Once something does not fit, every further read yields nothing; the
// input is checked completely, whatever it holds.
class Decoder {
 public:
  explicit Decoder(std::string_view input) : rest_(input) {}

  std::optional<std::uint64_t> varint() {
    if (rest_.empty() || static_cast<unsigned char>(rest_.front()) >= 0x80) return long_varint();
    const auto value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::optional<std::string_view> bytes();
  std::optional<Attributes> attributes();

  bool at_end() const { return rest_.empty(); }

 private:
  std::optional<std::uint64_t> long_varint();
  std::optional<std::uint8_t> byte();
  std::optional<Value> value(int depth);
  std::optional<Attributes> attributes(int depth);
  // How many elements follow; more than there are bytes left cannot be.
  std::optional<std::size_t> count();
  template <typename T, typename Read>
  std::optional<Value> set(Read read);

  std::string_view rest_;
};

}  // namespace facetheory
