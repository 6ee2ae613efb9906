// The engine in figures: what it counts (base/engine_counts.h), and the render that hangs.
#pragma once

#include <cstddef>
#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/base/engine_counts.h"

namespace facetheory {

// A regeneration that hangs: something takes longer than all its limits.
struct OverdueRender {
  std::string page;
  Duration age{0};
  std::size_t count = 1;  // There are so many like it.
};

}  // namespace facetheory
