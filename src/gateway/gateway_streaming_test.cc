// Who reads what of an answer while the origin still sends it; through a whole gateway, in real time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/bodies/faulty_bodies.h"

#include "tests/support/gateway_bed.h"
#include "tests/support/http_calls.h"
#include "tests/support/scripted_server.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::http_answer;
using test::Peer;
using test::RawClient;
using test::read_reply;
using test::Reply;
using test::ScriptedServer;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

const std::string kChunked = "Transfer-Encoding: chunked\r\n\r\n";

class GatewayStreaming : public testing::Test {
 protected:
  void start(ScriptedServer::Script script, const std::string& lines = "", ServiceOptions options = {}) {
    origin_ = std::make_unique<ScriptedServer>(std::move(script));
    Config config = test::bed_config(origin_->port(), lines);
    if (streams_ > 0) config.origins.begin()->second.streams = streams_;
    auto started = Service::start(std::move(config), std::move(options));
    if (!started) throw std::runtime_error(started.error().message);
    service_ = *std::move(started);
  }
  // Answers each request with that head, chunked, and "first half"; the second half when the gate is open.
  ScriptedServer::Script in_two_halves(const std::string& fields, std::string end = "0\r\n\r\n") {
    return [this, fields, end = std::move(end)](Peer& peer) {
      while (peer.read_request()) {
        peer.write("HTTP/1.1 200 OK\r\n" + fields + kChunked + "a\r\nfirst half\r\n");
        gate_.wait();
        peer.write("c\r\n second half\r\n" + end);
      }
    };
  }
  std::uint16_t port() const { return service_->listening().front().port; }
  static std::string asking(const std::string& method, const std::string& fields = "") {
    return method + " /page HTTP/1.1\r\nHost: site.test\r\n" + fields + "\r\n";
  }
  Reply ask(const std::string& method = "GET", const std::string& fields = "") const {
    RawClient client(port());
    client.send(asking(method, fields));
    return read_reply(client, method);
  }
  std::size_t asked() const { return origin_->requests().size(); }

  // Until the first byte that is there when the answer's head is.
  std::chrono::milliseconds first_byte_after(const std::string& target, const std::string& expected) const {
    const auto began = std::chrono::steady_clock::now();
    RawClient client(port());
    client.send("GET " + target + " HTTP/1.1\r\nHost: site.test\r\n\r\n");
    client.until(expected);
    return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  }

  test::Gate gate_;
  int streams_ = 0;  // Of the origin; 0: as many as ever.
  std::unique_ptr<ScriptedServer> origin_;
  std::unique_ptr<Service> service_;
};

