#include "facetheory/service/descriptor_limit.h"

#include <limits>

#include <sys/resource.h>

#include "facetheory/service/service.h"

namespace facetheory {
namespace {

// Listeners, event loops, the table, bodies that are being read or written, connections to stores on other machines.
constexpr std::uint64_t kDescriptorsOfStores = 256;

}  // namespace

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<std::uint64_t>::max();
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

std::uint64_t descriptors_needed(const Config& config) {
  // Every event loop has connections of its own to each origin, and so have renders.
  const std::uint64_t pools = event_loops_of(config) + 1;
  std::uint64_t needed = kDescriptorsOfStores + static_cast<std::uint64_t>(config.limits.clients.connections);
  for (const auto& [name, origin] : config.origins)
    needed += pools * static_cast<std::uint64_t>(origin.connections);
  return needed;
}

std::optional<std::string> descriptor_warning(const Config& config, std::uint64_t limit) {
  const std::uint64_t needed = descriptors_needed(config);
  if (limit >= needed) return std::nullopt;
  return "this process may have " + std::to_string(limit) + " files and sockets open, and may need " +
         std::to_string(needed) + ", " + std::to_string(config.limits.clients.connections) +
         " of them for limits.connections; raise the limit (ulimit -n, or LimitNOFILE= of systemd), or lower "
         "limits.connections";
}

}  // namespace facetheory
