// Ids of versions: ULIDs, which sort as text by the millisecond of their creation and never repeat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/random.h"

namespace facetheory {

// "VER#01JCQ5…": 10 characters of time, 16 of randomness.
std::string version_sk(std::int64_t milliseconds, Random& random);

// The milliseconds of such an sk; empty where somebody else made it in another form.
std::optional<std::int64_t> time_of_version_sk(std::string_view sk);

}  // namespace facetheory
