#include <algorithm>

#include <boost/asio/awaitable.hpp>
#include <boost/system/system_error.hpp>

#include "tests/simulation/party.h"

namespace facetheory::simulation {

Task<bool> SimulatedClock::wait_for(Duration duration) {
  const Millis length = std::chrono::ceil<std::chrono::milliseconds>(std::max(duration, Duration(0))).count();
  try {
    co_await scheduler_.park(scheduler_.new_step(), party_, scheduler_.now() + length);
  } catch (const boost::system::system_error&) {
    co_return false;
  }
  co_return true;
}

}  // namespace facetheory::simulation
