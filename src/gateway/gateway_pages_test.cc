// What clients get from pages, through a whole gateway.
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/bodies/forwarding_bodies.h"
#include "facetheory/http/server_request.h"

#include "tests/support/gateway_bed.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::answer_of;
using test::GatewayBed;
using test::Reply;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

// Until the page is what the test waits for; the last answer.
Reply get_until(GatewayBed& bed, const std::string& target, const std::string& body) {
  Reply reply;
  for (int i = 0; i < 1000; ++i) {
    reply = bed.get(target);
    if (reply.body == body) return reply;
    std::this_thread::sleep_for(5ms);
  }
  return reply;
}

TEST(GatewayPages, GoFromMissToHitToStaleAndAreRenderedOnceForEach) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\n");
  const Reply miss = bed.get("/a");
  EXPECT_EQ(miss.status, 200);
  EXPECT_EQ(miss.body, "/a 1");
  EXPECT_EQ(miss.state(), "miss");
  EXPECT_EQ(miss.field("content-type"), "text/html");
  EXPECT_THAT(miss.field("cache-status"), HasSubstr("fwd=uri-miss; fwd-status=200; stored; ttl=10"));

  bed.clock.advance(4s);
  const Reply hit = bed.get("/a");
  EXPECT_EQ(hit.state(), "hit");
  EXPECT_EQ(hit.body, "/a 1");
  EXPECT_EQ(hit.field("age"), "4");
  EXPECT_EQ(hit.field("cache-status"), "facetheory; hit; ttl=6");
  EXPECT_EQ(hit.field("etag"), miss.field("etag"));
  EXPECT_EQ(bed.origin.count("/a"), 1U);

  bed.clock.advance(7s);
  bed.origin.hold("/a");
  const Reply stale = bed.get("/a");
  EXPECT_EQ(stale.state(), "stale");
  EXPECT_EQ(stale.body, "/a 1");
  EXPECT_EQ(stale.field("age"), "11");
  EXPECT_EQ(bed.get("/a").state(), "stale");
  bed.origin.let_go("/a");
  EXPECT_EQ(get_until(bed, "/a", "/a 2").state(), "hit");
  EXPECT_EQ(bed.origin.count("/a"), 2U);
}

TEST(GatewayPages, ManyRequestsForAMissingPageRenderItOnce) {
  GatewayBed bed;
  bed.origin.hold("/a");
  std::vector<std::future<Reply>> replies;
  for (int i = 0; i < 40; ++i)
    replies.push_back(std::async(std::launch::async, [&] { return bed.get("/a"); }));
  ASSERT_TRUE(bed.origin.wait_for("/a", 1));
  bed.origin.let_go("/a");
  for (auto& reply : replies)
    EXPECT_EQ(reply.get().body, "/a 1");
  EXPECT_EQ(bed.origin.count("/a"), 1U);
}

// What those are told of the cache who ask while the origin renders: the one for whom it does, and one who joins.
struct Told {
  std::string began = {};
  std::string joined = {};
};
Told told_at_once(GatewayBed& bed, const std::string& target, const Headers& fields = {}) {
  const std::size_t before = bed.origin.count(target);
  bed.origin.hold(target);
  auto began = std::async(std::launch::async, [&] { return bed.get(target, fields); });
  EXPECT_TRUE(bed.origin.wait_for(target, before + 1));
  auto joined = std::async(std::launch::async, [&] { return bed.get(target, fields); });
  for (int i = 0; i < 2000 && bed.service->gauges().waiters < 2; ++i)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(bed.service->gauges().waiters, 2U);
  bed.origin.let_go(target);
  Told told{began.get().field("cache-status")};
  told.joined = joined.get().field("cache-status");
  return told;
}

TEST(GatewayPages, WhoeverJoinsARenderIsToldWhyTheOriginWasAskedAndThatItWasNotForThem) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\nmode = \"blocking\"\nclient_freshness = \"honour\"\n");
  const Told missing = told_at_once(bed, "/a");
  EXPECT_EQ(missing.began, "facetheory; fwd=uri-miss; fwd-status=200; stored; ttl=10");
  EXPECT_EQ(missing.joined, "facetheory; fwd=uri-miss; collapsed; ttl=10");
  bed.clock.advance(11s);
  const Told stale = told_at_once(bed, "/a");
  EXPECT_EQ(stale.began, "facetheory; fwd=stale; fwd-status=200; stored; ttl=10");
  EXPECT_EQ(stale.joined, "facetheory; fwd=stale; collapsed; ttl=10");
  const Told refused = told_at_once(bed, "/a", {{"Cache-Control", "no-cache"}});
  EXPECT_EQ(refused.began, "facetheory; fwd=request; fwd-status=200; stored; ttl=10");
  EXPECT_EQ(refused.joined, "facetheory; fwd=request; collapsed; ttl=10");
}

