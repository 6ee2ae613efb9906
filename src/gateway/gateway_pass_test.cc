// What is passed on, through a whole gateway: bodies, trailers, interim answers, other protocols, origins that fail.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/clock.h"
#include "facetheory/http/server_request.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/http_server.h"
#include "facetheory/server/server_exchange.h"

#include "tests/support/gateway_bed.h"
#include "tests/support/run.h"
#include "tests/support/scripted_server.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::GatewayBed;
using test::Peer;
using test::RawClient;
using test::read_reply;
using test::Reply;
using test::ScriptedServer;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

// An origin that answers in pieces, and a gateway in front of it.
class StreamingBed {
 public:
  explicit StreamingBed(ExchangeHandler handler, const std::string& lines = "") {
    server_ = std::make_unique<HttpServer>(std::vector<EventLoop>{{test::executor(), std::move(handler)}});
    const std::uint16_t port = *server_->listen("127.0.0.1", 0);
    service_ = *Service::start(test::bed_config(port, lines));
  }
  ~StreamingBed() {
    service_->stop();
    test::run(server_->drain(2s));
  }
  std::uint16_t port() const { return service_->listening().front().port; }

 private:
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Service> service_;
};

TEST(GatewayPass, MethodsOtherThanGetReachTheOriginWithTheirBody) {
  GatewayBed bed;
  bed.origin.answer("/form", [](const ServerRequest& request) {
    return test::answer_of(201, {{"X-Seen", request.method}}, "got " + request.body);
  });
  const Reply reply = bed.ask("POST", "/form", {{"Content-Type", "text/plain"}}, "hello");
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.body, "got hello");
  EXPECT_EQ(reply.field("x-seen"), "POST");
  EXPECT_EQ(reply.state(), "pass");
  EXPECT_EQ(reply.field("cache-status"), "facetheory; fwd=method");
  EXPECT_THAT(reply.field("via"), HasSubstr("facetheory"));
  const ServerRequest seen = bed.origin.requests("/form").at(0);
  EXPECT_EQ(seen.headers.get("x-forwarded-for"), "127.0.0.1");
  EXPECT_EQ(seen.headers.get("host"), "example.com");
}

TEST(GatewayPass, RequestsWithACookieNobodySpokeOfArePassedOnWhole) {
  GatewayBed bed;
  EXPECT_EQ(bed.get("/a", {{"Cookie", "session=1"}, {"X-Any", "thing"}}).state(), "pass");
  const ServerRequest seen = bed.origin.requests("/a").at(0);
  EXPECT_EQ(seen.headers.get("cookie"), "session=1");
  EXPECT_EQ(seen.headers.get("x-any"), "thing");
  EXPECT_EQ(bed.get("/a").state(), "miss");
}

TEST(GatewayPass, AStrangersForwardedFieldsDoNotReachTheOrigin) {
  GatewayBed bed;
  bed.ask("POST", "/a",
          {{"X-Forwarded-For", "6.6.6.6"}, {"X-Forwarded-Proto", "https"}, {"Forwarded", "for=x"}}, "b");
  const ServerRequest seen = bed.origin.requests("/a").at(0);
  EXPECT_EQ(seen.headers.get("x-forwarded-for"), "127.0.0.1");
  EXPECT_EQ(seen.headers.get("x-forwarded-proto"), "http");
  EXPECT_FALSE(seen.headers.get("forwarded"));
  GatewayBed behind("trusted_peers = [\"127.0.0.1\"]\n");
  behind.ask("POST", "/a", {{"X-Forwarded-For", "1.2.3.4"}, {"X-Forwarded-Proto", "https"}}, "b");
  const ServerRequest told = behind.origin.requests("/a").at(0);
  EXPECT_EQ(told.headers.get("x-forwarded-for"), "1.2.3.4, 127.0.0.1");
  EXPECT_EQ(told.headers.get("x-forwarded-proto"), "https");
}

