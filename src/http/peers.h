// Peers: which addresses may say things about a request that others may not (its tenant, its scheme, its id).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/result.h"

namespace facetheory {

// Sixteen bytes; an IPv4 address is mapped (::ffff:a.b.c.d), so that it is the same however it came in.
using IpAddress = std::array<std::uint8_t, 16>;

// "192.0.2.1", "2001:db8::1"; empty when it is no address.
std::optional<IpAddress> parse_ip(std::string_view text);

struct Network {
  IpAddress address = {};
  int bits = 128;  // How many of them count.

  bool contains(const IpAddress& peer) const;
  friend bool operator==(const Network&, const Network&) = default;
};

// "10.0.0.0/8", "fd00::/8", or one address. `invalid` when bits beyond the prefix are set: "10.0.0.1/8" may be a slip.
Result<Network> parse_network(std::string_view text);

bool contains(const std::vector<Network>& networks, const IpAddress& peer);

}  // namespace facetheory
