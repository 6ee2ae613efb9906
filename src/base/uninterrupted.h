// uninterrupted(call): makes a system call again for as long as a signal interrupts it, and returns what it returned
// then. A negative result is a failure, and errno says which; it is never EINTR.
#pragma once

#include <cerrno>

namespace facetheory {

template <typename Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace facetheory
