// Finds out which command is meant and what its options say.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "facetheory/cli/command.h"

namespace facetheory {

struct Invocation {
  Command* command = nullptr;
  GlobalOptions options;
};

// The answer instead of a command: help, the version, or what is wrong with the line. `json` tells how to say it.
struct Instead {
  Answer answer;
  bool json = false;
};

// `words` are the program's arguments without its name. The commands must outlive the invocation.
std::variant<Invocation, Instead> parse_command_line(const Commands& commands,
                                                     std::vector<std::string> words);

}  // namespace facetheory
