#include "facetheory/metrics/process_stats.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

namespace facetheory {
namespace {

double in_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::string whole_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Fields of /proc/self/stat, numbered from 1 as proc(5) has them. The second, the program's name, may contain anything.
std::uint64_t stat_field(int number) {
  const std::string text = whole_file("/proc/self/stat");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= number; ++i)
    fields >> field;
  std::uint64_t value = 0;
  std::istringstream(field) >> value;
  return value;
}

std::uint64_t boot_time() {
  std::istringstream words(whole_file("/proc/stat"));
  for (std::string word; words >> word;) {
    if (word != "btime") continue;
    std::uint64_t parsed = 0;
    words >> parsed;
    return parsed;
  }
  return 0;
}

double start_time() {
  const long ticks = ::sysconf(_SC_CLK_TCK);
  const std::uint64_t booted = boot_time();
  if (ticks <= 0 || booted == 0) return 0;
  return static_cast<double>(booted) + static_cast<double>(stat_field(22)) / static_cast<double>(ticks);
}

std::uint64_t open_descriptors() {
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd", error);
  if (error) return 0;
  std::uint64_t count = 0;
  for (const std::filesystem::directory_iterator end; entries != end; entries.increment(error)) {
    if (error) return 0;
    ++count;
  }
  return count - 1;  // One is ours, to look.
}

}  // namespace

ProcessStats process_stats() {
  static const double started = start_time();
  ProcessStats stats{.start_time = started};
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    stats.cpu_seconds = in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime);
  stats.resident_bytes = stat_field(24) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  stats.open_descriptors = open_descriptors();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.most_descriptors = limit.rlim_cur;
  return stats;
}

}  // namespace facetheory
