#include "facetheory/http/peers.h"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>

#include "facetheory/base/shown_text.h"

namespace facetheory {
namespace {

constexpr std::size_t kMappedPrefix = 12;  // Bytes before the four of a mapped IPv4 address.

IpAddress masked(const IpAddress& address, int bits) {
  IpAddress result = {};
  for (std::size_t i = 0; i < result.size(); ++i) {
    const int here = std::clamp(bits - static_cast<int>(i) * 8, 0, 8);
    result[i] = static_cast<std::uint8_t>(address[i] & (0xFF00U >> here));
  }
  return result;
}

}  // namespace

std::optional<IpAddress> parse_ip(std::string_view text) {
  const std::string terminated(text);
  IpAddress address = {};
  if (terminated.find('\0') != std::string::npos) return std::nullopt;
  if (::inet_pton(AF_INET6, terminated.c_str(), address.data()) == 1) return address;
  address = {};
  address[10] = address[11] = 0xFF;
  if (::inet_pton(AF_INET, terminated.c_str(), address.data() + kMappedPrefix) == 1) return address;
  return std::nullopt;
}

bool Network::contains(const IpAddress& peer) const {
  return masked(peer, bits) == address;
}

Result<Network> parse_network(std::string_view text) {
  const auto refused = [&](const std::string& why) {
    return Error{ErrorCode::invalid, quoted_for_message(text) + " " + why};
  };
  const std::size_t slash = text.find('/');
  const std::string_view host = text.substr(0, slash);
  const std::optional<IpAddress> address = parse_ip(host);
  if (!address) return refused("is no network; write 10.0.0.0/8, fd00::/8 or an address");
  const int most = host.find(':') == std::string_view::npos ? 32 : 128;
  int bits = most;
  if (slash != std::string_view::npos) {
    const char* last = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + slash + 1, last, bits);
    if (error != std::errc() || stop != last || bits < 0 || bits > most) {
      return refused("has a prefix length that is not 0 to " + std::to_string(most));
    }
  }
  const Network network{.address = *address, .bits = bits + 128 - most};
  if (masked(network.address, network.bits) != network.address) {
    return refused(
        "has bits beyond its prefix length; write the network's first address, or one address alone");
  }
  return network;
}

bool contains(const std::vector<Network>& networks, const IpAddress& peer) {
  return std::any_of(networks.begin(), networks.end(),
                     [&](const Network& network) { return network.contains(peer); });
}

}  // namespace facetheory
