// The tags that the routes of the configuration file give a page whose META another writer has replaced: such a writer
// knows no tags and has dropped them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facetheory/cli/session.h"
#include "facetheory/site/route_tags.h"

namespace facetheory {

class ConfiguredTags {
 public:
  // The session outlives it.
  explicit ConfiguredTags(const Session& session) : session_(session) {}

  // As RouteTags has it (site/route_tags.h). The file is read when the first page asks whose key names a route. A
  // mistake in it is told on stderr, and then no route is known: it is no reason not to go on.
  std::optional<std::vector<std::string>> find(const Page& page);
  // The same; none where no route is known.
  std::vector<std::string> of(const Page& page) { return find(page).value_or(std::vector<std::string>()); }

 private:
  void read();

  const Session& session_;
  bool read_ = false;
  std::optional<RouteTags> routes_;
};

}  // namespace facetheory
