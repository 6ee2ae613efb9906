// Hits that are answered at once are those that the long way would have given.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/bodies/measured_bodies.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/table/open_table.h"

#include "tests/support/gateway_bed.h"
#include "tests/support/run.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::answer_of;
using test::GatewayBed;
using test::RawClient;
using test::read_reply;
using test::Reply;
using testing::HasSubstr;

// The second hit is the first that need not go the long way.
Reply warmed(GatewayBed& bed, const std::string& target, const Headers& headers = {}) {
  bed.get(target, headers);
  bed.get(target, headers);
  return bed.get(target, headers);
}

TEST(WarmPages, SayTheSameAsTheLongWay) {
  GatewayBed bed;
  bed.origin.answer("/a", 200, {{"Content-Type", "text/html"}, {"X-B", "c"}, {"ETag", "\"v\""}},
                    std::string(900, 'x'));
  for (const Headers& headers :
       {Headers{}, Headers{{"Accept-Encoding", "br"}}, Headers{{"User-Agent", "x"}}}) {
    bed.get("/a", headers);
    bed.clock.advance(3s);
    Headers slow = headers;
    slow.add("TE", "trailers");  // Ignored, and for the long way.
    const Reply long_way = bed.get("/a", slow);
    bed.get("/a", headers);
    const Reply warm = bed.get("/a", headers);
    EXPECT_EQ(warm.status, long_way.status);
    EXPECT_EQ(warm.body, long_way.body);
    for (const Headers::Field& field : long_way.headers)
      EXPECT_EQ(warm.field(field.name), field.value) << field.name;
  }
}

TEST(WarmPages, AgeGoesOnAndTheWindowEnds) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\n");
  EXPECT_EQ(warmed(bed, "/a").state(), "hit");
  bed.clock.advance(9s);
  const Reply old = bed.get("/a");
  EXPECT_EQ(old.state(), "hit");
  EXPECT_EQ(old.field("age"), "9");
  EXPECT_EQ(old.field("cache-status"), "facetheory; hit; ttl=1");
  bed.clock.advance(1s);
  EXPECT_EQ(bed.get("/a").state(), "stale");
}

// On one connection, and so on one of the loops.
class OneClient {
 public:
  explicit OneClient(const GatewayBed& bed) : client_(bed.port()) {}

  Reply ask(const std::string& fields = "", const std::string& method = "GET") {
    client_.send(method + " /a HTTP/1.1\r\nHost: example.com\r\n" + fields + "\r\n");
    return read_reply(client_, method);
  }
  // The second hit is the first that need not go the long way.
  void warm() {
    for (int i = 0; i < 3; ++i)
      ask();
  }

 private:
  RawClient client_;
};

// A page that was answered at once, and whose window has ended two seconds ago.
struct ExpiredPage {
  ExpiredPage() {
    client.warm();
    bed.clock.advance(12s);
  }
  GatewayBed bed{"[defaults]\nrevalidate = \"10s\"\n"};
  OneClient client{bed};
};

// A gateway, and somebody else who writes to its table.
struct SharedTable {
  explicit SharedTable(const std::string& settings = "")
      : bed(settings, {}, "table = \"" + uri + "\"\n"),
        table(*open_table(uri, test::executor())),
        bodies(*open_bodies("memory:", test::executor())) {}

  const test::TemporaryDirectory folder;
  const std::string uri = "lmdb:" + folder.path().string();
  GatewayBed bed;
  const std::unique_ptr<Table> table;
  const std::unique_ptr<BodyStore> bodies;
  const Isr others{*table, *bodies, bed.clock};
};

