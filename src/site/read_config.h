// Reads a Config from facetheory.toml, the environment and the command line, and names every mistake in them at once.
// configuration_keys() lists what is read; a test compares it with docs/configuration.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/environment.h"
#include "facetheory/base/result.h"
#include "facetheory/site/config.h"

namespace facetheory {

// What the command line says; it goes before the environment, the environment before the file.
struct ConfigFlags {
  std::optional<std::string> origin = {};
  std::optional<std::string> listen = {};
  std::optional<std::string> admin = {};
  std::optional<std::string> data = {};
  std::optional<std::string> table = {};
  std::optional<std::string> bodies = {};
};

// `invalid` has a line for each mistake: "<file>:<line>:<column>: <key>: what is wrong; what to write". Line breaks
// between them are all that it has of control characters.
Result<Config> read_config(std::string_view text, const std::string& file,
                           const Environment& environment = Environment(), const ConfigFlags& flags = {});
// Also opens the files that the configuration names: one that cannot be used is a mistake.
Result<Config> load_config(const std::string& path, const Environment& environment,
                           const ConfigFlags& flags = {});

// "origin", "limits.header_bytes", "origins.*.url", "routes.revalidate", "routes.query.include", ...
std::vector<std::string> configuration_keys();

}  // namespace facetheory
