// Finds out where a folder really is, so that one that is reached in two ways is known to be one.
#pragma once

#include <string>

namespace facetheory {

// A path as it is from anywhere, with links followed as far as it exists: "./a/../b/" becomes "/where/we/are/b".
// Nothing needs to exist.
std::string whole_path(const std::string& path);

enum class Sameness {
  same,       // The names are the same, or the system says so: a link, or a folder that is mounted twice.
  different,  // Both are there, and are two.
  unknown,    // One of them is not there, or cannot be looked at.
};

Sameness compare_places(const std::string& a, const std::string& b);

}  // namespace facetheory
