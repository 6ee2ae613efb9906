// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <string_view>

namespace facetheory {

bool is_utf8(std::string_view bytes);

}  // namespace facetheory
