// HeldBodies: the bodies that an event loop has just sent, which it holds for a second.
//
// Whoever sends a body holds it, and how many do is counted in one word for all event loops. A page that everybody asks
// for would have that word written twice for each hit, and each loop would wait for the others. So a loop counts once a
// second for each page. What it holds beyond its time in memory is little: so many bodies at most, none of them large.
// On its loop's thread only. For .cc files only, since it needs the engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "facetheory/gateway/kept_answer.h"

namespace facetheory {

class HeldBodies {
 public:
  static constexpr std::size_t kMost = 64;
  // Sending a larger one takes so long that counting it does not matter.
  static constexpr std::size_t kLargest = std::size_t{64} << 10;

  // The page's body, until the next call; null: it is not in memory any more. `now`: in seconds; what was held in an
  // earlier one is let go.
  const std::shared_ptr<const void>* hold(const KeptAnswer& page, std::int64_t now);

 private:
  std::array<std::shared_ptr<const void>, kMost> bodies_;
  std::shared_ptr<const void> large_;
  std::int64_t second_ = -1;
};

}  // namespace facetheory