TEST(GatewayPass, AnUnderscoreDoesNotLetForwardedFieldsThrough) {
  GatewayBed bed;
  bed.ask("POST", "/a",
          {{"X_Forwarded_For", "6.6.6.6"},
           {"X_FORWARDED-HOST", "evil"},
           {"X_Tenant_Id", "other"},
           {"X_FaceTheory_Tenant", "other"},
           {"X_Other", "kept"}},
          "b");
  const ServerRequest seen = bed.origin.requests("/a").at(0);
  EXPECT_FALSE(seen.headers.get("x_forwarded_for"));
  EXPECT_FALSE(seen.headers.get("x_forwarded-host"));
  EXPECT_FALSE(seen.headers.get("x_tenant_id"));
  EXPECT_FALSE(seen.headers.get("x_facetheory_tenant"));
  EXPECT_EQ(seen.headers.get("x_other"), "kept");
}

TEST(GatewayPass, WhatARefusedClientHasSentBesideIsNotLookedAt) {
  GatewayBed bed;
  for (const char* refused :
       {"CONNECT example.com:443 HTTP/1.1", "GET /a/../b HTTP/1.1", "TRACE / HTTP/1.1"}) {
    RawClient client(bed.port());
    client.send(std::string(refused) + "\r\nHost: x\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
    const Reply reply = read_reply(client);
    EXPECT_GE(reply.status, 400) << refused;
    EXPECT_EQ(reply.field("connection"), "close") << refused;
    EXPECT_EQ(client.rest(), "") << refused;
  }
  EXPECT_EQ(bed.origin.count("/smuggled"), 0U);
}

TEST(GatewayPass, AnAnswerLargerThanAPageMayBeIsPassedOn) {
  GatewayBed bed("[limits]\npage_bytes = \"1 KiB\"\n");
  bed.origin.answer("/big", 200, {{"Content-Type", "text/plain"}}, std::string(5000, 'x'));
  for (const char* state :
       {"uncached", "pass"}) {  // What was begun as a render, and what is known to be none.
    const Reply reply = bed.get("/big");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body.size(), 5000U);
    EXPECT_EQ(reply.state(), state);
  }
  EXPECT_EQ(bed.origin.count("/big"), 2U);
}

TEST(GatewayPass, BodiesOfAnySizeStreamBothWays) {
  // Answers with each piece as it comes.
  const ExchangeHandler echo = [](ServerExchange& exchange) -> Task<void> {
    [[maybe_unused]] auto begun = co_await exchange.begin(200, {}, std::nullopt);
    for (;;) {
      auto piece = co_await exchange.read();
      if (!piece || piece->empty()) break;
      [[maybe_unused]] auto written = co_await exchange.write(*piece);
    }
    [[maybe_unused]] auto finished = co_await exchange.finish({});
  };
  StreamingBed bed(echo);
  RawClient client(bed.port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
  EXPECT_THAT(client.until("first"), HasSubstr("200 OK"));  // Before the request has ended.
  client.send("6\r\nsecond\r\n");
  EXPECT_THAT(client.until("second"), HasSubstr("second"));
  std::thread sender([&] {
    const std::string chunk(100'000, 'z');
    for (int i = 0; i < 50; ++i)
      client.send("186a0\r\n" + chunk + "\r\n");
    client.send("0\r\n\r\n");
  });
  const std::string rest = client.until("\r\n0\r\n\r\n");
  sender.join();
  EXPECT_EQ(std::count(rest.begin(), rest.end(), 'z'), 5'000'000);
}

TEST(GatewayPass, TrailersAndInterimAnswersArePassedOn) {
  const ExchangeHandler handler = [](ServerExchange& exchange) -> Task<void> {
    Headers hints{{"Link", "</a.css>"}};
    [[maybe_unused]] auto hinted = co_await exchange.interim(103, std::move(hints));
    for (;;) {
      auto piece = co_await exchange.read();
      if (!piece || piece->empty()) break;
    }
    Headers seen{{"X-Request-Trailer", std::string(exchange.trailers().get("x-sum").value_or("none"))}};
    [[maybe_unused]] auto begun = co_await exchange.begin(200, std::move(seen), std::nullopt);
    [[maybe_unused]] auto written = co_await exchange.write("body");
    Headers trailers{{"X-Check", "42"}};
    [[maybe_unused]] auto finished = co_await exchange.finish(std::move(trailers));
  };
  StreamingBed bed(handler);
  RawClient client(bed.port());
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: TE\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n");
  const Reply hints = read_reply(client);
  EXPECT_EQ(hints.status, 103);
  EXPECT_EQ(hints.field("link"), "</a.css>");
  const Reply reply = read_reply(client);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "body");
  EXPECT_EQ(reply.field("x-request-trailer"), "7");
  EXPECT_EQ(reply.field("trailer:X-Check"), "42");
}

TEST(GatewayPass, ATrailerDoesNotSayWhatAFieldMayNot) {
  const ExchangeHandler handler = [](ServerExchange& exchange) -> Task<void> {
    for (;;) {
      auto piece = co_await exchange.read();
      if (!piece || piece->empty()) break;
    }
    std::string names;
    for (const Headers::Field& field : exchange.trailers())
      names += field.name + " ";
    ServerResponse response = plain_response(200, names);
    [[maybe_unused]] auto sent = co_await exchange.respond(std::move(response));
  };
  StreamingBed bed(handler);
  RawClient client(bed.port());
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\n"
      "x_real_ip: 6.6.6.6\r\nX-Tenant-Id: other\r\nx-facetheory-tenant: other\r\nCookie: a=b\r\nX-Sum: "
      "7\r\n\r\n");
  EXPECT_EQ(read_reply(client).body, "X-Sum \n");
}

