// What HTTP asks of an intermediary (RFC 9110, 7 and 9; RFC 9112, 3), through a whole gateway.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/http/field_values.h"
#include "facetheory/http/server_request.h"
#include "facetheory/service/service.h"
#include "facetheory/site/config.h"
#include "facetheory/site/read_config.h"

#include "tests/support/gateway_bed.h"
#include "tests/support/scripted_server.h"

namespace facetheory {
namespace {

using test::GatewayBed;
using test::RawClient;
using test::read_reply;
using test::Reply;
using testing::HasSubstr;

constexpr const char* kAllMethods = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE";

// --- OPTIONS and TRACE ------------------------------------------------------------------------------------------

TEST(GatewayOptions, OfTheServerAreAnsweredHere) {
  GatewayBed bed;
  RawClient client(bed.port());
  for (const char* target : {"*", "http://example.com", "HTTP://example.com:80"}) {
    client.send("OPTIONS " + std::string(target) + " HTTP/1.1\r\nHost: example.com\r\n\r\n");
    const Reply reply = read_reply(client, "OPTIONS");
    EXPECT_EQ(reply.status, 200) << target;
    EXPECT_EQ(reply.field("allow"), kAllMethods) << target;
    EXPECT_EQ(reply.field("content-length"), "0") << target;
    EXPECT_EQ(reply.field("connection"), "") << target;
    EXPECT_EQ(reply.state(), "own") << target;
  }
  EXPECT_EQ(bed.origin.count("*"), 0U);
  EXPECT_EQ(bed.origin.count("/"), 0U);
}

TEST(GatewayOptions, TheStarIsForOptionsAlone) {
  GatewayBed bed;
  for (const char* method : {"GET", "POST", "TRACE", "PRI"})
    EXPECT_EQ(bed.ask(method, "*").status, 400) << method;
}

TEST(GatewayOptions, OfAPathAreTheOrigins) {
  GatewayBed bed;
  bed.origin.answer("/a", 204, {{"Allow", "GET"}}, "");
  EXPECT_EQ(bed.ask("OPTIONS", "/a").field("allow"), "GET");
  EXPECT_FALSE(bed.origin.requests("/a").at(0).headers.get("max-forwards"));
  bed.ask("OPTIONS", "http://example.com/a");
  EXPECT_EQ(bed.origin.count("/a"), 2U);
}

TEST(GatewayOptions, ThatMayNotBePassedOnAreAnsweredHere) {
  GatewayBed bed;
  const Reply all = bed.ask("OPTIONS", "/all", {{"Max-Forwards", "0"}});
  EXPECT_EQ(all.status, 200);
  EXPECT_EQ(all.field("allow"), kAllMethods);
  EXPECT_EQ(bed.ask("OPTIONS", "*", {{"Max-Forwards", "0"}}).status, 200);
  EXPECT_EQ(bed.ask("OPTIONS", "/all", {{"Max-Forwards", "000"}}).state(), "own");
  EXPECT_EQ(bed.origin.count("/all"), 0U);
}

TEST(GatewayOptions, ArePassedOnOnceLessOften) {
  GatewayBed bed;
  for (const auto& [came, goes] : {std::pair("1", "0"), std::pair("07", "6"), std::pair("10", "9"),
                                   std::pair("99999999999999999999999", "999999")}) {
    bed.ask("OPTIONS", "/a", {{"Max-Forwards", came}});
    const ServerRequest seen = bed.origin.requests("/a").back();
    EXPECT_EQ(seen.headers.get("max-forwards"), goes) << came;
  }
  // Of other methods it means nothing.
  bed.ask("POST", "/b", {{"Max-Forwards", "0"}}, "x");
  EXPECT_EQ(bed.origin.requests("/b").at(0).headers.get("max-forwards"), "0");
}

TEST(GatewayOptions, WithoutOneNumberAreRefused) {
  GatewayBed bed;
  for (const char* value : {"", "x", "-1", "1, 2", "1.0"}) {
    const Reply reply = bed.ask("OPTIONS", "/a", {{"Max-Forwards", value}});
    EXPECT_EQ(reply.status, 400) << value;
    EXPECT_THAT(reply.body, HasSubstr("Max-Forwards")) << value;
  }
  EXPECT_EQ(bed.ask("OPTIONS", "/a", {{"Max-Forwards", "1"}, {"Max-Forwards", "1"}}).status, 400);
  EXPECT_EQ(bed.origin.count("/a"), 0U);
}

TEST(GatewayTrace, IsRefusedWithWhatIsAllowed) {
  GatewayBed bed;
  for (const char* hops : {"0", "5"}) {
    const Reply reply = bed.ask("TRACE", "/a", {{"Max-Forwards", hops}, {"Cookie", "session=secret"}});
    EXPECT_EQ(reply.status, 405);
    EXPECT_EQ(reply.field("allow"), kAllMethods);
    EXPECT_THAT(reply.body, testing::Not(HasSubstr("secret")));
  }
  EXPECT_EQ(bed.origin.count("/a"), 0U);
}

TEST(GatewayMethods, ThatNoRouteOfThePathTakesAreNotAllowed) {
  const auto service = *Service::start(
      *read_config("listen = \"127.0.0.1:0\"\nadmin = \"off\"\ntable = \"memory:\"\nbodies = \"memory:\"\n"
                   "access_log = \"off\"\n[origins.a]\nurl = \"http://127.0.0.1:1\"\n"
                   "[origins.b]\nurl = \"http://127.0.0.1:1\"\n"
                   "[[routes]]\npattern = \"/read\"\nmethods = [\"GET\", \"HEAD\"]\norigin = \"a\"\n",
                   "test.toml"));
  const auto ask = [&](const std::string& line) {
    RawClient client(service->listening().front().port);
    client.send(line + " HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n");
    return read_reply(client);
  };
  EXPECT_EQ(ask("DELETE /read").status, 405);
  EXPECT_EQ(ask("DELETE /read").field("allow"), "GET, HEAD");
  EXPECT_EQ(ask("OPTIONS /read").field("allow"), "GET, HEAD");
  EXPECT_EQ(ask("TRACE /read").field("allow"), "GET, HEAD");
  EXPECT_EQ(ask("GET /other").status, 404);
  EXPECT_EQ(ask("OPTIONS /other").status, 404);
  const Reply nothing = ask("TRACE /other");
  EXPECT_EQ(nothing.status, 405);
  EXPECT_TRUE(nothing.headers.get("allow"));  // Which may be empty (RFC 9110, 10.2.1).
}

// --- HTTP/1.0 ---------------------------------------------------------------------------------------------------

Reply ask_raw(std::uint16_t port, const std::string& line_and_fields) {
  RawClient client(port);
  client.send(line_and_fields + "\r\n");
  return read_reply(client);
}

TEST(GatewayHttp10, WithoutHostIsForTheAddressThatTheClientHasConnectedTo) {
  GatewayBed bed;
  const std::string address = "127.0.0.1:" + std::to_string(bed.port());
  for (int i = 0; i < 3; ++i) {
    const Reply reply = ask_raw(bed.port(), "GET /health HTTP/1.0\r\n");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "/health 1");
    EXPECT_EQ(reply.state(), i == 0 ? "miss" : "hit");
  }
  EXPECT_EQ(bed.origin.requests("/health").at(0).headers.get("host"), address);
  EXPECT_EQ(bed.get("/health", {{"Host", address}}).state(), "hit");
  EXPECT_EQ(bed.get("/health", {{"Host", "example.com"}}).body, "/health 2");
}

TEST(GatewayHttp10, WithoutHostIsForTheDefaultHost) {
  GatewayBed bed("default_host = \"Example.com\"\n");
  EXPECT_EQ(bed.get("/a").body, "/a 1");
  EXPECT_EQ(ask_raw(bed.port(), "GET /a HTTP/1.0\r\n").body, "/a 1");
  EXPECT_EQ(ask_raw(bed.port(), "POST /b HTTP/1.0\r\n").status, 200);
  EXPECT_EQ(bed.origin.requests("/b").at(0).headers.get("host"), "example.com");
  // A Host that is there counts, and one that is none is no invitation to guess.
  EXPECT_EQ(ask_raw(bed.port(), "GET /a HTTP/1.0\r\nHost: other\r\n").body, "/a 2");
  EXPECT_EQ(ask_raw(bed.port(), "GET /a HTTP/1.0\r\nHost:\r\n").status, 400);
  EXPECT_EQ(ask_raw(bed.port(), "GET /a HTTP/1.1\r\n").status, 400);
}

// Two listeners, one path: each address is a host of its own, also for answers that are kept ready.
TEST(GatewayHttp10, WithoutHostGetsNoPageOfAnotherAddress) {
  GatewayBed bed;
  Config config = bed.config("");
  config.listen = {{"127.0.0.1", 0}, {"127.0.0.1", 0}};
  config.threads = 1;
  const auto service = *Service::start(std::move(config));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask_raw(service->listening().at(0).port, "GET /a HTTP/1.0\r\n").body, "/a 1");
    EXPECT_EQ(ask_raw(service->listening().at(1).port, "GET /a HTTP/1.0\r\n").body, "/a 2");
  }
}

