#include "facetheory/base/mistake.h"

#include <cstdlib>
#include <string>

#include "facetheory/base/log.h"

namespace facetheory {

void end_program(std::string_view mistake) {
  log(LogLevel::error,
      std::string(mistake) +
          ". This is a mistake in the program, which ends before an answer can reach the wrong "
          "request; please report it");
  std::abort();
}

}  // namespace facetheory
