// The options that say which gateway is meant; `serve` runs it, `explain` inspects its pages and `doctor` its
// stores.
#pragma once

#include <optional>
#include <string>

#include "facetheory/cli/arguments.h"
#include "facetheory/cli/session.h"
#include "facetheory/site/config.h"
#include "facetheory/site/read_config.h"

namespace facetheory {

class GatewayOptions {
 public:
  void declare(Arguments& arguments);

  // Reads what the file, the environment and the options say now; `invalid` names what is wrong. A file that was there
  // once is wanted from then on.
  Result<Config> load(const Session& session);

  bool demo() const { return demo_; }
  // Instead of one that is named; `invalid` if there is one.
  Result<void> set_demo_origin(std::string url);

 private:
  ConfigFlags flags_;
  bool demo_ = false;
  bool had_file_ = false;
};

}  // namespace facetheory
