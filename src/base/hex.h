// Lower-case hexadecimal.
#pragma once

#include <string>
#include <string_view>

namespace facetheory {

std::string to_hex(std::string_view bytes);

}  // namespace facetheory
