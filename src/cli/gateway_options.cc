#include "facetheory/cli/gateway_options.h"

#include <filesystem>
#include <utility>

namespace facetheory {
namespace {

constexpr const char* kDefaultFile = "facetheory.toml";

}  // namespace

void GatewayOptions::declare(Arguments& arguments) {
  arguments.text("--config", "FILE", file_, "The configuration. Default: facetheory.toml, if it is there.");
  arguments.text("--origin", "URL", flags_.origin, "Where pages come from: http://127.0.0.1:3000");
  arguments.text("--listen", "ADDRESS", flags_.listen, "Where clients connect. Default: 127.0.0.1:8080.");
  arguments.text("--admin", "ADDRESS", flags_.admin,
                 "Where metrics and health are served, or `off`. Default: 127.0.0.1:9080.");
  arguments.flag("--demo", demo_, "The origin is a built-in site whose pages take 300 ms to render.");
}

Result<void> GatewayOptions::set_demo_origin(std::string url) {
  if (flags_.origin) return Error{ErrorCode::invalid, "--demo is an origin of its own; leave --origin away"};
  flags_.origin = std::move(url);
  return {};
}

Result<Config> GatewayOptions::load(const GlobalOptions& options) const {
  ConfigFlags flags = flags_;
  flags.data = options.data;
  flags.table = options.table;
  flags.bodies = options.bodies;
  const Environment environment = Environment::of_process();
  if (file_ || std::filesystem::exists(kDefaultFile)) return load_config(file(), environment, flags);
  return read_config("", file(), environment, flags);
}

std::string GatewayOptions::file() const {
  return file_.value_or(kDefaultFile);
}

}  // namespace facetheory