TEST(GatewayHttp10, ReachesNoOtherProtocol) {
  GatewayBed bed;
  const std::string wish = "Host: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
  const Reply page = ask_raw(bed.port(), "GET /a HTTP/1.0\r\n" + wish);
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.state(), "miss");
  ask_raw(bed.port(), "POST /b HTTP/1.0\r\n" + wish);
  EXPECT_FALSE(bed.origin.requests("/b").at(0).headers.get("upgrade"));
  ask_raw(bed.port(), "POST /c HTTP/1.1\r\n" + wish);
  EXPECT_EQ(bed.origin.requests("/c").at(0).headers.get("upgrade"), "websocket");
}

// --- Via --------------------------------------------------------------------------------------------------------

TEST(GatewayVia, TellsTheOriginInWhichVersionTheRequestCame) {
  GatewayBed bed;
  ask_raw(bed.port(), "POST /a HTTP/1.0\r\nHost: x\r\n");
  ask_raw(bed.port(), "POST /a HTTP/1.1\r\nHost: x\r\nVia: 1.0 fred\r\n");
  ask_raw(bed.port(), "GET /b HTTP/1.0\r\nHost: x\r\n");
  ask_raw(bed.port(), "GET /c HTTP/1.1\r\nHost: x\r\n");
  const auto told = [&](const char* path, std::size_t number) {
    return combined(bed.origin.requests(path).at(number).headers, "via").value_or("");
  };
  const std::string name = told("/a", 0).substr(4);
  EXPECT_THAT(name, testing::MatchesRegex("facetheory-[0-9a-f]{12}"));
  EXPECT_EQ(told("/a", 0), "1.0 " + name);
  EXPECT_EQ(told("/a", 1), "1.0 fred, 1.1 " + name);
  EXPECT_EQ(told("/b", 0), "1.0 " + name);
  EXPECT_EQ(told("/c", 0), "1.1 " + name);
}

