// What makes a libFuzzer program of one target.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  facetheory::fuzz::FACETHEORY_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
