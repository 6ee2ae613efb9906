// Input: the bytes of a row's attributes in the embedded table, as a damaged file may have them.
//
// What can be read can be written, and is the same then.
#include <string>

#include "facetheory/table/item_codec.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {

void fuzz_item_codec(std::string_view bytes) {
  Decoder decoder(bytes);
  const auto attributes = decoder.attributes();
  if (attributes) {
    std::string written;
    encode_attributes(*attributes, written);
    Decoder again(written);
    require(again.attributes() == attributes && again.at_end(), "what is written again is the same");
    for (const Attribute& attribute : *attributes)
      require(attributes->find(attribute.name) != nullptr, "an attribute is found by its name");
    require(!to_string(*attributes).empty(), "attributes can be shown");
  }

  Decoder numbers(bytes);
  if (const std::uint64_t number = numbers.varint(); !numbers.broken()) {
    std::string written;
    encode_varint(number, written);
    require(Decoder(written).varint() == number && written.size() <= 10, "a number is written in few bytes");
  }
  Decoder texts(bytes);
  if (const std::string_view text = texts.bytes(); !texts.broken()) {
    std::string written;
    encode_bytes(text, written);
    require(Decoder(written).bytes() == text, "bytes are written as they are");
  }
}

}  // namespace facetheory::fuzz