TEST(WarmPages, AStalePageIsServedAtOnceUntilItIsRendered) {
  ExpiredPage page;
  auto& [bed, client] = page;
  bed.origin.hold("/a");
  const Reply first = client.ask();
  EXPECT_EQ(first.state(), "stale");
  ASSERT_TRUE(bed.origin.wait_for("/a", 2));
  for (int i = 0; i < 5; ++i) {
    const Reply again = client.ask();
    EXPECT_EQ(again.body, "/a 1");
    for (const Headers::Field& field : first.headers)
      EXPECT_EQ(again.field(field.name), field.value) << field.name;
  }
  bed.clock.advance(1s);
  EXPECT_EQ(client.ask().field("age"), "13");
  EXPECT_EQ(client.ask().field("cache-status"), "facetheory; hit; ttl=-3");
  EXPECT_LE(bed.service->counters().stale, 1U);  // One is for whoever has it rendered.
  bed.origin.let_go("/a");
  for (int i = 0; i < 1000 && client.ask().state() == "stale"; ++i)
    std::this_thread::sleep_for(2ms);
  EXPECT_EQ(client.ask().body, "/a 2");
}

TEST(WarmPages, OneThatWasStaleWhenItWasFirstSeenIsServedAtOnceToo) {
  ExpiredPage page;
  auto& [bed, client] = page;
  bed.origin.hold("/a");
  const std::string other = "Accept-Encoding: identity\r\n";
  client.ask(other);
  ASSERT_TRUE(bed.origin.wait_for("/a", 2));
  client.ask(other);  // The lease was written meanwhile, which may have kept the first from being remembered.
  const std::uint64_t looked = bed.service->counters().stale;
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(client.ask(other).state(), "stale");
  EXPECT_EQ(bed.service->counters().stale, looked);
  for (int i = 3; i < 10; ++i) {
    bed.clock.advance(1s);
    EXPECT_EQ(client.ask(other).field("age"), std::to_string(10 + i));
    const Reply stale = client.ask(other);
    EXPECT_EQ(stale.state(), "stale");
    EXPECT_EQ(stale.field("cache-status"), "facetheory; hit; ttl=-" + std::to_string(i));
  }
  EXPECT_LE(bed.service->counters().stale, looked + 1);  // One is for whoever has it rendered.
  bed.origin.let_go("/a");
  for (int i = 0; i < 1000 && client.ask(other).state() == "stale"; ++i)
    std::this_thread::sleep_for(2ms);
  EXPECT_EQ(client.ask(other).body, "/a 2");
}

TEST(WarmPages, OneThatMayNotBeServedAsStaleAnyLongerIsNot) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\nstale_for = \"5s\"\n");
  OneClient client(bed);
  client.warm();
  bed.clock.advance(13s);
  bed.origin.hold("/a");
  const std::string other = "Accept-Encoding: identity\r\n";
  EXPECT_EQ(client.ask(other).state(), "stale");
  ASSERT_TRUE(bed.origin.wait_for("/a", 2));
  EXPECT_EQ(client.ask(other).state(), "stale");
  bed.clock.advance(1s);
  EXPECT_EQ(client.ask(other).state(), "stale");
  bed.clock.advance(1s);
  bed.origin.let_go("/a");
  EXPECT_NE(client.ask(other).state(), "stale");
}

// Within its window, so that nothing but the mark makes it stale.
TEST(WarmPages, OneThatIsStaleByAMarkIsGoodForThatSecond) {
  SharedTable shared("[defaults]\ntags = [\"all\"]\n");
  GatewayBed& bed = shared.bed;
  OneClient client(bed);
  client.warm();
  bed.clock.advance(1s);
  ASSERT_TRUE(test::run(mark_tag(shared.others, "", "all", MarkKind::invalidate)));
  bed.origin.hold("/a");
  EXPECT_EQ(client.ask().state(), "stale");
  ASSERT_TRUE(bed.origin.wait_for("/a", 2));
  client.ask();  // The lease was written meanwhile, which may have kept the first from being remembered.
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t looked = bed.service->counters().stale;
    for (int j = 0; j < 5; ++j) {
      const Reply stale = client.ask();
      EXPECT_EQ(stale.state(), "stale");
      EXPECT_EQ(stale.field("cache-status"), "facetheory; hit; ttl=0");
    }
    EXPECT_LE(bed.service->counters().stale, looked + 1);
    bed.clock.advance(1s);
  }
  bed.origin.let_go("/a");
}

