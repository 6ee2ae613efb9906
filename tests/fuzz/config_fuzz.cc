// Input: a configuration file.
//
// What is taken can be used; what is not says in which line of the file.
#include <algorithm>
#include <string>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/base/utf8.h"
#include "facetheory/http/peers.h"
#include "facetheory/site/config.h"
#include "facetheory/site/page_key.h"
#include "facetheory/site/read_config.h"
#include "facetheory/site/tag_template.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

void require_route(const Config& config, const RouteConfig& route) {
  require(config.origins.contains(route.origin), "a route's origin is there");
  require(route.pattern.text().starts_with('/'), "a route has a pattern");
  for (const std::string& tag : route.tags)
    require(check_tag_template(tag, route.pattern).has_value(), "its tags can be made");
  for (const std::string& name : route.headers)
    require(lower_case(std::string_view(name)) == name, "names of fields are in lower case");
}

}  // namespace

void fuzz_config(std::string_view text) {
  const auto config = read_config(text, "facetheory.toml");
  if (!config) {
    require(config.error().code == ErrorCode::invalid, "a mistake is the writer's");
    const std::string& message = config.error().message;
    require(!message.empty() && is_utf8(message), "a refusal says why, and can be shown");
    for (const std::string_view line : split(message, "\n")) {
      require(line.starts_with("facetheory.toml") || line.starts_with("and "),
              "each line of it names the file");
      require(std::none_of(line.begin(), line.end(), is_control_character), "and leaves the terminal alone");
    }
    return;
  }
  require(!config->listen.empty() && !config->routes.empty() && !config->origins.empty(),
          "there is something to serve");
  for (const RouteConfig& route : config->routes)
    require_route(*config, route);
  for (const Network& network : config->trusted_peers)
    require(network.contains(network.address), "a network has its own address");
  const RouteTable routes = route_table(*config);
  const auto match = routes.match("example.com", "GET", "/");
  require(!match || match->route < config->routes.size(), "what is found is a route");
}

}  // namespace facetheory::fuzz