TEST(GatewayPages, WhoeverJoinsARenderOfAVariantIsToldSo) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\n");
  bed.origin.answer("/a", 200, {{"Vary", "Accept-Language"}}, "x");
  EXPECT_EQ(bed.get("/a", {{"Accept-Language", "de"}}).state(), "miss");
  const Told told = told_at_once(bed, "/a", {{"Accept-Language", "fr"}});
  EXPECT_EQ(told.began, "facetheory; fwd=vary-miss; fwd-status=200; stored; ttl=10");
  EXPECT_EQ(told.joined, "facetheory; fwd=vary-miss; collapsed; ttl=10");
}

TEST(GatewayPages, WhoeverJoinsARenderThatIsNotForThemIsToldThatNothingWasStored) {
  GatewayBed bed;
  bed.origin.answer("/validated", 200, {{"Cache-Control", "max-age=0"}}, "x");
  const Told validated = told_at_once(bed, "/validated");
  EXPECT_EQ(validated.began, "facetheory; fwd=uri-miss; fwd-status=200; stored; ttl=0");
  EXPECT_EQ(validated.joined, "facetheory; fwd=uri-miss");
  bed.origin.answer("/private", 200, {{"Cache-Control", "private"}}, "x");
  const Told is_private = told_at_once(bed, "/private");
  EXPECT_EQ(is_private.began, "facetheory; fwd=uri-miss; fwd-status=200");
  EXPECT_EQ(is_private.joined, "facetheory; fwd=uri-miss");
}

TEST(GatewayPages, HostPathAndQueryMakeThePageAndTrackingDoesNot) {
  GatewayBed bed;
  EXPECT_EQ(bed.get("/a?x=1&utm_source=mail").body, "/a?x=1 1");
  EXPECT_EQ(bed.get("/a?gclid=7&x=1").state(), "hit");
  EXPECT_EQ(bed.get("/a?x=2").state(), "miss");
  EXPECT_EQ(bed.get("/a?x=1", {{"Host", "other.example"}}).state(), "miss");
  EXPECT_EQ(bed.get("http://example.com/a?x=1").state(), "hit");
}

TEST(GatewayPages, TheOriginsLifetimeGoesBeforeTheRoutes) {
  GatewayBed bed("[defaults]\nrevalidate = \"1000s\"\n");
  bed.origin.answer("/a", 200, {{"Cache-Control", "max-age=5"}}, "x");
  EXPECT_THAT(bed.get("/a").field("cache-status"), HasSubstr("ttl=5"));
  bed.origin.answer("/b", 200, {{"Cache-Control", "max-age=5"}, {"CDN-Cache-Control", "max-age=77"}}, "x");
  EXPECT_THAT(bed.get("/b").field("cache-status"), HasSubstr("ttl=77"));
}

TEST(GatewayPages, AnAgeThatThePageHadOnItsWayCounts) {
  GatewayBed bed;
  bed.origin.answer("/a", 200, {{"Cache-Control", "max-age=100"}, {"Age", "30"}}, "x");
  EXPECT_THAT(bed.get("/a").field("cache-status"), HasSubstr("ttl=70"));
  bed.clock.advance(10s);
  EXPECT_EQ(bed.get("/a").field("age"), "40");
}

