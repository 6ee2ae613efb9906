// The end of the program when it finds a mistake of its own that could hand somebody another's answer.
#pragma once

#include <string_view>

namespace facetheory {

// Logs the mistake as an error and aborts. It is for what no input can cause: a wrong answer would be worse than none.
[[noreturn]] void end_program(std::string_view mistake);

}  // namespace facetheory
