// Input: the URL of an origin, as somebody wrote it into a configuration.
//
// What is taken names one host and one port, and written again it is the same.
#include <string>

#include "facetheory/http/body_framing.h"
#include "facetheory/http/origin.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {

void fuzz_origin_url(std::string_view text) {
  const auto origin = parse_origin(text);
  if (!origin) {
    const std::size_t scheme = text.find("://");
    const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
    const std::string_view authority = text.substr(begin, text.find_first_of("/?#", begin) - begin);
    if (authority.find('@') != std::string_view::npos)
      require(origin.error().message.find('@') == std::string::npos, "no message repeats a password");
    return;
  }
  require(origin->port != 0 && !origin->host.empty(), "there is a host and a port");
  require(is_host_and_port(host_field(*origin)), "its Host can be sent");
  const auto again = parse_origin(url_of(*origin));
  require(again && *again == *origin, "what is written again is the same origin");
}

}  // namespace facetheory::fuzz
