// Which tags the routes of a configuration give a page, as far as its keys tell the route: FaceTheory's own partition
// key names the pattern and what stands for its variables, and a default cache key is the URL. A partition key that is
// a hash tells nothing by itself. The tags are those that the gateway gives a request for the page (page_key.h).
//
// Does not change; may be asked from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facetheory/isr/page.h"
#include "facetheory/site/config.h"
#include "facetheory/site/route.h"

namespace facetheory {

// Whether a key of the page tells of a route, whatever routes there are.
bool names_route(const Page& page);

class RouteTags {
 public:
  explicit RouteTags(Config config);
  RouteTags(const RouteTags&) = delete;  // The routes point into the configuration.
  RouteTags& operator=(const RouteTags&) = delete;

  // By FaceTheory's key: of all routes with key = "facetheory" and that pattern, for whatever hosts. Where that key
  // does not tell whether something is a part of the path or of the query, the tags of both. By a URL: of the route
  // that a GET of it belongs to. Empty: no route is known.
  std::optional<std::vector<std::string>> of(const Page& page) const;

 private:
  const Config config_;
  const RouteTable routes_;
};

}  // namespace facetheory