TEST(GatewayPass, TheOriginDecidesWhetherABodyIsWorthSending) {
  const ExchangeHandler handler = [](ServerExchange& exchange) -> Task<void> {
    std::string text = "refused";
    if (exchange.request().target == "/yes") {
      text = "read ";
      for (;;) {
        auto piece = co_await exchange.read();
        if (!piece || piece->empty()) break;
        text += *piece;
      }
    }
    ServerResponse response = plain_response(exchange.request().target == "/yes" ? 200 : 403, text);
    [[maybe_unused]] auto sent = co_await exchange.respond(std::move(response));
  };
  StreamingBed bed(handler);
  const std::string head = " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  RawClient yes(bed.port());
  yes.send("PUT /yes" + head);
  EXPECT_EQ(read_reply(yes).status, 100);
  yes.send("hello");
  EXPECT_EQ(read_reply(yes).body, "read hello\n");
  RawClient no(bed.port());
  no.send("PUT /no" + head);
  EXPECT_EQ(read_reply(no).status, 403);
  EXPECT_EQ(no.rest(), "");
}

TEST(GatewayPass, AnotherProtocolTakesTheConnectionOver) {
  const ExchangeHandler handler = [](ServerExchange& exchange) -> Task<void> {
    Headers headers{{"Connection", "Upgrade"},
                    {"Upgrade", std::string(exchange.request().headers.get("upgrade").value_or("?"))}};
    [[maybe_unused]] auto switched = co_await exchange.switch_protocols(std::move(headers));
    for (;;) {
      auto piece = co_await exchange.read();
      if (!piece || piece->empty()) break;
      const std::string answer = "<" + std::string(*piece) + ">";
      [[maybe_unused]] auto written = co_await exchange.write(answer);
    }
    exchange.shut_down_sending();
  };
  StreamingBed bed(handler);
  RawClient client(bed.port());
  client.send("GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  const std::string head = client.until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 101"));
  EXPECT_THAT(head, HasSubstr("Upgrade: websocket"));
  client.send("one");
  EXPECT_EQ(client.exactly(5), "<one>");
  client.send("two");
  EXPECT_EQ(client.exactly(5), "<two>");
  client.shut_down_sending();
  EXPECT_EQ(client.rest(), "");
}

