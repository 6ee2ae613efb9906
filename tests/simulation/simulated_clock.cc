#include <algorithm>

#include <boost/asio/awaitable.hpp>

#include "tests/simulation/party.h"

namespace facetheory::simulation {

Task<void> SimulatedClock::sleep_for(Duration duration) {
  const Millis length = std::chrono::ceil<std::chrono::milliseconds>(std::max(duration, Duration(0))).count();
  return scheduler_.park(scheduler_.new_step(), party_, scheduler_.now() + length);
}

}  // namespace facetheory::simulation
