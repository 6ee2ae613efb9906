// A path as it is from anywhere: "./a/../b/" becomes "/where/we/are/b". Links are not followed, and nothing needs to exist.
#pragma once

#include <string>

namespace facetheory {

std::string whole_path(const std::string& path);

}  // namespace facetheory
