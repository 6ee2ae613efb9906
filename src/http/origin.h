// Origin says where an HTTP server is: scheme, host and port.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"

namespace facetheory {

struct Origin {
  bool tls = false;
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const Origin&, const Origin&) = default;
};

// "http://127.0.0.1:8000", "https://[::1]", "https://s3.eu-west-1.amazonaws.com/". A path other than "/", a
// user name, a query or another scheme is refused.
Result<Origin> parse_origin(std::string_view url);

// What belongs into the Host field: the port only where it is not the scheme's own, and never the zone of an address,
// which means something on this machine only (RFC 6874, 4).
std::string host_field(const Origin& origin);

// "https://host:8443", "http://[fe80::1%eth0]"
std::string url_of(const Origin& origin);

}  // namespace facetheory