TEST(GatewayPages, ConditionsHeadAndRangesAreAnsweredFromThePage) {
  GatewayBed bed;
  bed.origin.answer("/a", 200, {{"ETag", "\"v1\""}, {"Content-Type", "text/plain"}}, "0123456789");
  ASSERT_EQ(bed.get("/a").body, "0123456789");
  const Reply unmodified = bed.get("/a", {{"If-None-Match", "\"v0\", \"v1\""}});
  EXPECT_EQ(unmodified.status, 304);
  EXPECT_EQ(unmodified.field("etag"), "\"v1\"");
  EXPECT_EQ(unmodified.field("content-type"), "");
  const Reply head = bed.ask("HEAD", "/a");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.field("content-length"), "10");
  const Reply part = bed.get("/a", {{"Range", "bytes=2-4"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "234");
  EXPECT_EQ(part.field("content-range"), "bytes 2-4/10");
  EXPECT_EQ(bed.get("/a", {{"Range", "bytes=2-4"}, {"If-Range", "\"v0\""}}).body, "0123456789");
  EXPECT_EQ(bed.get("/a", {{"Range", "bytes=20-"}}).status, 416);
  EXPECT_EQ(bed.origin.count("/a"), 1U);
}

TEST(GatewayPages, HeadOfAMissingPageIsTheOriginsAndRendersNothing) {
  GatewayBed bed;
  EXPECT_EQ(bed.ask("HEAD", "/a").state(), "pass");
  EXPECT_EQ(bed.origin.requests("/a").at(0).method, "HEAD");
  EXPECT_EQ(bed.get("/a").state(), "miss");
  EXPECT_EQ(bed.ask("HEAD", "/a").state(), "hit");
}

TEST(GatewayPages, APageThatTheOriginConfirmsIsRenewed) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\nmode = \"blocking\"\n");
  bed.origin.answer("/a", [](const ServerRequest& request) {
    if (request.headers.get("if-none-match") == "\"v1\"") return answer_of(304, {{"ETag", "\"v1\""}}, "");
    return answer_of(200, {{"ETag", "\"v1\""}, {"X-Kept", "yes"}}, "page");
  });
  EXPECT_EQ(bed.get("/a").body, "page");
  bed.clock.advance(11s);
  const Reply renewed = bed.get("/a");
  EXPECT_EQ(renewed.state(), "miss");
  EXPECT_EQ(renewed.body, "page");
  EXPECT_EQ(renewed.field("x-kept"), "yes");
  EXPECT_EQ(renewed.status, 200);
  EXPECT_THAT(renewed.field("cache-status"), HasSubstr("; fwd=stale; fwd-status=304; stored; ttl=10"));
  EXPECT_EQ(bed.get("/a").state(), "hit");
  ASSERT_THAT(bed.origin.requests("/a"), SizeIs(2));
}

// The cookie is the visitor's, who would not get it with a page that is merely confirmed.
TEST(GatewayPages, AConfirmationThatSetsACookieIsAskedForWholeAndNotStored) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\nmode = \"blocking\"\n");
  bool with_cookie = false;
  bed.origin.answer("/a", [&](const ServerRequest& request) {
    Headers fields{{"ETag", "\"v1\""}};
    if (with_cookie) fields.add("Set-Cookie", "id=1");
    return answer_of(request.headers.get("if-none-match") ? 304 : 200, std::move(fields), "page");
  });
  EXPECT_EQ(bed.get("/a").state(), "miss");
  with_cookie = true;
  bed.clock.advance(11s);
  const Reply mine = bed.get("/a");
  EXPECT_EQ(mine.state(), "uncached");
  EXPECT_EQ(mine.body, "page");
  EXPECT_EQ(mine.field("set-cookie"), "id=1");
  EXPECT_THAT(mine.field("cache-status"), HasSubstr("; fwd-status=200"));
  EXPECT_EQ(bed.get("/a").state(), "pass");
}

TEST(GatewayPages, WhatIsForOneClientIsNotStored) {
  GatewayBed bed;
  for (const Headers& headers : {Headers{{"Set-Cookie", "id=1"}}, Headers{{"Cache-Control", "private"}},
                                 Headers{{"Cache-Control", "no-store"}}, Headers{{"Vary", "*"}}}) {
    const std::string path = "/" + headers.begin()->name + headers.begin()->value.substr(0, 2);
    const std::string safe = path.find('*') == std::string::npos ? path : "/vary";
    bed.origin.answer(safe, 200, headers, "mine");
    const Reply first = bed.get(safe);
    EXPECT_EQ(first.body, "mine") << safe;
    EXPECT_THAT(first.field("cache-status"), Not(HasSubstr("stored"))) << safe;
    const Reply second = bed.get(safe);
    EXPECT_EQ(second.body, "mine") << safe;
    EXPECT_EQ(second.state(), "pass") << safe;
    EXPECT_EQ(bed.origin.count(safe), 2U) << safe;
  }
  EXPECT_EQ(bed.get("/Set-Cookieid").field("set-cookie"), "id=1");
}

