// The difference of two texts by lines, as diff -u shows it. A pure function.
#pragma once

#include <string>
#include <string_view>

namespace facetheory {

// Hunks with three lines around each change; empty: the texts are equal. Of texts that have little in common the
// differing middle is shown as a whole, so that it takes no longer than a moment.
std::string line_diff(std::string_view from, std::string_view to);

}  // namespace facetheory
