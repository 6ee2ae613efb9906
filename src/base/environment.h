// The environment variables a component may read, handed in so that tests and embedders can supply their own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace facetheory {

class Environment {
 public:
  // An empty environment, or exactly these variables.
  explicit Environment(std::map<std::string, std::string, std::less<>> variables = {});

  // A copy of this process's variables, taken now.
  static Environment of_process();

  // The variable's value; one that is set to nothing counts as not set, as AWS's own tools treat it.
  std::optional<std::string> get(std::string_view variable) const;

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace facetheory
