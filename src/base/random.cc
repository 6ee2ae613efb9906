#include "facetheory/base/random.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>

#include <sys/random.h>

#include "facetheory/base/hex.h"
#include "facetheory/base/uninterrupted.h"

namespace facetheory {
namespace {

class SystemRandom final : public Random {
 public:
  std::uint64_t next() override {
    std::uint64_t value = 0;
    // Up to 256 bytes getrandom never returns short; it can only be interrupted.
    if (uninterrupted([&value] { return ::getrandom(&value, sizeof value, 0); }) < 0)
      throw std::runtime_error("getrandom: " + std::string(std::strerror(errno)));
    return value;
  }
};

}  // namespace

Random& system_random() {
  static SystemRandom random;
  return random;
}

std::uint64_t SeededRandom::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::uint64_t uniform(Random& random, std::uint64_t bound) {
  // Values past the last whole multiple of bound would favour the small numbers.
  const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() / bound * bound;
  std::uint64_t value = random.next();
  while (value >= limit)
    value = random.next();
  return value % bound;
}

std::string uuid_v4(Random& random) {
  std::array<std::uint64_t, 2> words = {random.next(), random.next()};
  std::array<char, 16> bytes{};
  std::memcpy(bytes.data(), words.data(), bytes.size());
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
  std::string text = to_hex(std::string_view(bytes.data(), bytes.size()));
  for (std::size_t dash : {8U, 13U, 18U, 23U})
    text.insert(dash, 1, '-');
  return text;
}

}  // namespace facetheory
