#include "tests/support/script.h"

#include <array>
#include <cstdio>
#include <sstream>

#include <sys/wait.h>

namespace facetheory::test {

ScriptRun run_script(const std::string& command) {
  ScriptRun run;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return run;
  std::string text;
  std::array<char, 65536> chunk{};
  while (const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe))
    text.append(chunk.data(), n);
  const int status = ::pclose(pipe);
  run.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    run.lines.push_back(line);
  return run;
}

}  // namespace facetheory::test