TEST_F(GatewayStreaming, TheFirstClientReadsAPageWhileItIsRenderedAndOthersGetItWhole) {
  start(in_two_halves("Content-Type: text/html\r\nCache-Control: max-age=60\r\n"));
  RawClient first(port());
  first.send(asking("GET"));
  const std::string begun = first.until("first half");
  EXPECT_THAT(begun, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(begun, HasSubstr("X-FaceTheory-ISR: miss\r\n"));
  EXPECT_THAT(begun, HasSubstr("Cache-Status: facetheory; fwd=uri-miss; fwd-status=200; stored; ttl="));
  EXPECT_THAT(begun, HasSubstr("Content-Type: text/html\r\n"));
  EXPECT_THAT(begun, HasSubstr("Vary: Accept-Encoding\r\n"));  // Whoever gets it whole may get it compressed.
  RawClient joined(port());
  joined.send(asking("GET"));
  gate_.open();
  EXPECT_THAT(first.until("0\r\n\r\n"), HasSubstr(" second half"));
  const Reply whole = read_reply(joined);
  EXPECT_EQ(whole.body, "first half second half");
  EXPECT_NE(whole.field("etag"), "");
  const Reply next = ask();
  EXPECT_EQ(next.state(), "hit");
  EXPECT_EQ(next.body, "first half second half");
  EXPECT_EQ(asked(), 1U);
}

// Of known length, so that the client knows by itself when it has all.
TEST_F(GatewayStreaming, WhoHasReadAPageToItsEndFindsItStored) {
  start([](Peer& peer) {
    while (peer.read_request()) {
      peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 22\r\n\r\nfirst half");
      std::this_thread::sleep_for(100ms);  // Longer than a whole page is waited for.
      peer.write(" second half");
    }
  });
  for (int i = 0; i < 10; ++i) {
    RawClient client(port());
    const std::string asking_for_it = "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: site.test\r\n\r\n";
    client.send(asking_for_it);
    EXPECT_EQ(read_reply(client).state(), "miss");
    client.send(asking_for_it);
    const Reply again = read_reply(client);
    EXPECT_EQ(again.state(), "hit");
    EXPECT_EQ(again.body, "first half second half");
  }
  EXPECT_EQ(asked(), 10U);
}

TEST_F(GatewayStreaming, WhatIsForOneClientBeginsAtOnceAndIsAskedForOnce) {
  start(in_two_halves("Content-Type: text/html\r\nSet-Cookie: a=b\r\nCache-Control: private\r\n"));
  RawClient first(port());
  first.send(asking("GET"));
  const std::string begun = first.until("first half");
  EXPECT_THAT(begun, HasSubstr("X-FaceTheory-ISR: uncached\r\n"));
  EXPECT_THAT(begun, HasSubstr("set-cookie: a=b\r\n"));
  gate_.open();
  EXPECT_THAT(first.until("0\r\n\r\n"), HasSubstr(" second half"));
  EXPECT_EQ(asked(), 1U);
}

// The render loses its lease before the origin answers.
TEST_F(GatewayStreaming, WhatIsForOneClientIsAskedForOnceAlsoWhenThePageIsInvalidatedMeanwhile) {
  for (const char* fields :
       {"Cache-Control: private\r\n", "Set-Cookie: a=b\r\n", "Cache-Control: no-store\r\n"}) {
    test::Gate answering;
    start([&](Peer& peer) {
      while (const auto request = peer.read_request()) {
        if (request->starts_with("POST ")) {
          peer.write(http_answer(200, "changed"));
          continue;
        }
        answering.wait();
        peer.write("HTTP/1.1 200 OK\r\n" + std::string(fields) + kChunked + "a\r\nfirst half\r\n");
        std::this_thread::sleep_for(60ms);
        peer.write("c\r\n second half\r\n0\r\n\r\n");
      }
    });
    RawClient first(port());
    first.send(asking("GET"));
    while (asked() < 1)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(ask("POST", "Content-Length: 0\r\n").status, 200);
    answering.open();
    const Reply reply = read_reply(first);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "first half second half") << fields;
    EXPECT_EQ(asked(), 2U) << fields;  // With the POST.
    first.send("GET /other HTTP/1.1\r\nHost: site.test\r\n\r\n");
    EXPECT_EQ(read_reply(first).body, "first half second half");
  }
}

TEST_F(GatewayStreaming, APartOfAStalePageIsAPartOfTheNewOne) {
  start([](Peer& peer) {
    while (peer.read_request()) {
      peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nContent-Length: 22\r\n\r\nfirst half");
      std::this_thread::sleep_for(100ms);  // Longer than a whole page is waited for.
      peer.write(" second half");
    }
  });
  EXPECT_EQ(ask().body, "first half second half");
  const Reply part = ask("GET", "Range: bytes=6-9\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "half");
  EXPECT_EQ(part.field("content-range"), "bytes 6-9/22");
  const Reply beyond = ask("GET", "Range: bytes=22-\r\n");
  EXPECT_EQ(beyond.status, 416);
  EXPECT_EQ(beyond.field("content-range"), "bytes */22");
}

TEST_F(GatewayStreaming, AStalePageIsServedWholeWhenTheNewOneBreaksOff) {
  std::atomic<bool> breaks = false;
  start([&](Peer& peer) {
    while (peer.read_request()) {
      peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nContent-Length: 22\r\n\r\nfirst half");
      std::this_thread::sleep_for(100ms);
      if (breaks) return;
      peer.write(" second half");
    }
  });
  EXPECT_EQ(ask().body, "first half second half");
  breaks = true;
  const Reply reply = ask();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.state(), "stale");
  EXPECT_EQ(reply.body, "first half second half");
}

