#include "facetheory/base/machine_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace facetheory {
namespace {

namespace fs = std::filesystem;

// The number at the beginning of the text; empty: there is none ("max").
std::optional<std::uint64_t> leading_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return leading_number(line);
}

// "MemTotal:       24689500 kB"
std::optional<std::uint64_t> total_of(const fs::path& meminfo) {
  constexpr std::string_view kTitle = "MemTotal:";
  std::ifstream in(meminfo);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(kTitle)) continue;
    const std::size_t digits = line.find_first_of("0123456789");
    const auto kibibytes = leading_number(std::string_view(line).substr(std::min(digits, line.size())));
    return kibibytes ? std::optional(*kibibytes << 10) : std::nullopt;
  }
  return std::nullopt;
}

// Lowers `least` to the smallest limit of a group and of those that it is part of.
void apply_limits(const fs::path& mount, std::string group, const char* name,
                  std::optional<std::uint64_t>& least) {
  for (;;) {
    if (const auto limit = number_in(mount / fs::path(group).relative_path() / name))
      least = least ? std::min(*least, *limit) : *limit;
    const std::size_t parent = group.rfind('/');
    if (parent == std::string::npos) return;
    group.resize(parent);
  }
}

}  // namespace

std::optional<std::uint64_t> machine_memory(const fs::path& root) {
  auto least = total_of(root / "proc/meminfo");
  // "0::/system.slice/facetheory.service" of version 2; "5:memory:/docker/1f" of version 1. Within a container the
  // group's own files are at the mount's root, and what stands here may not be there.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) apply_limits(root / "sys/fs/cgroup", group, "memory.max", least);
    if (controllers == "memory")
      apply_limits(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes", least);
  }
  return least;
}

}  // namespace facetheory
