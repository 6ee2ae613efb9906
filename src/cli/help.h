// The texts of --help.
#pragma once

#include <string>
#include <vector>

#include "facetheory/cli/arguments.h"
#include "facetheory/cli/command.h"

namespace facetheory {

std::string overview(const Commands& commands, const Arguments& global);
std::string help_of_group(const Commands& commands, const std::string& group);
std::string help_of_command(const Command& command, const Arguments& own, const Arguments& global);

// ", did you mean X?" if `word` is nearly one of the candidates; else nothing.
std::string suggestion(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace facetheory
