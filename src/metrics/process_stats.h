// What the kernel says about this process. May be called from any thread.
#pragma once

#include <cstdint>

namespace facetheory {

// 0: the kernel does not tell.
struct ProcessStats {
  double start_time = 0;   // Seconds since 1970.
  double cpu_seconds = 0;  // User and system.
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_descriptors = 0;
  std::uint64_t most_descriptors = 0;
};

ProcessStats process_stats();

}  // namespace facetheory