TEST(GatewayVia, ARequestThatThisGatewayHasPassedOnIsALoop) {
  GatewayBed bed;
  GatewayBed another;
  for (GatewayBed* each : {&bed, &another})
    ask_raw(each->port(), "POST /a HTTP/1.1\r\nHost: x\r\n");
  const auto via = [](GatewayBed& of) {
    return std::string(*of.origin.requests("/a").at(0).headers.get("via"));
  };
  for (const std::string line : {"GET /b", "POST /b"}) {
    const Reply looped =
        ask_raw(bed.port(), line + " HTTP/1.1\r\nHost: x\r\nVia: 1.0 fred, " + via(bed) + " (a comment)\r\n");
    EXPECT_EQ(looped.status, 508);
    EXPECT_EQ(looped.field("cache-control"), "no-store");
    EXPECT_EQ(bed.origin.count("/b"), 0U);
  }
  // Gateways may stand behind one another.
  const std::string others = "Via: 1.1 facetheory, " + via(another) + "\r\n";
  EXPECT_EQ(ask_raw(bed.port(), "GET /b HTTP/1.1\r\nHost: x\r\n" + others).status, 200);
}

TEST(GatewayVia, AGatewayThatIsItsOwnOriginSaysSoAtOnce) {
  const std::uint16_t port = test::closed_port();
  Config config = test::bed_config(port, "");
  config.listen.front().port = port;
  const auto service = *Service::start(std::move(config));
  for (const std::string line : {"GET /a", "POST /a"}) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(ask_raw(port, line + " HTTP/1.1\r\nHost: x\r\n").status, 508) << line;
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2)) << line;
  }
}