// HTTP/1.0 has neither chunks nor, here, a length.
TEST_F(GatewayStreaming, AClientThatReadsUntilTheEndSeesThatAnAnswerBrokeOff) {
  start([](Peer& peer) {
    while (peer.read_request()) {
      peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n" + kChunked + "a\r\nfirst half\r\n");
      std::this_thread::sleep_for(100ms);
      return;
    }
  });
  for (const char* fields : {"", "Cookie: session=1\r\n"}) {  // A page, and what is passed on.
    RawClient client(port());
    client.send("GET /page HTTP/1.0\r\nHost: site.test\r\n" + std::string(fields) + "\r\n");
    const std::string answer = client.rest();
    EXPECT_THAT(answer, HasSubstr("first half")) << fields;
    EXPECT_TRUE(client.was_reset()) << fields;
  }
}

TEST_F(GatewayStreaming, HintsReachTheClientOfARenderBeforeItsAnswer) {
  start([this](Peer& peer) {
    while (peer.read_request()) {
      peer.write("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
      gate_.wait();
      peer.write(http_answer(200, "page"));
    }
  });
  RawClient client(port());
  client.send(asking("GET"));
  const std::string hints = client.until("\r\n\r\n");
  EXPECT_THAT(hints, StartsWith("HTTP/1.1 103 "));
  EXPECT_THAT(hints, HasSubstr("Link: </style.css>; rel=preload\r\n"));
  gate_.open();
  EXPECT_EQ(read_reply(client).body, "page");
  EXPECT_EQ(ask().state(), "hit");
  EXPECT_EQ(asked(), 1U);
}

TEST_F(GatewayStreaming, TrailersReachWhoTakesThem) {
  start(in_two_halves("Cache-Control: max-age=60\r\n", "0\r\nX-Checksum: 7\r\n\r\n"));
  RawClient client(port());
  client.send(asking("GET", "TE: trailers\r\nConnection: TE\r\n"));
  client.until("first half");
  gate_.open();
  EXPECT_THAT(client.until("X-Checksum: 7\r\n\r\n"), HasSubstr(" second half"));
}

TEST_F(GatewayStreaming, TrailersReachWhoTakesThemAlsoWhenThePageIsWholeAtOnce) {
  start([](Peer& peer) {
    while (peer.read_request())
      peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n" + kChunked +
                 "4\r\npage\r\n0\r\nX-Checksum: 7\r\n\r\n");
  });
  RawClient client(port());
  client.send(asking("GET", "TE: trailers\r\nConnection: TE\r\n"));
  const std::string answer = client.until("X-Checksum: 7\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("X-FaceTheory-ISR: miss\r\n"));
  EXPECT_THAT(answer, HasSubstr("4\r\npage\r\n0\r\n"));
  const Reply hit = ask();
  EXPECT_EQ(hit.state(), "hit");
  EXPECT_EQ(hit.body, "page");
}

TEST_F(GatewayStreaming, WhoTakesNoTrailersGetsAWholePageWithItsLength) {
  start([](Peer& peer) {
    while (peer.read_request())
      peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n" + kChunked +
                 "4\r\npage\r\n0\r\nX-Checksum: 7\r\n\r\n");
  });
  EXPECT_EQ(ask().field("content-length"), "4");
}

TEST_F(GatewayStreaming, EveryHintReachesTheFirstClientInOrder) {
  start([this](Peer& peer) {
    while (peer.read_request()) {
      peer.write(
          "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n");
      gate_.wait();
      peer.write(http_answer(200, "page"));
    }
  });
  RawClient client(port());
  client.send(asking("GET"));
  const std::string hints = client.until("</a.css>; rel=preload\r\n\r\n");
  EXPECT_THAT(hints, StartsWith("HTTP/1.1 102 Processing\r\n"));
  EXPECT_THAT(hints, HasSubstr("\r\n\r\nHTTP/1.1 103 "));
  gate_.open();
  EXPECT_EQ(read_reply(client).body, "page");
}

