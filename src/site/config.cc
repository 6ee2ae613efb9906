#include "facetheory/site/config.h"

#include <algorithm>

#include "facetheory/base/machine_memory.h"
#include "facetheory/site/tracking_names.h"

namespace facetheory {

std::size_t automatic_memory() {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  const auto machine = machine_memory();
  return machine ? std::clamp(*machine / 4 / kMiB, std::uint64_t{64}, std::uint64_t{8192}) * kMiB
                 : 256 * kMiB;
}

bool QueryRule::keeps(std::string_view name) const {
  if (include) return include->matches(name) && !ignore.matches(name);
  return !ignore.matches(name) && !(ignore_tracking.value_or(true) && tracking_parameters().matches(name));
}

RouteTable route_table(const Config& config) {
  RouteTable table;
  for (std::size_t i = 0; i < config.routes.size(); ++i) {
    const RouteConfig& route = config.routes[i];
    table.add_or_find_conflict(i, route.pattern, route.hosts, route.methods);
  }
  return table;
}

}  // namespace facetheory
