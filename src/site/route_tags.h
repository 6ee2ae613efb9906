// Which tags a page has by the routes of a configuration, as far as its partition key tells the route: FaceTheory's own
// names the pattern and the params; of a key that is a hash nobody can tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/site/config.h"

namespace facetheory {

// Whether it does.
bool names_route(std::string_view pk);

// The tags of all routes with key = "facetheory" and that pattern, for whatever hosts. Empty: no route is known.
std::optional<std::vector<std::string>> tags_by_route(const Config& config, std::string_view pk);

}  // namespace facetheory