TEST_F(GatewayStreaming, HintsReachTheClientAlsoWhenTheAnswerFollowsAtOnce) {
  for (const int status : {200, 500}) {  // A page that is stored, and an answer that is not.
    service_.reset();                    // Before its origin.
    start([status](Peer& peer) {
      while (peer.read_request())
        peer.write("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n" +
                   http_answer(status, "page"));
    });
    RawClient client(port());
    client.send(asking("GET", "Connection: close\r\n"));
    const std::string all = client.rest();
    EXPECT_THAT(all, StartsWith("HTTP/1.1 103 ")) << status;
    EXPECT_THAT(all, HasSubstr("Link: </style.css>; rel=preload\r\n")) << status;
    EXPECT_THAT(all, HasSubstr("\r\n\r\nHTTP/1.1 " + std::to_string(status))) << status;
    EXPECT_TRUE(all.ends_with("\r\n\r\npage")) << status;
    EXPECT_EQ(asked(), 1U) << status;
    if (status != 200) continue;
    const Reply hit = ask();  // Without hints, which were for the first client.
    EXPECT_EQ(hit.status, 200);
    EXPECT_EQ(hit.state(), "hit");
  }
}

TEST_F(GatewayStreaming, TrailersOfAnAnswerThatIsNotStoredReachWhoTakesThem) {
  start([](Peer& peer) {
    while (peer.read_request())
      peer.write("HTTP/1.1 500 Internal Server Error\r\n" + kChunked +
                 "4\r\noops\r\n0\r\nX-Checksum: 7\r\n\r\n");
  });
  RawClient client(port());
  client.send(asking("GET", "TE: trailers\r\nConnection: TE\r\n"));
  EXPECT_THAT(client.until("X-Checksum: 7\r\n\r\n"), HasSubstr("4\r\noops\r\n0\r\n"));
}

// The best of several: what else runs on the machine is not what is tested. What is waited on purpose leaves it room
// to stay within 50 ms.
TEST_F(GatewayStreaming, TheFirstByteComesWellWithinFiftyMillisecondsOfTheOrigins) {
  start(in_two_halves("Cache-Control: max-age=60\r\n"));
  auto best = std::chrono::milliseconds::max();
  for (int i = 0; i < 20 && best > 25ms; ++i)
    best = std::min(best, first_byte_after("/" + std::to_string(i), "first half"));
  EXPECT_LE(best, 25ms);
  gate_.open();
}

TEST_F(GatewayStreaming, AStoreThatIsSlowDoesNotHoldUpTheFirstByteOfAWholePage) {
  ServiceOptions options;
  options.wrap_bodies = [](std::unique_ptr<BodyStore> bodies) {
    auto script = std::make_shared<FaultScript>();
    script->set_delay(700ms);
    for (int i = 0; i < 20; ++i)
      script->queue("write", Fault::delay);
    return std::make_unique<FaultyBodies>(std::move(bodies), std::move(script));
  };
  start(test::answer_in_turn({http_answer(200, "page")}), "", std::move(options));
  auto best = std::chrono::milliseconds::max();
  for (int i = 0; i < 10 && best > 100ms; ++i)
    best = std::min(best, first_byte_after("/" + std::to_string(i), "\r\n\r\npag"));
  EXPECT_LE(best, 100ms);
}

TEST_F(GatewayStreaming, AnAnswerThatBreaksOffIsCutOffAndNeitherStoredNorAskedForAgain) {
  start([this](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n" + kChunked + "a\r\nfirst half\r\n");
    gate_.wait();
  });
  RawClient client(port());
  client.send(asking("GET"));
  client.until("first half");
  gate_.open();
  EXPECT_THAT(client.rest(), Not(HasSubstr("0\r\n\r\n")));
  EXPECT_EQ(asked(), 1U);
  EXPECT_NE(ask().state(), "hit");
}

// One that was made for the request cannot have been closed as it was used.
TEST_F(GatewayStreaming, AnOriginThatClosesANewConnectionWithoutAWordIsAskedOnce) {
  start([](Peer& peer) { peer.read_request(); });
  const Reply reply = ask();
  EXPECT_EQ(reply.status, 502);
  EXPECT_EQ(reply.state(), "failed");
  EXPECT_EQ(asked(), 1U);
  EXPECT_EQ(ask("GET", "Cookie: session=1\r\n").status, 502);
  EXPECT_EQ(asked(), 2U);
}