TEST(WarmPages, APageThatWasRenderedAgainIsReadyBeforeItIsAskedFor) {
  ExpiredPage page;
  auto& [bed, client] = page;
  std::uint64_t looked = bed.service->counters().hit;
  EXPECT_EQ(client.ask().state(), "stale");
  // Somebody in the background looks what has become of it.
  for (int i = 0; i < 1000 && bed.service->counters().hit == looked; ++i)
    std::this_thread::sleep_for(2ms);
  bed.get("/b");  // Rendered there, too: after what had been begun before.
  looked = bed.service->counters().hit;
  const Reply fresh = client.ask();
  EXPECT_EQ(fresh.state(), "hit");
  EXPECT_EQ(fresh.body, "/a 2");
  EXPECT_EQ(bed.service->counters().hit, looked);
}

// While its render is pending nobody else is asked for it; afterwards somebody is, once a second.
TEST(WarmPages, APageThatCouldNotBeRenderedIsTriedAgain) {
  ExpiredPage page;
  auto& [bed, client] = page;
  bed.origin.answer("/a", 503, {}, "not now");
  for (std::size_t renders = 2; renders < 5; ++renders) {
    // Beyond the time for which everybody backs off after a failure.
    for (int i = 0; i < 1000 && bed.origin.count("/a") < renders; ++i) {
      EXPECT_EQ(client.ask().body, "/a 1");
      bed.clock.advance(1s);
      std::this_thread::sleep_for(2ms);
    }
    EXPECT_GE(bed.origin.count("/a"), renders);
  }
}

