// How often an embedded table checks what other processes may have done to it. The defaults are for everybody;
// tests want them shorter.
#pragma once

#include <chrono>

namespace facetheory {

struct LmdbOptions {
  // How often places in LMDB's table of readers that killed processes left behind are freed.
  std::chrono::milliseconds reader_check_interval{10000};
  // How often it is checked, before a write, that the file that is open is the one that others would open.
  std::chrono::milliseconds place_check_interval{1000};
  // A write that has waited for so long before it could begin is not made any more, and is `unavailable`: another
  // process has held the writer's lock, and whoever asked has given up, or has asked again.
  std::chrono::milliseconds patience{2000};
};

}  // namespace facetheory