// For renders, and for what is passed on.
TEST_F(GatewayStreaming, AnOriginThatClosesAKeptConnectionWithoutAWordIsAskedOnceMoreAndNoMore) {
  for (const char* fields : {"", "Cookie: session=1\r\n"}) {
    std::atomic<int> seen = 0;
    start([&seen](Peer& peer) {
      while (peer.read_request()) {
        const int number = ++seen;
        if (number == 2) return;
        peer.write(http_answer(200, "page " + std::to_string(number)));
      }
    });
    RawClient client(port());
    for (const char* expected : {"page 1", "page 3"}) {
      client.send("GET /" + std::string(expected).substr(5) + " HTTP/1.1\r\nHost: site.test\r\n" + fields +
                  "\r\n");
      EXPECT_EQ(read_reply(client).body, expected) << fields;
    }
    EXPECT_EQ(asked(), 3U);
    service_.reset();
  }
}

TEST_F(GatewayStreaming, AMalformedAnswerIsNotAskedForAgain) {
  for (const char* answer :
       {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n",
        "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Le"}) {
    for (const char* fields : {"", "Cookie: session=1\r\n"}) {
      start([&](Peer& peer) {
        while (const auto request = peer.read_request()) {
          if (request->starts_with("GET /bad")) return static_cast<void>(peer.write(answer));
          peer.write(http_answer(200, "page"));
        }
      });
      RawClient client(port());
      client.send("GET /good HTTP/1.1\r\nHost: site.test\r\n" + std::string(fields) + "\r\n");
      EXPECT_EQ(read_reply(client).status, 200);
      client.send("GET /bad HTTP/1.1\r\nHost: site.test\r\n" + std::string(fields) + "\r\n");
      EXPECT_EQ(read_reply(client).status, 502) << answer;
      EXPECT_EQ(asked(), 2U) << answer << fields;
      service_.reset();
    }
  }
}

// --- how much may be on its way ---------------------------------------------------------------------------------

TEST_F(GatewayStreaming, OnlySoManyAnswersForOneClientAreOnTheirWayAndPagesAreRenderedBesideThem) {
  streams_ = 2;
  start([this](Peer& peer) {
    while (const auto request = peer.read_request()) {
      const bool is_private = request->find("/private") != std::string::npos;
      if (!is_private) {
        peer.write(http_answer(200, "page"));
        continue;
      }
      peer.write("HTTP/1.1 200 OK\r\nCache-Control: private\r\n" + kChunked + "a\r\nfirst half\r\n");
      gate_.wait();
      peer.write("0\r\n\r\n");
    }
  });
  const auto ask_private = [](RawClient& client, int number) {
    client.send("GET /private" + std::to_string(number) + " HTTP/1.1\r\nHost: site.test\r\n\r\n");
  };
  RawClient first(port());
  RawClient second(port());
  RawClient third(port());
  ask_private(first, 1);
  ask_private(second, 2);
  first.until("first half");
  second.until("first half");
  ask_private(third, 3);
  EXPECT_TRUE(
      origin_->wait_until([](const ScriptedServer& origin) { return origin.requests().size() == 3; }));
  EXPECT_EQ(ask().body, "page");  // While the third waits for its place.
  const Reply refused = read_reply(third);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.state(), "failed");
  EXPECT_NE(refused.field("retry-after"), "");
  EXPECT_EQ(asked(), 4U);
  gate_.open();
  EXPECT_THAT(first.until("0\r\n\r\n"), HasSubstr("0\r\n\r\n"));
  EXPECT_THAT(second.until("0\r\n\r\n"), HasSubstr("0\r\n\r\n"));
  ask_private(third, 4);
  EXPECT_THAT(third.until("0\r\n\r\n"), HasSubstr("X-FaceTheory-ISR: uncached\r\n"));
}

