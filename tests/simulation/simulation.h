// One run of the simulation: a seed makes a fleet, its weather and its luck; the run goes on for a while, then the
// weather clears, and one healthy worker must be able to put everything right.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace facetheory::simulation {

inline constexpr std::uint64_t kScenarios = 14;  // A seed's scenario is the seed modulo this.

struct RunResult {
  std::optional<std::string> violation;
  std::string_view scenario;
  std::uint64_t trace_hash = 0;
  std::uint64_t decisions = 0;
  std::vector<std::string> trace;                 // Only when asked for.
  std::map<std::string, std::uint64_t> counters;  // What happened how often.
};

RunResult run(std::uint64_t seed, bool with_trace = false);

// The command that shows a run again, with its trace.
std::string replay_command(std::uint64_t seed);

}  // namespace facetheory::simulation