TEST(GatewayVia, TellsTheClientInWhichVersionTheOriginAnswered) {
  for (const std::string version : {"1.0", "1.1"}) {
    test::ScriptedServer origin([&](test::Peer& peer) {
      while (const auto request = peer.read_request()) {
        const bool unstored = request->find("/unstored") != std::string::npos;
        peer.write("HTTP/" + version + " 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n" +
                   (unstored ? "Cache-Control: no-store\r\n" : "") + "\r\nok");
      }
    });
    const auto service = *Service::start(test::bed_config(origin.port(), ""));
    const auto via = [&](const std::string& line) {
      const Reply reply = ask_raw(service->listening().front().port, line + " HTTP/1.1\r\nHost: x\r\n");
      EXPECT_EQ(reply.headers.get("x-facetheory-received"), std::nullopt);
      return reply.field("via");
    };
    const std::string expected = version + " facetheory";
    EXPECT_EQ(via("POST /a"), expected);
    EXPECT_EQ(via("GET /a"), expected);  // A miss, and then a hit.
    EXPECT_EQ(via("GET /a"), expected);
    EXPECT_EQ(via("GET /unstored"), expected);
  }
}

// --- what the origin gets and says ------------------------------------------------------------------------------

TEST(GatewayUpgrade, ToAnotherProtocolThanWasAskedForIsABadAnswer) {
  test::ScriptedServer origin([](test::Peer& peer) {
    while (peer.read_request())
      peer.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nEVIL");
  });
  const auto service = *Service::start(test::bed_config(origin.port(), ""));
  for (const char* method : {"GET", "POST"}) {
    const Reply reply =
        ask_raw(service->listening().front().port, std::string(method) + " /socket HTTP/1.1\r\nHost: x\r\n" +
                                                       "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    EXPECT_EQ(reply.status, 502) << method;
    EXPECT_FALSE(reply.headers.get("upgrade")) << method;
  }
}

// CGI, WSGI and the like make HTTP_CONTENT_LENGTH of both.
TEST(GatewayPass, AnUnderscoreDoesNotLetFramingThrough) {
  GatewayBed bed;
  const Headers framing{
      {"Content_Length", "100"},        {"CONTENT_LENGTH", "100"}, {"Transfer_Encoding", "chunked"},
      {"Transfer_encoding", "chunked"}, {"Keep_Alive", "1"},       {"Proxy_Authorization", "x"},
      {"Content_Language", "kept"}};
  bed.ask("POST", "/a", framing, "hello");
  const ServerRequest seen = bed.origin.requests("/a").at(0);
  EXPECT_EQ(seen.body, "hello");
  EXPECT_EQ(seen.headers.get("content_language"), "kept");
  for (const char* name : {"content_length", "transfer_encoding", "keep_alive", "proxy_authorization"})
    EXPECT_FALSE(seen.headers.get(name)) << name;
}

TEST(GatewayPass, NobodySetsTheProxyOfACgiProgram) {
  GatewayBed bed("[defaults]\nforward = [\"*\"]\n");
  bed.ask("POST", "/a", {{"Proxy", "http://evil.example"}, {"Proxying", "kept"}}, "hello");
  bed.get("/a", {{"PROXY", "http://evil.example"}, {"Proxying", "kept"}});
  const auto requests = bed.origin.requests("/a");
  ASSERT_EQ(requests.size(), 2U);
  for (const ServerRequest& seen : requests) {
    EXPECT_FALSE(seen.headers.get("proxy")) << seen.method;
    EXPECT_EQ(seen.headers.get("proxying"), "kept") << seen.method;
  }
}

TEST(GatewayPages, AnUnderscoreLetsNothingIntoARenderThatIsOfOneRequest) {
  GatewayBed bed("[defaults]\nforward = [\"*\"]\n");
  bed.get("/a", {{"Content_Length", "100"},
                 {"Transfer_Encoding", "chunked"},
                 {"If_None_Match", "*"},
                 {"Accept_Encoding", "gzip"},
                 {"X_Tenant_Id", "other"},
                 {"X_Other", "kept"}});
  const ServerRequest seen = bed.origin.requests("/a").at(0);
  EXPECT_EQ(seen.headers.get("x_other"), "kept");
  for (const char* name :
       {"content_length", "transfer_encoding", "if_none_match", "accept_encoding", "x_tenant_id"})
    EXPECT_FALSE(seen.headers.get(name)) << name;
}

// --- unsafe requests --------------------------------------------------------------------------------------------

TEST(GatewayUnsafe, RequestsFromAnotherSitePurgeNothingUnlessTheRouteLetsThem) {
  GatewayBed bed(
      "[[routes]]\npattern = \"/default\"\n"
      "[[routes]]\npattern = \"/always\"\nunsafe_invalidates = \"always\"\n"
      "[[routes]]\npattern = \"/never\"\nunsafe_invalidates = \"never\"\n");
  const auto purged_by = [&](const std::string& path, Headers fields) {
    bed.get(path);
    EXPECT_EQ(bed.get(path).state(), "hit") << path;
    EXPECT_EQ(bed.ask("POST", path, std::move(fields), "x").status, 200) << path;
    return bed.get(path).state() == "miss";
  };
  const Headers browser{{"Sec-Fetch-Site", "same-origin"}, {"Origin", "https://example.com"}};
  const Headers elsewhere{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}};
  EXPECT_TRUE(purged_by("/default", {}));
  EXPECT_TRUE(purged_by("/default", browser));
  EXPECT_FALSE(purged_by("/default", elsewhere));
  EXPECT_FALSE(purged_by("/default", {{"Origin", "null"}}));
  EXPECT_TRUE(purged_by("/always", {}));
  EXPECT_TRUE(purged_by("/always", elsewhere));
  EXPECT_FALSE(purged_by("/never", {}));
  EXPECT_FALSE(purged_by("/never", browser));
}

