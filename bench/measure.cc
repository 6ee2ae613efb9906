#include "bench/measure.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <sstream>

#include <sys/resource.h>
#include <unistd.h>

namespace facetheory::bench {
namespace {

double cpu_seconds(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double cpu_seconds_of(pid_t process) {
  clockid_t clock{};
  return clock_getcpuclockid(process, &clock) == 0 ? cpu_seconds(clock) : 0;
}

double user_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) / 1e6;
}

double tick_seconds() {
  return 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double user_seconds_of(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(stat, text);
  // The name, which may hold anything, ends with the last parenthesis; the state is field 3, the user time
  // field 14.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 2)));
  std::string skipped;
  for (int field = 3; field < 14; ++field)
    fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  return ticks * tick_seconds();
}

struct MachineTime {
  double all = 0, user = 0, stolen = 0;  // Seconds, over all cores.
};

MachineTime machine_time() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  stat >> cpu;
  // user nice system idle iowait irq softirq steal; guest time, which follows, is part of user.
  std::array<double, 8> fields{};
  MachineTime time;
  for (double& field : fields) {
    stat >> field;
    field *= tick_seconds();
    time.all += field;
  }
  time.user = fields[0] + fields[1];
  time.stolen = fields[7];
  return time;
}

template <typename Figure>
std::vector<double> collect(const std::vector<const Window*>& windows, Figure figure) {
  std::vector<double> values;
  values.reserve(windows.size());
  for (const Window* window : windows)
    values.push_back(figure(*window));
  return values;
}

}  // namespace

Stopwatch::Stopwatch(std::optional<pid_t> server) : server_(server), begin_(read()) {}

Stopwatch::Reading Stopwatch::read() const {
  Reading reading;
  const MachineTime machine = machine_time();
  reading.machine = machine.all;
  reading.machine_user = machine.user;
  reading.machine_stolen = machine.stolen;
  reading.user_cpu = user_seconds() + (server_ ? user_seconds_of(*server_) : 0);
  reading.own_cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  reading.server_cpu = server_ ? cpu_seconds_of(*server_) : 0;
  reading.time = std::chrono::steady_clock::now();
  return reading;
}

Window Stopwatch::finish(Tally tally) const {
  const Reading end = read();
  Window window;
  window.tally = tally;
  window.seconds = std::chrono::duration<double>(end.time - begin_.time).count();
  window.server_cpu_seconds = end.server_cpu - begin_.server_cpu;
  window.cpu_seconds = end.own_cpu - begin_.own_cpu + window.server_cpu_seconds;
  const double machine = std::max(tick_seconds(), end.machine - begin_.machine);
  window.steal = (end.machine_stolen - begin_.machine_stolen) / machine;
  const double foreign = end.machine_user - begin_.machine_user - (end.user_cpu - begin_.user_cpu);
  window.others = std::max(0.0, foreign / machine);
  return window;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Summary summarise(const std::vector<Window>& windows, std::size_t enough) {
  Summary summary;
  summary.windows = windows.size();
  std::vector<const Window*> counted;
  for (const Window& window : windows) {
    summary.refused += window.tally.refused;
    if (window.clean()) counted.push_back(&window);
  }
  summary.clean = counted.size();
  if (summary.clean < enough) {
    summary.counted_all = summary.clean < summary.windows;
    counted.clear();
    for (const Window& window : windows)
      counted.push_back(&window);
  }
  const std::vector<double> rates = collect(counted, [](const Window& w) { return w.rate(); });
  summary.rate = median(rates);
  summary.slowest = *std::min_element(rates.begin(), rates.end());
  summary.fastest = *std::max_element(rates.begin(), rates.end());
  summary.micros = median(collect(counted, [](const Window& w) { return w.micros(); }));
  summary.cpu_micros = median(collect(counted, [](const Window& w) { return w.cpu_micros(); }));
  summary.server_cpu_micros = median(collect(counted, [](const Window& w) { return w.server_cpu_micros(); }));
  return summary;
}

}  // namespace facetheory::bench