TEST(GatewayPass, AnOriginThatBreaksOffCutsTheAnswerOff) {
  const ExchangeHandler handler = [](ServerExchange& exchange) -> Task<void> {
    [[maybe_unused]] auto begun = co_await exchange.begin(200, {}, std::nullopt);
    [[maybe_unused]] auto written = co_await exchange.write("half");
  };
  StreamingBed bed(handler);
  RawClient client(bed.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  const std::string answer = client.rest();
  EXPECT_THAT(answer, HasSubstr("half"));
  EXPECT_THAT(answer, Not(HasSubstr("\r\n0\r\n")));
}

TEST(GatewayPass, NotModifiedGoesOnlyToWhoAskedWhetherItWas) {
  GatewayBed bed;
  bed.origin.answer("/a", 304, {}, "");
  EXPECT_EQ(bed.get("/a", {{"Cookie", "session=1"}}).status, 502);
  EXPECT_EQ(bed.get("/a", {{"Cookie", "session=1"}, {"If-None-Match", "\"1\""}}).status, 304);
}

TEST(GatewayPass, AnOriginThatIsNotThereIsABadGateway) {
  auto service = *Service::start(test::bed_config(1, ""));
  RawClient client(service->listening().front().port);
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(read_reply(client).status, 502);
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(read_reply(client).status, 502);
}

TEST(GatewayPass, AClientThatSendsNoMoreStillGetsItsAnswer) {
  GatewayBed bed;
  const std::string requests[] = {
      "GET /a HTTP/1.1\r\nHost: x\r\nCookie: session=1\r\n\r\n",
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
  };
  for (const std::string& request : requests) {
    const std::size_t before = bed.origin.count("/a");
    bed.origin.hold("/a");
    RawClient client(bed.port());
    client.send(request);
    client.shut_down_sending();
    ASSERT_TRUE(bed.origin.wait_for("/a", before + 1));
    bed.origin.let_go("/a");
    const Reply reply = read_reply(client);
    EXPECT_EQ(reply.status, 200) << request;
    EXPECT_THAT(reply.body, StartsWith("/a ")) << request;
  }
}

TEST(GatewayPass, ADownloadGoesOnWhenTheClientSendsNoMore) {
  std::atomic<bool> go_on = false;
  const ExchangeHandler handler = [&go_on](ServerExchange& exchange) -> Task<void> {
    [[maybe_unused]] auto begun = co_await exchange.begin(200, {}, std::nullopt);
    [[maybe_unused]] auto written = co_await exchange.write("first");
    while (!go_on)
      co_await system_clock().sleep_for(2ms);
    for (int i = 0; i < 20; ++i) {
      co_await system_clock().sleep_for(1ms);
      [[maybe_unused]] auto more = co_await exchange.write("more");
    }
    [[maybe_unused]] auto finished = co_await exchange.finish({});
  };
  StreamingBed bed(handler, "[defaults]\ncache = false\n");
  RawClient client(bed.port());
  client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.until("first"), HasSubstr("200 OK"));
  client.shut_down_sending();
  go_on = true;
  EXPECT_THAT(client.rest(), EndsWith("more\r\n0\r\n\r\n"));
}

// The origin is silent: nothing is written to the client, by which it could be noticed.
TEST(GatewayPass, ABrokenConnectionEndsTheOriginsOne) {
  std::atomic<bool> closed = false;
  ScriptedServer origin([&closed](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n");
    if (peer.wait_for_close()) closed = true;
  });
  auto service = *Service::start(test::bed_config(origin.port(), "[defaults]\ncache = false\n"));
  RawClient client(service->listening().front().port);
  client.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.until("event"), HasSubstr("event"));
  client.reset();
  EXPECT_TRUE(origin.wait_until([](const ScriptedServer& server) { return server.open_connections() == 0; }));
  EXPECT_TRUE(closed);
}

TEST(GatewayPass, AConnectionThatBreaksBeforeTheAnswerEndsTheOriginsOne) {
  ScriptedServer origin([](Peer& peer) {
    peer.read_request();
    peer.wait_for_close();
  });
  auto service = *Service::start(test::bed_config(origin.port(), "[defaults]\ncache = false\n"));
  RawClient client(service->listening().front().port);
  client.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(origin.wait_until([](const ScriptedServer& server) { return server.connections() == 1; }));
  client.reset();
  EXPECT_TRUE(origin.wait_until([](const ScriptedServer& server) { return server.open_connections() == 0; }));
}

TEST(GatewayPass, AClientThatLeavesEndsTheOriginsConnectionWithTheNextEvents) {
  std::atomic<bool> closed = false;
  ScriptedServer origin([&closed](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 2500 && !closed; ++i) {
      closed = !peer.write("5\r\nevent\r\n");
      std::this_thread::sleep_for(2ms);
    }
  });
  auto service = *Service::start(test::bed_config(origin.port(), "[defaults]\ncache = false\n"));
  {
    RawClient client(service->listening().front().port);
    client.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(client.until("event"), HasSubstr("event"));
  }
  EXPECT_TRUE(origin.wait_until([](const ScriptedServer& server) { return server.open_connections() == 0; }));
  EXPECT_TRUE(closed);
}