TEST(GatewayPages, APageThatIsNoLongerForEverybodyIsNotServedAsStale) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\n");
  bed.get("/a");
  bed.origin.answer("/a", 403, {}, "no more");
  bed.clock.advance(11s);
  EXPECT_EQ(get_until(bed, "/a", "no more").status, 403);
}

TEST(GatewayPages, AFailureNeverReplacesAPage) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\n");
  EXPECT_EQ(bed.get("/a").body, "/a 1");
  bed.origin.answer("/a", 500, {}, "broken");
  bed.clock.advance(11s);
  for (int i = 0; i < 3; ++i) {
    const Reply reply = bed.get("/a");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "/a 1");
  }
}

TEST(GatewayPages, NorDoesAnAnswerWhoseHeaderIsTooLarge) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\nmode = \"blocking\"\n");
  EXPECT_EQ(bed.get("/a").body, "/a 1");
  bed.clock.advance(11s);
  bed.origin.answer("/a", 200, {{"X-Large", std::string(100'000, 'x')}}, "large");
  const Reply reply = bed.get("/a");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "/a 1");
}

// Hits are sent from a copy of the page; it must be that of the page that is served. There is not room for all copies.
TEST(GatewayPages, LargePagesAreSentWholeAndReplaced) {
  GatewayBed bed("memory = \"4 MiB\"\n[defaults]\nrevalidate = \"10s\"\nmode = \"blocking\"\n");
  std::string body;
  for (char letter = 'a'; letter < 'e'; ++letter) {
    for (const std::size_t size : {16'384U, 100'001U, 140'000U, 200'000U, 230'000U}) {
      const std::string path = "/" + std::to_string(size);
      body.assign(size, letter);
      bed.origin.answer(path, 200, {{"Content-Type", "text/html"}}, body);
      for (int i = 0; i < 8; ++i) {
        const Reply reply = bed.get(path);
        ASSERT_EQ(reply.status, 200);
        ASSERT_EQ(reply.body == body, true) << path << " " << letter << " " << i;
        EXPECT_EQ(reply.state(), i == 0 ? "miss" : "hit") << path << " " << letter << " " << i;
      }
    }
    bed.clock.advance(11s);
  }
}

TEST(GatewayPages, WithoutAPageAFailureIsShownAsItIsAndRecoveryIsSeenAtOnce) {
  GatewayBed bed;
  bed.origin.answer("/a", 500, {{"Content-Type", "text/plain"}}, "broken");
  const Reply shown = bed.get("/a");
  EXPECT_EQ(shown.status, 500);
  EXPECT_EQ(shown.body, "broken");
  EXPECT_EQ(shown.state(), "failed");
  EXPECT_THAT(shown.field("retry-after"), Not(IsEmpty()));
  const Reply passed = bed.get("/a");  // Nobody renders for a while, and nobody is kept waiting for that.
  EXPECT_EQ(passed.status, 500);
  EXPECT_EQ(passed.state(), "pass");
  bed.origin.answer("/a", 200, {}, "well again");
  EXPECT_EQ(bed.get("/a").body, "well again");
}

TEST(GatewayPages, NotFoundIsKeptForAShortWhileAndRedirectsKeepTheirTarget) {
  GatewayBed bed("[defaults]\nnot_found = \"5s\"\n");
  bed.origin.answer("/gone", 404, {}, "nothing here");
  EXPECT_EQ(bed.get("/gone").status, 404);
  const Reply again = bed.get("/gone");
  EXPECT_EQ(again.status, 404);
  EXPECT_EQ(again.state(), "hit");
  EXPECT_THAT(again.field("cache-status"), HasSubstr("ttl=5"));
  bed.origin.answer("/old", 301, {{"Location", "/new"}}, "");
  bed.get("/old");
  const Reply moved = bed.get("/old");
  EXPECT_EQ(moved.status, 301);
  EXPECT_EQ(moved.state(), "hit");
  EXPECT_EQ(moved.field("location"), "/new");
}

TEST(GatewayPages, VariantsAreKeptApartAndRenderedOnceEach) {
  GatewayBed bed;
  bed.origin.answer("/a", [](const ServerRequest& request) {
    return answer_of(200, {{"Vary", "Accept-Language"}},
                     std::string(request.headers.get("accept-language").value_or("none")));
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(bed.get("/a", {{"Accept-Language", "de"}}).body, "de");
    EXPECT_EQ(bed.get("/a", {{"Accept-Language", "fr"}}).body, "fr");
    EXPECT_EQ(bed.get("/a").body, "none");
  }
  EXPECT_EQ(bed.origin.count("/a"), 3U);
  EXPECT_EQ(bed.get("/a", {{"Accept-Language", "de"}}).state(), "hit");
}

TEST(GatewayPages, AForwardedFieldIsSeenWithTheFirstRenderAndStillKeptApart) {
  GatewayBed bed("[defaults]\nforward = [\"*\"]\n");
  bed.origin.answer("/a", [](const ServerRequest& request) {
    return answer_of(200, {{"Vary", "X-Kind"}}, std::string(request.headers.get("x-kind").value_or("none")));
  });
  EXPECT_EQ(bed.get("/a", {{"X-Kind", "1"}}).body, "1");
  EXPECT_EQ(bed.get("/a", {{"X-Kind", "2"}}).body, "2");
  EXPECT_EQ(bed.get("/a", {{"X-Kind", "1"}}).state(), "hit");
  EXPECT_EQ(bed.origin.count("/a"), 2U);
}

TEST(GatewayPages, NothingThatIsNotInTheKeyReachesARender) {
  GatewayBed bed("[defaults]\nother_cookies = \"strip\"\n");
  bed.get("/a", {{"X-Forwarded-Host", "evil.example"},
                 {"X-Forwarded-For", "6.6.6.6"},
                 {"X-Original-URL", "/admin"},
                 {"Cookie", "session=secret"},
                 {"User-Agent", "evil"},
                 {"X-Facetheory-Variant", "x"},
                 {"If-None-Match", "\"x\""}});
  const ServerRequest seen = bed.origin.requests("/a").at(0);
  EXPECT_EQ(seen.headers.get("x-forwarded-host"), "example.com");
  EXPECT_EQ(seen.headers.get("x-forwarded-proto"), "http");
  EXPECT_EQ(seen.headers.get("accept-encoding"), "identity");
  EXPECT_EQ(seen.headers.get("host"), "example.com");
  for (const char* name : {"x-forwarded-for", "x-original-url", "cookie", "user-agent",
                           "x-facetheory-variant", "if-none-match", "cache-control"}) {
    EXPECT_FALSE(seen.headers.get(name)) << name;
  }
}

TEST(GatewayPages, AClientDecidesWhatIsFreshEnoughOnlyWhereTheRouteLetsIt) {
  GatewayBed bed(
      "[[routes]]\npattern = \"/ours\"\n[[routes]]\npattern = \"/theirs\"\nclient_freshness = \"honour\"\n");
  for (const char* target : {"/ours", "/theirs"})
    bed.get(target);
  EXPECT_EQ(bed.get("/ours", {{"Cache-Control", "no-cache"}}).state(), "hit");
  const Reply refreshed = bed.get("/theirs", {{"Cache-Control", "no-cache"}});
  EXPECT_EQ(refreshed.body, "/theirs 2");
  EXPECT_THAT(refreshed.field("cache-status"), HasSubstr("fwd=request"));
  bed.clock.advance(10s);
  EXPECT_EQ(bed.get("/theirs", {{"Cache-Control", "max-age=5"}}).body, "/theirs 3");
  EXPECT_EQ(bed.get("/theirs").state(), "hit");
}

TEST(GatewayPages, OnlyIfCachedAsksNobody) {
  GatewayBed bed;
  EXPECT_EQ(bed.get("/a", {{"Cache-Control", "only-if-cached"}}).status, 504);
  EXPECT_EQ(bed.origin.count("/a"), 0U);
  bed.get("/a");
  EXPECT_EQ(bed.get("/a", {{"Cache-Control", "only-if-cached"}}).state(), "hit");
}

TEST(GatewayPages, WhatMustBeValidatedIsValidatedEachTime) {
  GatewayBed bed;
  bed.origin.answer("/a", [](const ServerRequest& request) {
    if (request.headers.get("if-none-match")) return answer_of(304, {{"Cache-Control", "no-cache"}}, "");
    return answer_of(200, {{"Cache-Control", "no-cache"}, {"ETag", "\"1\""}}, "checked");
  });
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(bed.get("/a").body, "checked");
    EXPECT_EQ(bed.origin.count("/a"), static_cast<std::size_t>(i));
  }
  EXPECT_TRUE(bed.origin.requests("/a").at(2).headers.get("if-none-match"));
}

TEST(GatewayPages, MustRevalidateForbidsStalePages) {
  GatewayBed bed;
  bed.origin.answer("/a", 200, {{"Cache-Control", "max-age=10, must-revalidate"}}, "strict");
  bed.get("/a");
  bed.clock.advance(11s);
  bed.origin.answer("/a", 500, {}, "broken");
  EXPECT_EQ(bed.get("/a").status, 500);
}

TEST(GatewayPages, StaleWhileRevalidateHasItsLimit) {
  GatewayBed bed;
  bed.origin.answer("/a", 200, {{"Cache-Control", "max-age=10, stale-while-revalidate=5"}}, "old");
  bed.get("/a");
  bed.clock.advance(16s);
  bed.origin.answer("/a", 200, {{"Cache-Control", "max-age=10"}}, "new");
  EXPECT_EQ(bed.get("/a").body, "new");
}

TEST(GatewayPages, WhoseLifetimeTheOriginNamesAreNotServedAfterItWhileTheyAreRendered) {
  for (const char* control : {"max-age=10", "max-age=0", "s-maxage=10"}) {
    GatewayBed bed;
    bed.origin.answer("/a", 200, {{"Cache-Control", control}}, "old");
    for (int i = 0; i < 3; ++i)  // So that it is ready to be answered with, if it can be.
      EXPECT_EQ(bed.get("/a").body, "old") << control;
    bed.clock.advance(11s);
    bed.origin.answer("/a", 200, {{"Cache-Control", control}}, "new");
    EXPECT_EQ(bed.get("/a").body, "new") << control;
  }
}

TEST(GatewayPages, WithoutALifetimeAreServedAfterTheRoutesWindowWhileTheyAreRendered) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\n");
  EXPECT_EQ(bed.get("/a").body, "/a 1");
  bed.clock.advance(11s);
  const Reply stale = bed.get("/a");
  EXPECT_EQ(stale.state(), "stale");
  EXPECT_EQ(stale.body, "/a 1");
}

TEST(GatewayPages, AreServedAfterAFailureAlthoughTheirLifetimeHasEnded) {
  GatewayBed bed;
  bed.origin.answer("/a", 200, {{"Cache-Control", "max-age=10"}}, "old");
  bed.get("/a");
  bed.clock.advance(11s);
  bed.origin.answer("/a", 500, {}, "broken");
  const Reply stale = bed.get("/a");
  EXPECT_EQ(stale.status, 200);
  EXPECT_EQ(stale.state(), "stale");
  EXPECT_EQ(bed.origin.count("/a"), 2U);
}

TEST(GatewayPages, MayBeStaleInModeBlockingIfTheOriginSaysSoAndTheRouteSaysNothingElse) {
  GatewayBed bed(
      "[defaults]\nmode = \"blocking\"\n[[routes]]\npattern = \"/a\"\n"
      "[[routes]]\npattern = \"/strict\"\nstale_for = \"0s\"\n");
  for (const char* target : {"/a", "/strict"}) {
    bed.origin.answer(target, 200, {{"Cache-Control", "max-age=10, stale-while-revalidate=5"}}, "old");
    bed.get(target);
    bed.get(target);
  }
  bed.clock.advance(11s);
  for (const char* target : {"/a", "/strict"})
    bed.origin.answer(target, 200, {{"Cache-Control", "max-age=10, stale-while-revalidate=5"}}, "new");
  EXPECT_EQ(bed.get("/a").body, "old");
  EXPECT_EQ(bed.get("/strict").body, "new");
  for (int i = 0; i < 1000 && bed.get("/a").body != "new"; ++i)
    std::this_thread::sleep_for(2ms);
  EXPECT_EQ(bed.get("/a").state(), "hit");
  bed.clock.advance(16s);
  bed.origin.answer("/a", 200, {{"Cache-Control", "max-age=10"}}, "newest");
  EXPECT_EQ(bed.get("/a").body, "newest");
}

TEST(GatewayPages, AreNotStoredWithoutALifetimeWhereTheRouteLeavesItToTheOrigin) {
  for (const char* mode : {"swr", "blocking"}) {
    GatewayBed bed("[defaults]\nrevalidate = \"origin\"\nmode = \"" + std::string(mode) + "\"\n");
    EXPECT_EQ(bed.get("/a").body, "/a 1");
    EXPECT_EQ(bed.get("/a").body, "/a 2");
    EXPECT_EQ(bed.get("/a").state(), "pass");
  }
}

TEST(GatewayPages, AreCompressedForThoseWhoTakeIt) {
  GatewayBed bed;
  bed.origin.answer("/a", 200, {{"Content-Type", "text/html"}, {"ETag", "\"v\""}}, std::string(5000, 'x'));
  bed.get("/a");
  for (const char* coding : {"gzip", "br", "zstd"}) {
    const Reply reply = bed.get("/a", {{"Accept-Encoding", coding}});
    EXPECT_EQ(reply.field("content-encoding"), coding);
    EXPECT_LT(reply.body.size(), 1000U);
    EXPECT_EQ(reply.field("etag"), "W/\"v\"");
    EXPECT_EQ(reply.field("vary"), "Accept-Encoding");
    EXPECT_EQ(bed.get("/a", {{"Accept-Encoding", coding}, {"If-None-Match", "W/\"v\""}}).status, 304);
  }
  const Reply plain = bed.get("/a");
  EXPECT_EQ(plain.body.size(), 5000U);
  EXPECT_EQ(plain.field("etag"), "\"v\"");
  EXPECT_EQ(bed.get("/a", {{"Accept-Encoding", "gzip"}, {"Range", "bytes=0-9"}}).body, "xxxxxxxxxx");
  EXPECT_EQ(bed.origin.count("/a"), 1U);
}

TEST(GatewayPages, NothingOldIsServedOfWhatASuccessfulChangeNames) {
  GatewayBed bed;
  for (const char* target : {"/a", "/b", "/c"})
    bed.get(target);
  bed.origin.answer("/edit", 200, {{"Location", "/b"}}, "done");
  EXPECT_EQ(bed.ask("POST", "/edit", {}, "x=1").body, "done");
  EXPECT_EQ(bed.ask("DELETE", "/a").status, 200);
  EXPECT_EQ(bed.get("/a").body, "/a 3");
  EXPECT_EQ(bed.get("/b").body, "/b 2");
  EXPECT_EQ(bed.get("/c").body, "/c 1");
  bed.origin.answer("/c", 500, {}, "failed");
  bed.ask("POST", "/c", {}, "x");
  EXPECT_EQ(bed.get("/c").body, "/c 1");
}

TEST(GatewayPages, NorOfItsVariants) {
  GatewayBed bed;
  bed.origin.answer("/a", [](const ServerRequest& request) {
    return answer_of(200, {{"Vary", "Accept-Language"}},
                     std::string(request.headers.get("accept-language").value_or("none")));
  });
  const Headers german{{"Accept-Language", "de"}};
  bed.get("/a", german);
  ASSERT_EQ(bed.get("/a", german).state(), "hit");
  bed.ask("PUT", "/a", {}, "x");
  EXPECT_EQ(bed.get("/a", german).state(), "miss");
}

// S3 keeps 2,048 bytes beside an object; the others have no reason to.
TEST(GatewayPages, FieldsOfManyKilobytesAreStored) {
  GatewayBed bed;
  const std::string policy(8'000, 'p');
  bed.origin.answer("/a", 200, {{"Content-Security-Policy", policy}, {"Link", policy}}, "page");
  EXPECT_EQ(bed.get("/a").state(), "miss");
  const Reply hit = bed.get("/a");
  EXPECT_EQ(hit.state(), "hit");
  EXPECT_EQ(hit.field("content-security-policy"), policy);
  EXPECT_EQ(hit.field("link"), policy);
}

// A store as S3 is one, as far as header fields go.
class SparseBodies final : public ForwardingBodies {
 public:
  using ForwardingBodies::ForwardingBodies;

  std::size_t max_metadata_bytes() const override { return kMaxMetadataBytes; }
};

TEST(GatewayPages, FieldsThatTheBodiesHaveNoRoomForArePassedOnWholeAndTheLogSaysWhy) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> access_log(std::tmpfile(), &std::fclose);
  ASSERT_NE(access_log, nullptr);
  ServiceOptions options;
  options.access_log = fileno(access_log.get());
  options.wrap_bodies = [](std::unique_ptr<BodyStore> inner) -> std::unique_ptr<BodyStore> {
    return std::make_unique<SparseBodies>(std::move(inner));
  };
  test::TestOrigin origin;
  const std::string policy(3'000, 'p');
  origin.answer("/a", 200,
                {{"Content-Security-Policy", policy}, {"ETag", "\"x\""}, {"Vary", "Accept-Language"}},
                "page");
  Config config = test::bed_config(origin.port(), "");
  config.access_log = AccessLog::text;
  {
    const auto service = *Service::start(std::move(config), std::move(options));
    for (int i = 0; i < 2; ++i) {
      test::RawClient client(service->listening().front().port);
      client.send("GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n");
      const Reply reply = test::read_reply(client);
      EXPECT_EQ(reply.body, "page");
      EXPECT_EQ(reply.field("content-security-policy"), policy);
      EXPECT_EQ(reply.field("etag"), "\"x\"");
      EXPECT_FALSE(reply.headers.get("x-facetheory-variant"));
      EXPECT_EQ(reply.state(), i == 0 ? "uncached" : "pass");
    }
  }
  std::string lines(4'096, '\0');
  std::rewind(access_log.get());
  lines.resize(std::fread(lines.data(), 1, lines.size(), access_log.get()));
  EXPECT_THAT(lines, testing::ContainsRegex("its header fields take 3[0-9]* bytes, and bodies keep 2048"));
}

TEST(GatewayPages, TenantsAreKeptApartAndStrangersNameNone) {
  GatewayBed bed("trusted_peers = [\"127.0.0.1\"]\n[defaults]\ntenant = \"header:x-tenant-id\"\n");
  EXPECT_EQ(bed.get("/a", {{"X-Tenant-Id", "one"}}).state(), "miss");
  EXPECT_EQ(bed.get("/a", {{"X-Tenant-Id", "two"}}).state(), "miss");
  EXPECT_EQ(bed.get("/a", {{"X-Tenant-Id", "one"}}).state(), "hit");
  EXPECT_EQ(bed.get("/a").status, 400);
  GatewayBed closed("trusted_peers = [\"10.0.0.1\"]\n[defaults]\ntenant = \"header:x-tenant-id\"\n");
  EXPECT_EQ(closed.get("/a", {{"X-Tenant-Id", "one"}}).status, 403);
  EXPECT_EQ(closed.origin.count("/a"), 0U);
}

// They want less than all of it, but what is stored is all.
TEST(GatewayPages, HeadAndPartsOfAStalePageAreAnsweredFromItAndCauseOneRenderInTheBackground) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\n");
  bed.get("/p");
  bed.clock.advance(11s);
  bed.origin.hold("/p");
  for (int i = 0; i < 5; ++i) {
    const Reply head = bed.ask("HEAD", "/p");
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.state(), "stale");
    const Reply part = bed.get("/p", {{"Range", "bytes=0-1"}});
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, "/p");
    EXPECT_EQ(part.state(), "stale");
  }
  ASSERT_TRUE(bed.origin.wait_for("/p", 2));
  bed.origin.let_go("/p");
  for (int i = 0; i < 1000 && bed.ask("HEAD", "/p").state() != "hit"; ++i)
    std::this_thread::sleep_for(2ms);
  EXPECT_EQ(bed.get("/p").body, "/p 2");
  EXPECT_EQ(bed.origin.count("/p"), 2U);
  EXPECT_EQ(bed.origin.requests("/p").back().method, "GET");
}

TEST(GatewayPages, BadTargetsAreRefusedByName) {
  GatewayBed bed;
  const Reply refused = bed.get("/a/../b");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, Not(IsEmpty()));
  EXPECT_EQ(refused.field("cache-control"), "no-store");
}

TEST(GatewayPages, AReloadTakesEffectWithTheNextRequest) {
  GatewayBed bed;
  bed.get("/a");
  EXPECT_THAT(bed.service->reload(bed.config("[[routes]]\npattern = \"/a\"\ncache = false\n")), IsEmpty());
  for (int i = 0; i < 1000 && bed.get("/a").state() != "pass"; ++i)
    std::this_thread::sleep_for(2ms);
  EXPECT_EQ(bed.get("/a").state(), "pass");
  EXPECT_THAT(bed.service->reload(bed.config("memory = \"2 MiB\"\n")), testing::ElementsAre("memory"));
}

}  // namespace
}  // namespace facetheory
