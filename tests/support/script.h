// Runs a script whose output a test compares with: vectors that another implementation computes.
#pragma once

#include <string>
#include <vector>

namespace facetheory::test {

struct ScriptRun {
  int exit_status = -1;  // -1: it could not be started, or was killed.
  std::vector<std::string> lines;
};

// Through the shell; stdout, line by line.
ScriptRun run_script(const std::string& command);

}  // namespace facetheory::test