TEST(WarmPages, APageThatCouldNotBeRenderedWhenItWasFirstSeenIsTriedAgain) {
  ExpiredPage page;
  auto& [bed, client] = page;
  bed.origin.answer("/a", 503, {}, "not now");
  const std::string other = "Accept-Encoding: identity\r\n";
  for (int i = 0; i < 3'000 && bed.origin.count("/a") < 4; ++i) {
    EXPECT_EQ(client.ask(other).body, "/a 1");
    bed.clock.advance(1s);
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_GE(bed.origin.count("/a"), 4U);
}

TEST(WarmPages, AClockThatIsSetBackIsNotBelieved) {
  GatewayBed bed;
  warmed(bed, "/a");
  bed.clock.set_now(bed.clock.now() - 100s);
  EXPECT_EQ(bed.get("/a").field("age"), "0");
}

TEST(WarmPages, AreToldApartByAllThatMatters) {
  GatewayBed bed("[defaults]\nheaders = [\"x-kind\"]\n");
  EXPECT_EQ(warmed(bed, "/a").body, "/a 1");
  EXPECT_EQ(warmed(bed, "/a", {{"X-Kind", "1"}}).body, "/a 2");
  EXPECT_EQ(warmed(bed, "/a", {{"X-KIND", "2"}}).body, "/a 3");
  EXPECT_EQ(warmed(bed, "/a", {{"Host", "other.example"}}).body, "/a 4");
  EXPECT_EQ(warmed(bed, "/a?b").body, "/a?b 5");
  EXPECT_EQ(bed.get("/a", {{"x-kind", "1"}}).body, "/a 2");
  EXPECT_EQ(bed.get("/a").body, "/a 1");
}

TEST(WarmPages, VariantsAreToldApartAlsoWhereOneOfThemDoesNotSayThatItVaries) {
  GatewayBed bed;
  bed.origin.answer("/a", [](const ServerRequest& request) {
    const auto language = request.headers.get("accept-language");
    if (!language) return answer_of(200, {{"Vary", "Accept-Language"}}, "none");
    return answer_of(200, {}, std::string(*language));
  });
  for (int i = 0; i < 4; ++i) {
    for (const char* language : {"de", "fr"})
      EXPECT_EQ(bed.get("/a", {{"Accept-Language", language}}).body, language);
    EXPECT_EQ(bed.get("/a").body, "none");
  }
}

TEST(WarmPages, VariantsAreToldApartAlsoWhereTheFirstWhoSawThemNamesARender) {
  GatewayBed bed("trusted_peers = [\"127.0.0.1\"]\n[defaults]\nrevalidate = \"10s\"\n");
  bed.origin.answer("/a", [](const ServerRequest& request) {
    return answer_of(200, {{"Content-Type", "text/html"}, {"Vary", "X-Foo"}},
                     std::string(request.headers.get("x-foo").value_or("none")));
  });
  OneClient client(bed);
  EXPECT_EQ(client.ask("X-Foo: a\r\n", "HEAD").status, 200);  // Of which nothing is remembered.
  bed.clock.advance(12s);
  const std::uint64_t published = bed.service->counters().published;
  EXPECT_EQ(client.ask("X-Foo: a\r\nX-Request-Id: 7\r\n").body, "a");
  for (int i = 0; i < 1000 && bed.service->counters().published == published; ++i)
    std::this_thread::sleep_for(2ms);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(client.ask("X-Foo: a\r\n").body, "a");
  EXPECT_EQ(client.ask("X-Foo: b\r\n").body, "b");
}

TEST(WarmPages, RequestsThatMeanSomethingElseGoTheLongWay) {
  GatewayBed bed("[defaults]\nclient_freshness = \"honour\"\n");
  const Reply warm = warmed(bed, "/a");
  EXPECT_EQ(bed.get("/a", {{"If-None-Match", warm.field("etag")}}).status, 304);
  EXPECT_EQ(bed.get("/a", {{"Range", "bytes=0-1"}}).body, "/a");
  EXPECT_EQ(bed.get("/a", {{"Cookie", "session=1"}}).state(), "pass");
  EXPECT_EQ(bed.get("/a", {{"Authorization", "Basic x"}}).state(), "pass");
  EXPECT_EQ(bed.get("/a", {{"Cache-Control", "no-cache"}}).state(), "miss");
  EXPECT_EQ(bed.ask("HEAD", "/a").body, "");
  // What Connection names is not there.
  EXPECT_EQ(bed.get("/a", {{"Connection", "x-any"}}).state(), "hit");
}

TEST(WarmPages, ThatACopyIsStillGoodIsSaidAtOnceToo) {
  GatewayBed bed;
  const std::string etag = warmed(bed, "/a").field("etag");
  const std::string old = "Mon, 01 Jan 2024 00:00:00 GMT";
  for (const Headers& headers :
       {Headers{{"If-None-Match", etag}}, Headers{{"If-None-Match", etag}, {"If-Modified-Since", old}}}) {
    const Reply first = bed.get("/a", headers);
    const Reply second = bed.get("/a", headers);
    EXPECT_EQ(first.status, 304);
    EXPECT_EQ(second.status, 304);
    EXPECT_EQ(second.body, "");
    for (const Headers::Field& field : first.headers)
      EXPECT_EQ(second.field(field.name), field.value) << field.name;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(bed.get("/a", {{"If-None-Match", "\"x\""}}).status, 200);
    EXPECT_EQ(bed.get("/a", {{"If-None-Match", etag}}).status, 304);
    EXPECT_EQ(bed.get("/a").status, 200);
  }
  RawClient client(bed.port());
  const std::string conditional =
      "GET /a HTTP/1.1\r\nHost: example.com\r\nIf-None-Match: " + etag + "\r\n\r\n";
  client.send(conditional + conditional + "GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n");
  EXPECT_EQ(read_reply(client).status, 304);
  EXPECT_EQ(read_reply(client).status, 304);  // Nothing stood between them.
  EXPECT_EQ(read_reply(client).body, "/a 1");
}

TEST(WarmPages, KeepTheirBodiesInMemory) {
  std::atomic<int> reads = 0;
  ServiceOptions options;
  options.wrap_bodies = [&](std::unique_ptr<BodyStore> bodies) {
    const auto count = [&](std::string_view operation, const Error*, Duration) {
      reads += operation == "read";
    };
    return std::make_unique<MeasuredBodies>(std::move(bodies), count);
  };
  GatewayBed bed("memory = \"1 MiB\"\n", std::move(options));
  warmed(bed, "/a");
  warmed(bed, "/b");
  for (int i = 0; i < 300; ++i) {
    if (i == 100) reads = 0;  // Full, and all are where they belong.
    const std::string target = "/" + std::to_string(i);
    bed.origin.answer(target, 200, {{"Content-Type", "image/png"}}, std::string(20'000, 'x'));
    bed.get(target);
    bed.get(target);  // It is none of those that are asked for once, which drive nobody out.
    ASSERT_EQ(bed.get("/a").body, "/a 1");
    ASSERT_EQ(bed.get("/b").body, "/b 1");  // The last answer holds its body itself.
  }
  EXPECT_EQ(reads, 0);
  bed.get("/0");
  EXPECT_EQ(reads, 1);  // There is no room for all.
}

TEST(WarmPages, CookiesCountAsTheirRoutesSay) {
  GatewayBed bed("[defaults]\ncookies = [\"kind\"]\nignore_cookies = [\"theme\"]\n");
  EXPECT_EQ(warmed(bed, "/a", {{"Cookie", "_ga=1; theme=dark"}}).body, "/a 1");
  EXPECT_EQ(bed.get("/a", {{"Cookie", "_ga=2"}}).body, "/a 1");
  EXPECT_EQ(warmed(bed, "/a", {{"Cookie", "kind=b"}}).body, "/a 2");
  EXPECT_EQ(warmed(bed, "/a", {{"Cookie", "theme=x;kind=c"}}).body, "/a 3");
  EXPECT_EQ(bed.get("/a", {{"Cookie", "_ga=1;kind=b"}}).body, "/a 2");
  EXPECT_EQ(bed.get("/a", {{"Cookie", "_ga=1; Kind=b"}}).state(), "pass");  // Unknown.
  EXPECT_EQ(bed.get("/a", {{"Cookie", "_ga=1"}}).body, "/a 1");
}

// The rows that decided are what matters, not that somebody wrote something.
TEST(WarmPages, StayWhenOtherPagesChange) {
  for (const bool on_disk : {false, true}) {
    const test::TemporaryDirectory folder;
    GatewayBed bed("", {}, "table = \"" + (on_disk ? "lmdb:" + folder.path().string() : "memory:") + "\"\n");
    RawClient client(bed.port());  // On one of the loops.
    const auto body = [&] {
      client.send("GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n");
      return read_reply(client).body;
    };
    for (int i = 0; i < 3; ++i)
      body();
    const std::uint64_t hits = bed.service->counters().hit;
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(bed.get("/other" + std::to_string(i)).state(), "miss");
      EXPECT_EQ(body(), "/a 1");
    }
    EXPECT_EQ(bed.service->counters().hit, hits);
  }
}

TEST(WarmPages, AMarkIsSeenByTheVeryNextRequest) {
  SharedTable shared("[defaults]\ntags = [\"all\"]\n");
  GatewayBed& bed = shared.bed;
  for (const std::string tag : {"all", ""}) {
    const std::string target = "/by-" + tag;
    bed.clock.advance(1s);
    for (int i = 0; i < 8; ++i)
      warmed(bed, target);
    bed.clock.advance(1s);
    ASSERT_TRUE(test::run(mark_tag(shared.others, "", tag, MarkKind::invalidate)));
    EXPECT_EQ(bed.get(target).state(), "stale") << tag;
  }
}

TEST(WarmPages, AnInvalidationByAnotherIsSeenByTheVeryNextRequest) {
  SharedTable shared;
  GatewayBed& bed = shared.bed;
  EXPECT_EQ(warmed(bed, "/a").state(), "hit");

  const Page page = *page_of("http://example.com/a");
  ASSERT_TRUE(test::run(invalidate(shared.others, page)));
  EXPECT_EQ(bed.get("/a").state(), "stale");
}

TEST(WarmPages, AChangeThroughThisGatewayIsSeenByAllItsLoops) {
  GatewayBed bed;
  for (int i = 2; i < 6; ++i) {
    for (int j = 0; j < 8; ++j)
      warmed(bed, "/a");
    bed.ask("POST", "/a", {}, "x");
    const Reply next = bed.get("/a");
    EXPECT_THAT(next.state(), testing::AnyOf("miss", "wait-hit"));
  }
}

TEST(WarmPages, AReloadForgetsThem) {
  GatewayBed bed;
  warmed(bed, "/a");
  bed.service->reload(bed.config("[[routes]]\npattern = \"/a\"\ncache = false\n"));
  for (int i = 0; i < 1000 && bed.get("/a").state() != "pass"; ++i)
    std::this_thread::sleep_for(2ms);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(bed.get("/a").state(), "pass");
}

TEST(WarmPages, PipelinedRequestsAreAnsweredInOrderWarmOrNot) {
  GatewayBed bed;
  for (const char* target : {"/a", "/b"})
    warmed(bed, target);
  RawClient client(bed.port());
  std::string requests;
  for (int i = 0; i < 300; ++i)
    requests += std::string("GET ") +
                (i % 3 == 0   ? "/a"
                 : i % 3 == 1 ? "/c"
                              : "/b") +
                " HTTP/1.1\r\nHost: example.com\r\n\r\n";
  client.send(requests);
  for (int i = 0; i < 300; ++i)
    ASSERT_EQ(read_reply(client).body, i % 3 == 0 ? "/a 1" : i % 3 == 1 ? "/c 1" : "/b 1");
}

TEST(WarmPages, PagesOfAnySizeAreSentAsTheyAre) {
  GatewayBed bed;
  for (const int size : {1, 40'000, 49'151, 49'152, 49'153, 200'000, 3'000'000}) {
    std::string body;
    for (int i = 0; i < size; ++i)
      body += static_cast<char>('a' + (i * 31 + i / 1000) % 26);
    const std::string target = "/" + std::to_string(size);
    bed.origin.answer(target, 200, {{"Content-Type", "application/octet-stream"}}, body);
    bed.get(target);
    for (int i = 0; i < 6; ++i)
      EXPECT_TRUE(bed.get(target).body == body) << size;
  }
}

TEST(WarmPages, AClientThatReadsSlowlyGetsAllOfALargePage) {
  GatewayBed bed;
  bed.origin.answer("/large", 200, {{"Content-Type", "application/octet-stream"}}, std::string(8 << 20, 'x'));
  warmed(bed, "/large");
  RawClient client(bed.port());
  client.send(
      "GET /large HTTP/1.1\r\nHost: example.com\r\n\r\nGET /large HTTP/1.1\r\nHost: example.com\r\n\r\n");
  std::this_thread::sleep_for(50ms);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(read_reply(client).body.size(), std::size_t{8} << 20);
}

TEST(WarmPages, ConnectionsCloseWhenTheyAreAskedTo) {
  GatewayBed bed;
  warmed(bed, "/a");
  RawClient client(bed.port());
  client.send("GET /a HTTP/1.0\r\nHost: example.com\r\n\r\n");
  EXPECT_THAT(client.rest(), HasSubstr("Connection: close\r\n"));
}

}  // namespace
}  // namespace facetheory