TEST_F(GatewayStreaming, AnAnswerForOneClientWaitsForAPlaceThatIsGivenBackSoon) {
  streams_ = 1;
  start([this](Peer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    peer.write("HTTP/1.1 200 OK\r\nCache-Control: private\r\n" + kChunked + "a\r\nfirst half\r\n");
    gate_.wait();
    peer.write("0\r\n\r\n");
  });
  RawClient first(port());
  RawClient second(port());
  first.send("GET /1 HTTP/1.1\r\nHost: site.test\r\n\r\n");
  first.until("first half");
  second.send("GET /2 HTTP/1.1\r\nHost: site.test\r\n\r\n");
  EXPECT_TRUE(
      origin_->wait_until([](const ScriptedServer& origin) { return origin.requests().size() == 2; }));
  gate_.open();
  EXPECT_THAT(second.until("0\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

// A socket takes some megabytes for whoever reads nothing.
TEST_F(GatewayStreaming, ClientsThatReadNothingOfLargePagesAreLetGoAndThePagesAreStored) {
  const std::string piece(1 << 20, 'x');
  start(
      [&piece](Peer& peer) {
        while (peer.read_request()) {
          peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 15728640\r\n\r\n" +
                     piece);
          std::this_thread::sleep_for(60ms);  // Longer than a whole page is waited for.
          for (int i = 1; i < 15; ++i)
            peer.write(piece);
        }
      },
      "memory = \"64 MiB\"\n");  // The limit is what one page may have: 16 MiB.
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: site.test\r\n\r\n");
  }
  // All are rendered to their ends; the pages may be asked for.
  for (int i = 0; i < 8; ++i) {
    RawClient again(port());
    again.send("HEAD /" + std::to_string(i) + " HTTP/1.1\r\nHost: site.test\r\n\r\n");
    EXPECT_THAT(again.until("\r\n\r\n"), HasSubstr("Content-Length: 15728640\r\n"));
  }
  int whole = 0;
  for (const auto& client : clients)
    whole += client->rest().size() >= std::size_t{15728640};
  EXPECT_LT(whole, 8);
  EXPECT_GT(whole, 0);
}

// If the origin tells its length: then that is known before any of it is sent.
TEST_F(GatewayStreaming, APageForWhichThereIsNoRoomSaysSoInItsHead) {
  start(
      [](Peer& peer) {
        while (peer.read_request()) {
          peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\npa");
          std::this_thread::sleep_for(60ms);  // Longer than a whole page is waited for.
          peer.write("ge");
        }
      },
      "pages = 1\n");
  // At once, so that eviction cannot make room in between.
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto send = [&](RawClient& client, std::size_t i) {
    client.send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: site.test\r\n\r\n");
  };
  for (std::size_t i = 0; i < 16; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    send(*clients.back(), i);
  }
  std::vector<std::size_t> without_room;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const Reply reply = read_reply(*clients[i]);
    EXPECT_EQ(reply.body, "page");
    if (reply.state() == "uncached") without_room.push_back(i);
  }
  EXPECT_EQ(asked(), 16U);
  ASSERT_FALSE(without_room.empty());
  for (const std::size_t i : without_room) {
    send(*clients[i], i);
    EXPECT_NE(read_reply(*clients[i]).state(), "hit") << i << " was stored, and said that it was not";
  }
}

TEST_F(GatewayStreaming, WhatTurnsOutToBeTooLargeForAPageIsSentWholeAndAskedForOnce) {
  const std::string piece(600, 'x');
  start(
      [&piece](Peer& peer) {
        while (peer.read_request()) {
          peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n" + kChunked);
          for (int i = 0; i < 5; ++i)
            peer.write("258\r\n" + piece + "\r\n");
          peer.write("0\r\n\r\n");
        }
      },
      "[limits]\npage_bytes = \"1 KiB\"\n");
  EXPECT_EQ(ask().body.size(), 5 * piece.size());
  EXPECT_EQ(asked(), 1U);
}

TEST_F(GatewayStreaming, AStoreThatHangsDoesNotKeepAPageFromWhoItWasRenderedFor) {
  ServiceOptions options;
  options.wrap_bodies = [](std::unique_ptr<BodyStore> bodies) {
    auto script = std::make_shared<FaultScript>();
    script->set_delay(6s);
    script->queue("write", Fault::delay);
    return std::make_unique<FaultyBodies>(std::move(bodies), std::move(script));
  };
  start(test::answer_in_turn({http_answer(200, "page")}), "", std::move(options));
  const Reply reply = ask();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "page");
  EXPECT_EQ(asked(), 1U);
}

