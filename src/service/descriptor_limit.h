// How many files and sockets this process may have open (RLIMIT_NOFILE), and how many a gateway may need. From any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "facetheory/site/config.h"

namespace facetheory {

// Raises it as high as the system lets this process go by itself: the soft limit becomes the hard one. The limit that
// holds now.
std::uint64_t raise_descriptor_limit();

// So many are needed with every connection of clients and to origins open at once.
std::uint64_t descriptors_needed(const Config& config);

// What to tell the operator if the limit is lower than that.
std::optional<std::string> descriptor_warning(const Config& config, std::uint64_t limit);

}  // namespace facetheory
