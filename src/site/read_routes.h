// The part of the configuration that is about routes: [defaults] and [[routes]]. Used by config.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/site/config.h"
#include "facetheory/site/config_value.h"

namespace facetheory {

// Adds the routes and the boundary headers that they bring. Origins and trusted peers of the config are read already;
// `default_origin` is empty when there is none for all.
void read_routes(const std::optional<ConfigValue>& defaults_value,
                 const std::optional<ConfigValue>& routes_value, const std::string& default_origin,
                 Config& config, ConfigProblems& problems);

// A list of names without a port, or "*.name": example.com, *.example.com. In lower case; what is none is a problem.
std::vector<std::string> read_host_names(const ConfigValue& value);

// "pattern", "query.include", ...
std::vector<std::string> route_keys();

bool is_origin_name(std::string_view name);

}  // namespace facetheory