TEST_F(GatewayStreaming, HeadAndPartsOfAPageThatIsNotStoredAreTheOrigins) {
  start([](Peer& peer) {
    while (const auto request = peer.read_request()) {
      const bool is_head = request->starts_with("HEAD");
      const bool part = request->find("Range: bytes=0-3") != std::string::npos;
      if (is_head) {
        peer.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nX-From: origin\r\n\r\n");
      } else if (part) {
        peer.write(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 4\r\n\r\npart");
      } else {
        peer.write(http_answer(200, "whole page"));
      }
    }
  });
  const Reply head = ask("HEAD");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.field("content-length"), "1000000");
  EXPECT_EQ(head.state(), "pass");
  const Reply part = ask("GET", "Range: bytes=0-3\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "part");
  EXPECT_EQ(ask().state(), "miss");
  // From now on the page has both.
  EXPECT_EQ(ask("GET", "Range: bytes=0-4\r\n").body, "whole");
  EXPECT_EQ(ask("HEAD").field("content-length"), "10");
  EXPECT_EQ(asked(), 3U);
}

TEST_F(GatewayStreaming, AVariantForOthersIsNotStreamed) {
  start([](Peer& peer) {
    while (const auto request = peer.read_request()) {
      const bool german = request->find("de\r\n") != std::string::npos;
      peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: Accept-Language\r\n" + kChunked);
      peer.write(german ? "6\r\nguten \r\n" : "5\r\ngood \r\n");
      std::this_thread::sleep_for(100ms);  // Longer than a whole page is waited for.
      peer.write("3\r\nTag\r\n0\r\n\r\n");
    }
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ask("GET", "Accept-Language: de\r\n").body, "guten Tag");
    EXPECT_EQ(ask("GET", "Accept-Language: en\r\n").body, "good Tag");
  }
}

// Nothing of it is stored, and so no variant can be looked for.
TEST_F(GatewayStreaming, AnAnswerForOneClientIsTheOneThatItsFieldsAskFor) {
  start(
      [](Peer& peer) {
        while (const auto request = peer.read_request()) {
          const bool german = request->find("Accept-Language: de\r\n") != std::string::npos;
          const bool is_private = request->find("/private") != std::string::npos;
          const std::string body =
              std::string(german ? "de" : "??") + std::string(is_private ? 0 : 2000, '.');
          peer.write("HTTP/1.1 200 OK\r\nVary: Accept-Language\r\nCache-Control: " +
                     std::string(is_private ? "private" : "max-age=60") +
                     "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
        }
      },
      "[limits]\npage_bytes = \"1 KiB\"\n");
  for (const char* path : {"/large", "/private"}) {
    for (int i = 0; i < 2; ++i) {
      RawClient client(port());
      client.send(std::string("GET ") + path + " HTTP/1.1\r\nHost: site.test\r\nAccept-Language: de\r\n\r\n");
      const Reply reply = read_reply(client);
      EXPECT_EQ(reply.body.substr(0, 2), "de") << path;
      EXPECT_EQ(reply.field("x-facetheory-variant"), "") << path;
    }
  }
}

TEST_F(GatewayStreaming, AClientThatLeavesDoesNotStopARenderAndEndsWhatWasForItAlone) {
  std::atomic<int> ended = 0;
  start([this, &ended](Peer& peer) {
    const auto request = peer.read_request();
    const bool is_private = request && request->find("/private") != std::string::npos;
    peer.write(std::string("HTTP/1.1 200 OK\r\n") +
               (is_private ? "Cache-Control: private\r\n" : "Cache-Control: max-age=60\r\n") + kChunked +
               "a\r\nfirst half\r\n");
    if (is_private) {
      peer.wait_for_close();
      ++ended;
      return;
    }
    gate_.wait();
    peer.write("c\r\n second half\r\n0\r\n\r\n");
  });
  {
    RawClient leaving(port());
    leaving.send("GET /private HTTP/1.1\r\nHost: site.test\r\n\r\n");
    leaving.until("first half");
    leaving.reset();
  }
  {
    RawClient leaving(port());
    leaving.send(asking("GET"));
    leaving.until("first half");
    leaving.reset();
  }
  gate_.open();
  EXPECT_TRUE(origin_->wait_until([&](const ScriptedServer&) { return ended == 1; }));
  const Reply next = ask();
  EXPECT_EQ(next.body, "first half second half");
  EXPECT_EQ(origin_->requests().size(), 2U);
}

}  // namespace
}  // namespace facetheory