// Whether the page, which was a hit, is rendered again within five seconds.
bool is_made_anew(std::uint16_t port, const std::string& path) {
  for (int i = 0; i < 1000; ++i) {
    RawClient client(port);
    client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    if (read_reply(client).state() == "miss") return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

TEST(GatewayPass, WhatAClientChangedBeforeItLeftIsNotServedAsItWas) {
  for (const bool broken : {true, false}) {
    GatewayBed bed;
    bed.get("/a", {{"Host", "x"}});
    ASSERT_EQ(bed.get("/a", {{"Host", "x"}}).state(), "hit");
    bed.origin.hold("/a");
    {
      RawClient client(bed.port());
      client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
      ASSERT_TRUE(bed.origin.wait_for("/a", 2));
      if (broken) client.reset();
    }
    EXPECT_EQ(bed.get("/a", {{"Host", "x"}}).state(), "hit") << "nothing has changed yet";
    bed.origin.let_go("/a");
    EXPECT_TRUE(is_made_anew(bed.port(), "/a")) << broken;
  }
}

// An origin with pages, that does to a POST what a test says.
ScriptedServer::Script pages_and(std::function<void(Peer&)> post) {
  return [post = std::move(post)](Peer& peer) {
    while (const auto request = peer.read_request()) {
      if (request->starts_with("POST")) return post(peer);
      peer.write(test::http_answer(200, "page", "Cache-Control: max-age=1000\r\n"));
    }
  };
}

TEST(GatewayPass, WhatNobodyKnowsToHaveFailedInvalidatesThePage) {
  ScriptedServer origin(pages_and([](Peer&) {}));
  auto service = *Service::start(test::bed_config(origin.port(), ""));
  const std::uint16_t port = service->listening().front().port;
  const auto get = [&] {
    RawClient client(port);
    client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    return read_reply(client).state();
  };
  EXPECT_EQ(get(), "miss");
  EXPECT_EQ(get(), "hit");
  RawClient client(port);
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(read_reply(client).status, 502);
  EXPECT_EQ(get(), "miss");
}

TEST(GatewayPass, WhatCertainlyFailedInvalidatesNothing) {
  ScriptedServer origin(
      pages_and([](Peer& peer) { peer.write(test::http_answer(500, "no", "Connection: close\r\n")); }));
  auto service = *Service::start(test::bed_config(origin.port(), ""));
  const std::uint16_t port = service->listening().front().port;
  RawClient client(port);
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(read_reply(client).state(), "miss");
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(read_reply(client).status, 500);
  // A request that the origin never got whole.
  RawClient leaves(port);
  leaves.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhi");
  leaves.shut_down_sending();
  EXPECT_EQ(leaves.rest(), "");
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(read_reply(client).state(), "hit");
}

// An interim answer shows that the client is gone, and its connection is closed with all that goes on for it.
TEST(GatewayPass, WhatAClientChangedIsNotServedAsItWasAlsoWhenItsConnectionIsClosed) {
  std::atomic<bool> gone = false;
  ScriptedServer origin(pages_and([&gone](Peer& peer) {
    for (int i = 0; i < 5000 && !gone; ++i)
      std::this_thread::sleep_for(2ms);
    for (int i = 0; i < 5; ++i)
      peer.write("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
    peer.wait_for_close();
  }));
  auto service = *Service::start(test::bed_config(origin.port(), ""));
  const std::uint16_t port = service->listening().front().port;
  for (const char* state : {"miss", "hit"}) {
    RawClient client(port);
    client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(read_reply(client).state(), state);
  }
  RawClient client(port);
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
  ASSERT_TRUE(origin.wait_until([](const ScriptedServer& server) { return server.requests().size() == 2; }));
  client.reset();
  gone = true;
  EXPECT_TRUE(is_made_anew(port, "/a"));
}

// An origin whose answer begins with these fields and some bytes, and does not end before the client leaves.
ScriptedServer::Script endless(const std::string& fields) {
  return [fields](Peer& peer) {
    while (peer.read_request()) {
      if (!peer.write("HTTP/1.1 200 OK\r\n" + fields + "Transfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n"))
        return;
      peer.wait_for_close();
      return;
    }
  };
}

TEST(GatewayPass, AStreamThatIsNotToBeStoredBeginsAtOnce) {
  for (const char* fields :
       {"Content-Type: text/event-stream\r\n", "Cache-Control: no-store\r\n",
        "Cache-Control: max-age=60\r\nContent-Type: text/event-stream; charset=utf-8\r\n"}) {
    ScriptedServer origin(endless(fields));
    auto service = *Service::start(test::bed_config(origin.port(), "[defaults]\nrevalidate = \"60s\"\n"));
    for (const std::size_t asked : {1U, 2U}) {  // Once for each client.
      RawClient client(service->listening().front().port);
      client.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
      const std::string came = client.until("event\r\n");
      EXPECT_THAT(came, EndsWith("event\r\n")) << fields;
      EXPECT_THAT(came, HasSubstr(asked == 1 ? "X-FaceTheory-ISR: uncached" : "X-FaceTheory-ISR: pass"))
          << fields;
      EXPECT_THAT(origin.requests(), SizeIs(asked)) << fields;
      client.reset();
    }
  }
}

TEST(GatewayPass, WhoAcceptsNothingButEventsIsNoReaderOfPages) {
  GatewayBed bed;
  for (const char* state : {"miss", "hit", "hit"})
    EXPECT_EQ(bed.get("/a", {{"Accept", "text/html"}}).state(), state);
  EXPECT_EQ(bed.get("/a", {{"Accept", "text/event-stream"}}).state(), "pass");
  EXPECT_EQ(bed.get("/a", {{"Accept", "text/event-stream;q=1"}}).state(), "pass");
  EXPECT_EQ(bed.get("/a", {{"Accept", "text/event-stream, text/html"}}).state(), "hit");
  EXPECT_EQ(bed.get("/a", {{"Accept", "text/html"}}).state(), "hit");
}

TEST(GatewayPass, WhatIsNotToBeStoredAndSoonEndsIsAskedForOnce) {
  GatewayBed bed;
  bed.origin.answer("/a", 200, {{"Cache-Control", "no-store"}}, "mine");
  const Reply reply = bed.get("/a");
  EXPECT_EQ(reply.body, "mine");
  EXPECT_EQ(reply.state(), "uncached");
  EXPECT_EQ(bed.origin.count("/a"), 1U);
}

// A gateway that may have one connection to that origin, which it stores nothing of.
Config one_connection(const ScriptedServer& origin) {
  Config config = test::bed_config(origin.port(), "[defaults]\ncache = false\n");
  config.threads = 1;
  config.origins.at("default").connections = 1;
  config.origins.at("default").connect_timeout = 100ms;
  return config;
}

TEST(GatewayPass, WhoFindsNoConnectionToTheOriginFreeIsToldToComeAgain) {
  ScriptedServer origin(endless("Content-Type: text/event-stream\r\n"));
  auto service = *Service::start(one_connection(origin));
  RawClient stream(service->listening().front().port);
  stream.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(stream.until("event"), HasSubstr("event"));
  RawClient client(service->listening().front().port);
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  const Reply refused = read_reply(client);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.field("retry-after"), "1");
  EXPECT_THAT(origin.requests(), SizeIs(1));
  stream.reset();  // Or the gateway would give it time to end.
}

TEST(GatewayPass, WhoLeavesWhileItWaitsForItsTurnIsNotAskedFor) {
  std::atomic<bool> end = false;
  ScriptedServer origin([&end](Peer& peer) {
    while (peer.read_request()) {
      for (int i = 0; i < 2500 && !end; ++i)
        std::this_thread::sleep_for(2ms);
      peer.write(test::http_answer(200, "page"));
    }
  });
  Config config = one_connection(origin);
  config.origins.at("default").connect_timeout = 10s;
  auto service = *Service::start(std::move(config));
  const std::uint16_t port = service->listening().front().port;
  RawClient first(port);
  first.send("GET /first HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(origin.wait_until([](const ScriptedServer& server) { return server.requests().size() == 1; }));
  RawClient leaves(port);
  leaves.send("GET /leaves HTTP/1.1\r\nHost: x\r\n\r\n");
  // Each is answered after what the loop has read before it.
  const auto round = [&] {
    RawClient client(port);
    client.send("GET /a/../b HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(read_reply(client).status, 400);
  };
  round();
  leaves.reset();
  round();
  end = true;
  EXPECT_EQ(read_reply(first).body, "page");
  RawClient last(port);
  last.send("GET /last HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(read_reply(last).body, "page");
  EXPECT_THAT(origin.requests(), ElementsAre(StartsWith("GET /first "), StartsWith("GET /last ")));
}

}  // namespace
}  // namespace facetheory
