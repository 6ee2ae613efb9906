#include "facetheory/site/config.h"

#include "facetheory/base/letter_case.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/http/trusted_roots.h"
#include "facetheory/site/config_routes.h"
#include "facetheory/site/config_value.h"
#include "facetheory/site/stores.h"
#include "facetheory/site/tracking_names.h"
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace facetheory {

bool QueryRule::keeps(std::string_view name) const {
  if (include) return include->matches(name) && !ignore.matches(name);
  return !ignore.matches(name) && !(ignore_tracking.value_or(true) && tracking_parameters().matches(name));
}

RouteTable route_table(const Config& config) {
  RouteTable table;
  for (std::size_t i = 0; i < config.routes.size(); ++i) {
    const RouteConfig& route = config.routes[i];
    table.add(i, route.pattern, route.hosts, route.methods);
  }
  return table;
}

}  // namespace facetheory
