#include "facetheory/http/peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using ::testing::HasSubstr;

bool in(std::string_view network, std::string_view peer) {
  const auto parsed = parse_network(network);
  const auto address = parse_ip(peer);
  EXPECT_TRUE(parsed) << network;
  EXPECT_TRUE(address) << peer;
  return parsed && address && contains({*parsed}, *address);
}

TEST(Peers, ANetworkContainsItsAddressesAndNoOthers) {
  EXPECT_TRUE(in("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(in("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(in("192.168.4.0/22", "192.168.7.255"));
  EXPECT_FALSE(in("192.168.4.0/22", "192.168.8.0"));
  EXPECT_TRUE(in("fd00::/8", "fd12:3456::1"));
  EXPECT_FALSE(in("fd00::/8", "fe80::1"));
}

TEST(Peers, AnAddressAloneIsANetworkOfOne) {
  EXPECT_TRUE(in("127.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(in("127.0.0.1", "127.0.0.2"));
  EXPECT_TRUE(in("::1", "::1"));
  EXPECT_FALSE(in("::1", "::2"));
}

TEST(Peers, AnIPv4AddressIsTheSameWhenItComesInMapped) {
  EXPECT_TRUE(in("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_FALSE(in("10.0.0.0/8", "::10.1.2.3"));
}

TEST(Peers, AllIPv4AddressesAreNotAllAddresses) {
  EXPECT_TRUE(in("0.0.0.0/0", "203.0.113.9"));
  EXPECT_FALSE(in("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(in("::/0", "2001:db8::1"));
}

TEST(Peers, RefusesBitsBeyondThePrefix) {
  const auto network = parse_network("10.0.0.1/8");
  ASSERT_FALSE(network);
  EXPECT_THAT(network.error().message, HasSubstr("bits beyond its prefix"));
}

TEST(Peers, RefusesWhatIsNoNetwork) {
  for (const char* text : {"", "localhost", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/8x", "10.0.0/8",
                           "/8", "10.0.0.0/-1", "1.2.3.4 "}) {
    EXPECT_FALSE(parse_network(text)) << text;
  }
}

}  // namespace
}  // namespace facetheory
