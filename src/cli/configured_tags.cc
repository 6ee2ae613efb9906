#include "facetheory/cli/configured_tags.h"

#include <utility>

#include "facetheory/site/read_config.h"
#include "facetheory/site/route_tags.h"

namespace facetheory {

std::optional<std::vector<std::string>> ConfiguredTags::find(const Page& page) {
  if (!names_route(page)) return std::nullopt;
  if (!read_) read();
  return routes_ ? routes_->of(page) : std::nullopt;
}

void ConfiguredTags::read() {
  read_ = true;
  if (!session_.has_config_file()) return;
  Result<Config> config = load_config(session_.config_file(), Environment::of_process());
  if (config) {
    routes_.emplace(*std::move(config));
  } else {
    complain_in_lines("the routes of " + session_.config_file() +
                      " are not used to find the tags of pages: " + config.error().message);
  }
}

}  // namespace facetheory
