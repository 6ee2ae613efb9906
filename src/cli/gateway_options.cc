#include "facetheory/cli/gateway_options.h"

#include <filesystem>
#include <utility>

namespace facetheory {
namespace {

constexpr const char* kDefaultFile = "facetheory.toml";
constexpr const char* kUnusedOrigin = "http://127.0.0.1:1";

}  // namespace

void GatewayOptions::declare_file(Arguments& arguments) {
  arguments.text("--config", "FILE", file_, "The configuration. Default: facetheory.toml, if it is there.");
}

void GatewayOptions::declare(Arguments& arguments) {
  declare_file(arguments);
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

Result<Config> GatewayOptions::load_stores(const GlobalOptions& options) const {
  GatewayOptions with_origin = *this;
  with_origin.flags_.origin = kUnusedOrigin;
  auto config = with_origin.load(options);
  if (config) return config;
  // A table [origins.default] leaves no room for another origin.
  auto as_it_is = load(options);
  return as_it_is ? std::move(as_it_is) : std::move(config);
}

std::string GatewayOptions::file() const {
  return file_.value_or(kDefaultFile);
}

}  // namespace facetheory
