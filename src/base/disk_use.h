// DiskUse: what an embedded store takes on the machine's disk.
#pragma once

#include <cstdint>

namespace facetheory {

struct DiskUse {
  std::uint64_t used = 0;  // By what is stored now.
  std::uint64_t occupied =
      0;  // By its files, some of which never shrink: what was removed leaves room in them.

  friend DiskUse operator+(const DiskUse& a, const DiskUse& b) {
    return {a.used + b.used, a.occupied + b.occupied};
  }
  friend bool operator==(const DiskUse&, const DiskUse&) = default;
};

}  // namespace facetheory
