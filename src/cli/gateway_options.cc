#include "facetheory/cli/gateway_options.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "facetheory/base/shown_text.h"
#include "facetheory/site/read_config.h"

namespace facetheory {
void GatewayOptions::declare(Arguments& arguments) {
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

Result<Config> GatewayOptions::load(const Session& session) {
  ConfigFlags flags = flags_;
  flags.data = session.options().data;
  flags.table = session.options().table;
  flags.bodies = session.options().bodies;
  const Environment environment = Environment::of_process();
  const std::string file = session.config_file();
  std::error_code failure;
  if (had_file_ && !std::filesystem::exists(file, failure) && !failure) {
    return Error{ErrorCode::invalid,
                 without_controls(file) + ": there is no such file any more; put it back"};
  }
  if (session.has_config_file()) {
    had_file_ = true;
    return load_config(file, environment, flags);
  }
  return read_config("", file, environment, flags);
}

}  // namespace facetheory
