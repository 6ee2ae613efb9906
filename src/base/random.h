// Randomness and identifiers come in through this door, so that a seed replays a run exactly.
#pragma once

#include <cstdint>
#include <string>

namespace facetheory {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;
};

// The operating system's randomness; may be used from any thread. Unpredictable, fit for tokens.
Random& system_random();

// A repeatable sequence (SplitMix64); not for use from two threads at once, and not for tokens.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override;

 private:
  std::uint64_t state_;
};

// A number in [0, bound), every one equally likely; bound is positive.
std::uint64_t uniform(Random& random, std::uint64_t bound);

// A random (version 4) UUID: "0b9c5ad2-6b1f-4e0f-9d4f-0d6f6f7f3c55".
std::string uuid_v4(Random& random);

}  // namespace facetheory