// What counts is the route of the page, not that of the request.
TEST(GatewayUnsafe, RequestsPurgeWhatTheyNameElsewhereAsItsRouteSays) {
  GatewayBed bed(
      "[[routes]]\npattern = \"/never\"\nunsafe_invalidates = \"never\"\n"
      "[[routes]]\npattern = \"/page\"\n");
  for (const std::string target : {"/never", "/page"}) {
    bed.get(target);
    bed.origin.answer("/form" + target, 303, {{"Location", target}}, "");
    bed.ask("POST", "/form" + target, {}, "x");
  }
  EXPECT_EQ(bed.get("/never").state(), "hit");
  EXPECT_EQ(bed.get("/page").state(), "miss");
}

TEST(GatewayUnsafe, GroupsAreTheOriginsOwnWord) {
  GatewayBed bed("[[routes]]\npattern = \"/{page}\"\nunsafe_invalidates = \"never\"\n");
  bed.origin.answer("/a", 200, {{"Cache-Groups", "\"g\""}}, "page");
  bed.get("/a");
  ASSERT_EQ(bed.get("/a").state(), "hit");
  bed.origin.answer("/form", 200, {{"Cache-Group-Invalidation", "\"g\""}}, "done");
  bed.ask("POST", "/form", {{"Sec-Fetch-Site", "cross-site"}}, "x");
  EXPECT_EQ(bed.get("/a").state(), "miss");
}

TEST(GatewayUnsafe, AFloodPurgesAPageOnceASecond) {
  GatewayBed bed;
  int purged = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(bed.ask("POST", "/a", {}, "x").status, 200);
    if (bed.get("/a").state() == "miss") ++purged;
  }
  EXPECT_EQ(purged, 20);
  // The last of them counts, too, a second later.
  const auto miss_comes = [&] {
    for (int i = 0; i < 5'000; ++i) {
      if (bed.get("/a").state() == "miss") return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  };
  EXPECT_EQ(bed.get("/a").state(), "hit");
  bed.clock.advance(std::chrono::seconds(1));
  EXPECT_TRUE(miss_comes());
  EXPECT_EQ(bed.get("/a").state(), "hit");
  // Other pages have nothing to do with it.
  bed.get("/b");
  bed.ask("POST", "/b", {}, "x");
  EXPECT_EQ(bed.get("/b").state(), "miss");
}

}  // namespace
}  // namespace facetheory
