#include "tests/simulation/scenarios.h"

#include "tests/simulation/simulation.h"

namespace facetheory::simulation {
namespace {

// A line for each question, so that scenarios can be compared.
// clang-format off
constexpr Scenario kAll[] = {
  // Nothing goes wrong but what the parties do to each other.
  {.name = "fine weather", .decisions = 400,
   .cast = {.workers = 3, .foreigners = 1},
   .habits = {.regenerate = 4, .regenerate_request = 2, .lease_steps = 2, .request_steps = 1, .invalidate = 1,
              .mark = 1, .rollback = 1, .unpin = 1, .read = 3, .sweep = 1}},

  // Leases change hands all the time.
  {.name = "leases", .decisions = 500,
   .cast = {.workers = 4},
   .misfortunes = {.crash = 6, .pause = 15, .clock_step = 2},
   .habits = {.regenerate = 4, .lease_steps = 6, .invalidate = 1, .read = 1},
   .weather = {.unavailable = 30, .lost_request = 30, .lost_answer = 60, .delayed = 80, .repeated = 60, .stale = 300}},

  // Few request ids are used by many, and their records live to be taken over.
  {.name = "requests", .decisions = 600,
   .cast = {.workers = 4, .foreigners = 1},
   .misfortunes = {.crash = 8, .pause = 12, .clock_step = 2},
   .habits = {.regenerate = 1, .regenerate_request = 8, .request_steps = 3, .invalidate = 1},
   .weather = {.unavailable = 20, .lost_request = 20, .lost_answer = 50, .delayed = 60, .repeated = 60, .stale = 300},
   .pace = {.jump = 8, .jump_max = 30'000}},

  // Pages and tags are invalidated and purged while they are rendered.
  {.name = "invalidations", .decisions = 600,
   .cast = {.workers = 4, .foreigners = 1},
   .misfortunes = {.crash = 4, .pause = 12, .clock_step = 2},
   .habits = {.regenerate = 6, .lease_steps = 3, .invalidate = 4, .purge = 2, .mark = 4, .read = 3},
   .weather = {.unavailable = 20, .lost_request = 20, .lost_answer = 60, .delayed = 80, .repeated = 80, .stale = 400}},

  // Pages are rolled back, pinned and unpinned while they are rendered.
  {.name = "history", .decisions = 600,
   .cast = {.workers = 4, .foreigners = 1},
   .misfortunes = {.crash = 4, .pause = 12, .clock_step = 2},
   .habits = {.regenerate = 6, .lease_steps = 3, .invalidate = 1, .purge = 1, .rollback = 4, .pin = 1, .unpin = 4,
              .read = 1},
   .weather = {.unavailable = 20, .lost_request = 20, .lost_answer = 60, .delayed = 80, .repeated = 80, .stale = 300}},

  // As many writers in another language as of ours.
  {.name = "foreign writers", .decisions = 600,
   .cast = {.workers = 3, .foreigners = 3},
   .misfortunes = {.crash = 5, .pause = 15, .clock_step = 2},
   .habits = {.regenerate = 5, .regenerate_request = 3, .lease_steps = 3, .invalidate = 2, .purge = 1, .mark = 1,
              .read = 1},
   .weather = {.unavailable = 20, .lost_request = 20, .lost_answer = 60, .delayed = 80, .repeated = 60, .stale = 300}},

  // Time passes quickly, so that there is something to sweep and to evict.
  {.name = "sweeper", .decisions = 700,
   .cast = {.workers = 4, .foreigners = 1},
   .misfortunes = {.crash = 4, .pause = 12, .clock_step = 2},
   .habits = {.regenerate = 6, .regenerate_request = 3, .lease_steps = 3, .invalidate = 1, .purge = 1, .rollback = 1,
              .unpin = 1, .sweep = 4, .evict = 2},
   .weather = {.unavailable = 15, .lost_request = 20, .lost_answer = 50, .delayed = 80, .repeated = 60, .stale = 300},
   .pace = {.jump = 25, .jump_max = 150'000}},

  // Everything, and often.
  {.name = "storm", .decisions = 800,
   .cast = {.workers = 5, .foreigners = 2},
   .misfortunes = {.crash = 10, .pause = 20, .clock_step = 5},
   .habits = {.regenerate = 5, .regenerate_request = 4, .lease_steps = 4, .request_steps = 2, .invalidate = 2,
              .purge = 1, .mark = 2, .rollback = 2, .pin = 1, .unpin = 2, .read = 2, .sweep = 1, .evict = 1},
   .weather = {.unavailable = 60, .lost_request = 60, .lost_answer = 90, .delayed = 140, .repeated = 120,
               .stale = 500},
   .pace = {.jump = 10, .jump_max = 60'000}},

  // Engines in fine weather. Reads are exact here, as they are on one machine.
  {.name = "engines", .decisions = 600,
   .cast = {.workers = 1, .nodes = 3, .clients = 3},
   .habits = {.regenerate = 1, .invalidate = 2, .purge = 1, .mark = 2, .rollback = 1, .unpin = 2, .read = 6,
              .evict = 1},
   .weather = {.slow = 30}},

  // What engines remember goes out of date all the time.
  {.name = "engines and invalidations", .decisions = 700,
   .cast = {.workers = 2, .foreigners = 1, .nodes = 2, .clients = 3},
   .misfortunes = {.crash = 3, .pause = 8, .clock_step = 2},
   .habits = {.regenerate = 1, .invalidate = 4, .purge = 3, .mark = 4, .rollback = 2, .unpin = 3},
   .weather = {.unavailable = 10, .lost_answer = 40, .delayed = 40, .repeated = 40}},

  // Engines whose stores are away now and then.
  {.name = "engines and outages", .decisions = 800,
   .cast = {.workers = 1, .nodes = 2, .clients = 4},
   .misfortunes = {.crash = 3, .pause = 4, .clock_step = 1, .outage = 8},
   .habits = {.regenerate = 1, .invalidate = 2, .purge = 1, .mark = 1, .read = 6},
   .weather = {.unavailable = 10, .stale = 200}},

  // Everything, and engines.
  {.name = "engines in a storm", .decisions = 900,
   .cast = {.workers = 2, .foreigners = 1, .nodes = 3, .clients = 3},
   .misfortunes = {.crash = 8, .pause = 15, .clock_step = 4, .outage = 6},
   .habits = {.regenerate = 2, .regenerate_request = 2, .lease_steps = 2, .invalidate = 2, .purge = 1, .mark = 2,
              .rollback = 1, .pin = 1, .unpin = 3, .read = 1, .sweep = 1, .evict = 1},
   .weather = {.unavailable = 40, .lost_request = 40, .lost_answer = 60, .delayed = 100, .repeated = 80,
               .stale = 300},
   .pace = {.jump = 8, .jump_max = 30'000}},

  // Far beyond what is allowed for. Leases are still safe, by their tokens; and marks, by their counts.
  {.name = "clocks far apart", .decisions = 600,
   .cast = {.workers = 4},
   .misfortunes = {.crash = 4, .pause = 8, .clock_step = 8},
   .skew = 10'000,
   .habits = {.regenerate = 8, .invalidate = 1, .mark = 5, .rollback = 1, .unpin = 2, .read = 3},
   .weather = {.unavailable = 20, .lost_request = 20, .lost_answer = 60, .delayed = 80, .repeated = 80, .stale = 400}},

  // The same of nodes, whose memories of pages and marks have times of their own.
  {.name = "engines and clocks far apart", .decisions = 700,
   .cast = {.workers = 2, .nodes = 3, .clients = 3},
   .misfortunes = {.crash = 3, .pause = 6, .clock_step = 6},
   .skew = 10'000,
   .habits = {.regenerate = 2, .invalidate = 2, .purge = 1, .mark = 6, .rollback = 1, .unpin = 2},
   .weather = {.unavailable = 10, .lost_request = 10, .lost_answer = 40, .delayed = 40, .repeated = 40,
               .stale = 200}},
};
// clang-format on
static_assert(std::size(kAll) == kScenarios);

}  // namespace

const Scenario& scenario_of(std::uint64_t seed) {
  return kAll[seed % kScenarios];
}

}  // namespace facetheory::simulation
