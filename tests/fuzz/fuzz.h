// What fuzz targets share.
//
// A target is a function of some bytes from nobody knows where. It gives them to a parser and requires that what comes
// back keeps the parser's promises; what does not ends the program, and libFuzzer keeps the input. Targets keep no
// state, so that an input does the same each time: tools/fuzz builds one libFuzzer program of each, and fuzz_corpora
// runs what was kept through all of them with every ./test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facetheory/http/message.h"

namespace facetheory::fuzz {

// Ends the program with the place and the sentence unless it holds.
void require(bool holds, std::string_view sentence,
             std::source_location where = std::source_location::current());

// Takes an input apart from its front: first the choices, of a byte each, then text.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t byte();      // 0 when nothing is left.
  std::string_view line();  // Up to the next line feed, which is dropped.
  // How large a head may be, by a byte: half of the bytes stand for a limit that few inputs reach.
  std::size_t head_limit();
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// Lengths of pieces to cut an input into: the same for the same seed, mostly small.
class Cuts {
 public:
  explicit Cuts(std::uint8_t seed) : state_(seed * 2654435761U + 1) {}
  std::size_t next();  // At least 1.

 private:
  std::uint32_t state_;
};

// Fields from lines "name: value". What no message head can hold is left out, since whoever reads fields may rely on
// that.
Headers headers_of(std::string_view lines);

// The pieces between the separators, empty ones included.
std::vector<std::string_view> split(std::string_view text, std::string_view separator);

}  // namespace facetheory::fuzz
