// Figures, and what they are held against.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/measure.h"

namespace facetheory::bench {

// One line of the result: a workload on a peer at a size.
struct Figure {
  std::string workload;  // "cycle" or "read"
  std::size_t pages = 0;
  int callers = 0;
  std::string peer;
  Summary summary;
  std::vector<Window> windows;
};

// A promise of the project, and what was measured. `value` is empty when this run did not measure what it
// needs.
struct Bar {
  std::string text;  // "cycles with 32 callers, 10000 pages: ours / redis"
  bool at_least = true;
  double limit = 0;
  std::optional<double> value;
  std::optional<double> cpu_value;  // The same ratio in processor time, which a busy machine distorts less.
  bool doubtful = false;            // A figure in it comes from a disturbed machine.

  bool met() const { return value && (at_least ? *value >= limit : *value <= limit); }
};

struct Report {
  Machine machine;
  std::vector<std::string> versions;  // One for each peer.
  std::string command;
  double window_seconds = 0;
  bool smoke = false;
  std::vector<Figure> figures;

  const Figure* find(const std::string& workload, std::size_t pages, int callers,
                     const std::string& peer) const;
};

// The bars at 10,000 pages, and for reads the step from there to 1,000,000.
std::vector<Bar> bars(const Report& report);

void print_table(const Report& report);
void print_json(const Report& report);

}  // namespace facetheory::bench
