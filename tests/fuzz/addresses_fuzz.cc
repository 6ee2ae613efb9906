// Input: an address, a network or a duration, as somebody wrote it.
//
// An address is the same however it is written, and a network has its own addresses.
#include <string>

#include <arpa/inet.h>

#include "facetheory/base/duration.h"
#include "facetheory/base/utf8.h"
#include "facetheory/http/peers.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

std::string address_text(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  require(::inet_ntop(AF_INET6, address.data(), text, sizeof text) != nullptr, "an address can be written");
  return text;
}

}  // namespace

void fuzz_addresses(std::string_view text) {
  if (const auto address = parse_ip(text)) {
    require(parse_ip(address_text(*address)) == address, "what is written again is the same address");
    const auto alone = parse_network(text);
    require(alone && alone->bits == 128 && alone->contains(*address), "an address is a network of one");
  }
  if (const auto network = parse_network(text)) {
    require(network->contains(network->address), "a network has its first address");
    const auto again = parse_network(address_text(network->address) + "/" + std::to_string(network->bits));
    require(again && *again == *network, "what is written again is the same network");
    if (network->bits > 0) {
      IpAddress other = network->address;
      const auto last = static_cast<std::size_t>(network->bits - 1);
      other[last / 8] = static_cast<std::uint8_t>(other[last / 8] ^ (0x80U >> (last % 8)));
      require(!network->contains(other), "and none whose last bit that counts is another");
    }
  }
  if (const auto duration = parse_duration(text)) {
    require(duration->count() >= 0 && *duration <= kLongestDuration, "a duration is within bounds");
    require(*parse_duration(std::to_string(duration->count()) + "ms") == *duration,
            "what is written again is as long");
    const auto seconds = parse_seconds(text, std::chrono::seconds(0));
    require(seconds.has_value() == (duration->count() % 1000 == 0), "whole seconds are whole");
  }
  const std::string valid = to_valid_utf8(text);
  require(is_utf8(valid), "what was made valid is");
  require(is_utf8(text) == (valid == text), "what was valid stays");
}

}  // namespace facetheory::fuzz
