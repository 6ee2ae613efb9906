// DiskUse: what an embedded store takes on the machine's disk.
#pragma once

#include <cstdint>

namespace facetheory {

struct DiskUse {
  std::uint64_t used = 0;  // What is stored now takes these.
  // The files take these. Some files never shrink: what was removed leaves room in them.
  std::uint64_t occupied = 0;

  friend DiskUse operator+(const DiskUse& a, const DiskUse& b) {
    return {a.used + b.used, a.occupied + b.occupied};
  }
  friend bool operator==(const DiskUse&, const DiskUse&) = default;
};

}  // namespace facetheory
