// Tunnels through a whole gateway: how long they last, and how they end.
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gateway_bed.h"
#include "tests/support/scripted_server.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::Peer;
using test::RawClient;
using test::read_reply;
using test::ScriptedServer;
using testing::StartsWith;

// A gateway whose origin agrees to every tunnel and then does as it is told, and a client at the other end of one.
class TunnelBed {
 public:
  TunnelBed(std::chrono::milliseconds timeout, ScriptedServer::Script in_tunnel)
      : origin_([in_tunnel = std::move(in_tunnel)](Peer& peer) {
          while (const auto request = peer.read_request()) {
            if (request->find("Upgrade: ") == std::string::npos) {
              peer.write(test::http_answer(200, "page"));
              continue;
            }
            peer.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
            return in_tunnel(peer);
          }
        }) {
    Config config = test::bed_config(origin_.port(), "[defaults]\ncache = false\n");
    config.threads = 1;
    config.origins.at("default").connections = 1;
    config.origins.at("default").connect_timeout = 100ms;
    config.limits.tunnel_timeout = timeout;
    service_ = *Service::start(std::move(config));
    client = std::make_unique<RawClient>(port());
    asked_at = std::chrono::steady_clock::now();
    client->send("GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    EXPECT_THAT(client->until("\r\n\r\n"), StartsWith("HTTP/1.1 101"));
  }
  std::uint16_t port() const { return service_->listening().front().port; }

 private:
  ScriptedServer origin_;
  std::unique_ptr<Service> service_;

 public:
  std::unique_ptr<RawClient> client;
  std::chrono::steady_clock::time_point asked_at;
};

TEST(GatewayTunnel, KeepsNobodyElseFromTheOrigin) {
  const TunnelBed bed(1h, [](Peer& peer) { peer.wait_for_close(); });
  RawClient other(bed.port());
  other.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(read_reply(other).body, "page");
}

TEST(GatewayTunnel, InWhichNothingMovesIsClosedAtBothEnds) {
  std::promise<bool> closed;
  const TunnelBed bed(200ms, [&](Peer& peer) { closed.set_value(peer.wait_for_close()); });
  EXPECT_EQ(bed.client->rest(), "");
  EXPECT_GE(std::chrono::steady_clock::now() - bed.asked_at, 200ms);
  EXPECT_TRUE(closed.get_future().get());
  EXPECT_LT(std::chrono::steady_clock::now() - bed.asked_at, 5s);
}

TEST(GatewayTunnel, OfWhichOneSideHasEndedMayGoOnForTenSeconds) {
  const TunnelBed bed(1s, [](Peer& peer) {
    while (peer.write("x"))
      std::this_thread::sleep_for(100ms);
  });
  EXPECT_EQ(bed.client->exactly(3), "xxx");  // It is under way.
  bed.client->shut_down_sending();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_GT(bed.client->rest().size(), 50U);
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, 9s);
  EXPECT_LT(took, 15s);
}

TEST(GatewayTunnel, ThatTheOriginHasEndedTakesWhatTheClientStillSends) {
  std::promise<std::string> got;
  const TunnelBed bed(1h, [&](Peer& peer) {
    peer.write("all said");
    peer.end_writing();
    got.set_value(peer.read(10));
  });
  bed.client->rest();
  for (int i = 0; i < 10; ++i) {
    bed.client->send("y");
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(got.get_future().get(), "yyyyyyyyyy");
}

// Long enough in all, never silent for long: what moves in one direction counts for both.
TEST(GatewayTunnel, InWhichOneSideTalksStaysOpen) {
  const TunnelBed bed(2s, [](Peer& peer) {
    peer.read(1);
    for (int i = 0; i < 12; ++i) {
      std::this_thread::sleep_for(250ms);
      peer.write("x");
    }
    peer.write("your turn");
    peer.write(peer.read(13));
  });
  bed.client->send("!");
  EXPECT_EQ(bed.client->until("turn"), "xxxxxxxxxxxxyour turn");
  for (int i = 0; i < 12; ++i) {
    std::this_thread::sleep_for(250ms);
    bed.client->send("y");
  }
  bed.client->send(".");
  EXPECT_EQ(bed.client->until("."), "yyyyyyyyyyyy.");
}

}  // namespace
}  // namespace facetheory
