// One window of load, measured: operations, time, processor time, and how much of the machine the host took
// away.
//
// On a shared host the same program varies many times over from minute to minute. So all peers are measured
// in short windows, in turn, in one run; windows in which the host stole processor time are set aside;
// medians of the others count.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace facetheory::bench {

using Deadline = std::chrono::steady_clock::time_point;

// What a peer did in a window.
struct Tally {
  std::uint64_t operations = 0;
  std::uint64_t refused = 0;  // Leases that another caller held; not counted as operations.
};

struct Window {
  Tally tally;
  double seconds = 0;
  double cpu_seconds = 0;         // This process and the peer's server together.
  double server_cpu_seconds = 0;  // The server alone; zero for what runs in this process.
  // Parts of the machine's processor time, 0 to 1.
  double steal = 0;  // Taken by the host.
  // Used by other programs, as user time; what the kernel does meanwhile may well be on our behalf.
  double others = 0;

  double rate() const { return static_cast<double>(tally.operations) / seconds; }
  double micros() const { return 1e6 * seconds / static_cast<double>(tally.operations); }
  double cpu_micros() const { return 1e6 * cpu_seconds / static_cast<double>(tally.operations); }
  double server_cpu_micros() const {
    return 1e6 * server_cpu_seconds / static_cast<double>(tally.operations);
  }
  bool clean() const { return steal <= 0.05 && others <= 0.10; }
};

// Measures from its construction until finish().
class Stopwatch {
 public:
  // `server`: the process that works for the peer, if it has one.
  explicit Stopwatch(std::optional<pid_t> server);
  Window finish(Tally tally) const;

 private:
  struct Reading {
    std::chrono::steady_clock::time_point time;
    double own_cpu = 0;
    double server_cpu = 0;
    double user_cpu = 0;  // The part of both that was not the kernel's.
    double machine = 0, machine_user = 0, machine_stolen = 0;
  };
  Reading read() const;

  std::optional<pid_t> server_;
  Reading begin_;
};

double median(std::vector<double> values);  // There must be at least one.

// Medians over the windows that count.
struct Summary {
  double rate = 0;
  double micros = 0;
  double cpu_micros = 0;
  double server_cpu_micros = 0;
  double slowest = 0, fastest = 0;  // Rates: how far the windows lie apart.
  std::uint64_t refused = 0;        // In all windows.
  std::size_t windows = 0;
  std::size_t clean = 0;
  bool counted_all = false;  // Too few were clean: all windows count, and the figure is doubtful.
};

// Clean windows count alone when there are at least `enough` of them.
Summary summarise(const std::vector<Window>& windows, std::size_t enough);

}  // namespace facetheory::bench
