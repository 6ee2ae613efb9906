#include "facetheory/cache/served.h"

namespace facetheory {

std::string_view name(ServedAs served_as) {
  switch (served_as) {
    case ServedAs::hit:
      return "hit";
    case ServedAs::miss:
      return "miss";
    case ServedAs::wait_hit:
      return "wait-hit";
    case ServedAs::stale:
      return "stale";
    case ServedAs::stale_metadata_error:
      return "stale-metadata-error";
    case ServedAs::uncached:
      return "uncached";
    case ServedAs::live:
      return "live";
    case ServedAs::pass:
      return "pass";
    case ServedAs::other:
      return "other";
    case ServedAs::absent:
      return "absent";
    case ServedAs::failed:
      return "failed";
  }
  return "?";
}

}  // namespace facetheory
