// The scenarios of the simulation: who takes part, what befalls them, what each does how often, and how badly table,
// bodies and clocks behave meanwhile. A table of numbers; whoever runs one is in simulation.cc.
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/simulation/fleet.h"
#include "tests/simulation/network.h"
#include "tests/simulation/party.h"
#include "tests/simulation/scheduler.h"

namespace facetheory::simulation {

struct Cast {
  int workers = 0;
  int foreigners = 0;  // Writers in another language.
  int nodes = 0;       // With an engine each.
  int clients = 0;     // Of each node.
};

// Chances per thousand decisions.
struct Misfortunes {
  int crash = 0;
  int pause = 0;
  int clock_step = 0;
  int outage = 0;  // Table, bodies or both are down for a while.
};

struct Scenario {
  std::string_view name;
  int decisions = 0;  // While the weather lasts.
  Cast cast = {};
  Misfortunes misfortunes = {};
  Millis skew = kMaxSkew;  // Of clocks, to either side.
  Habits habits = {};
  Weather weather = {};
  Pace pace = {};
};

const Scenario& scenario_of(std::uint64_t seed);

}  // namespace facetheory::simulation
