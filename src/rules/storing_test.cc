#include "facetheory/rules/storing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/http/http_date.h"

namespace facetheory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kAsked = 1'790'000'000;
constexpr ExchangeTimes kAtOnce{kAsked, kAsked};

std::string date_at(std::int64_t offset) {
  return format_http_date(kAsked + offset);
}

StorePolicy route_of(int revalidate) {
  StorePolicy policy;
  policy.revalidate = std::chrono::seconds(revalidate);
  return policy;
}

// A GET without anything, answered at once, on a route without a window of its own.
StoreDecision decide(const Headers& response, int status = 200, const StorePolicy& policy = {}) {
  return decide_store("GET", {}, status, response, kAtOnce, policy);
}

TEST(Storing, MaxAgeIsTheWindow) {
  const StoreDecision decision = decide({{"Cache-Control", "max-age=60"}});
  EXPECT_TRUE(decision.store);
  EXPECT_EQ(decision.source, LifetimeSource::max_age);
  EXPECT_EQ(decision.revalidate, 60);
  EXPECT_EQ(decision.fresh_until, kAsked + 60);
  EXPECT_EQ(decision.reason, "fresh for 60 s by max-age");
}

TEST(Storing, SMaxageGoesBeforeMaxAgeAndMaxAgeBeforeExpires) {
  const std::string expires = date_at(5);
  EXPECT_EQ(decide({{"Cache-Control", "max-age=60, s-maxage=10"}, {"Expires", expires}}).revalidate, 10);
  EXPECT_EQ(decide({{"Cache-Control", "max-age=60"}, {"Expires", expires}}).revalidate, 60);
  EXPECT_EQ(decide({{"Expires", expires}}).revalidate, 5);
}

TEST(Storing, ATargetedFieldGoesBeforeAllOthers) {
  const StoreDecision decision = decide(
      {{"Cache-Control", "no-store, s-maxage=1"}, {"Expires", "0"}, {"CDN-Cache-Control", "max-age=60"}});
  EXPECT_TRUE(decision.store);
  EXPECT_EQ(decision.revalidate, 60);
  EXPECT_EQ(decision.source, LifetimeSource::targeted);
}

TEST(Storing, ATargetedFieldCanForbidWhatCacheControlAllows) {
  EXPECT_FALSE(decide({{"Cache-Control", "max-age=60"}, {"CDN-Cache-Control", "no-store"}}).store);
  EXPECT_FALSE(decide({{"Cache-Control", "max-age=60"}, {"CDN-Cache-Control", "private"}}).store);
}

TEST(Storing, ATargetedFieldThatIsNotWellFormedIsNotThere) {
  EXPECT_FALSE(decide({{"Cache-Control", "no-store"}, {"CDN-Cache-Control", "max-age=10000, &&&&&"}}).store);
  EXPECT_EQ(decide({{"Cache-Control", "max-age=60"}, {"CDN-Cache-Control", ""}}).revalidate, 60);
}

TEST(Storing, ATargetedFieldWithoutALifetimeLeavesItToTheRouteNotToExpires) {
  const StoreDecision decision =
      decide({{"Expires", date_at(500)}, {"Cache-Control", "max-age=400"}, {"CDN-Cache-Control", "none"}},
             200, route_of(7));
  EXPECT_EQ(decision.revalidate, 7);
  EXPECT_EQ(decision.source, LifetimeSource::route);
}

TEST(Storing, TheFirstTargetedFieldOfTheListCounts) {
  StorePolicy policy;
  policy.targeted = {"Mine-Cache-Control", "CDN-Cache-Control"};
  const Headers both{{"CDN-Cache-Control", "max-age=1"}, {"Mine-Cache-Control", "max-age=2"}};
  EXPECT_EQ(decide(both, 200, policy).revalidate, 2);
  EXPECT_EQ(decide(both).revalidate, 1);
}

TEST(Storing, TheRouteDecidesOnlyWhereTheOriginSaysNothing) {
  EXPECT_EQ(decide({}, 200, route_of(30)).revalidate, 30);
  EXPECT_EQ(decide({{"Cache-Control", "public"}}, 200, route_of(30)).revalidate, 30);
  EXPECT_EQ(decide({{"Cache-Control", "max-age=0"}}, 200, route_of(30)).revalidate, 0);
  EXPECT_EQ(decide({{"Cache-Control", "max-age=junk"}}, 200, route_of(30)).revalidate, 0);
  EXPECT_EQ(decide({{"Expires", "0"}}, 200, route_of(30)).revalidate, 0);
}

TEST(Storing, WhatNobodyGivesALifetimeIsNotStored) {
  for (const Headers& response :
       {Headers{}, Headers{{"ETag", "\"a\""}}, Headers{{"Cache-Control", "public"}},
        Headers{{"Cache-Control", "must-revalidate, stale-while-revalidate=60"}},
        Headers{{"CDN-Cache-Control", "public"}, {"Cache-Control", "max-age=60"}}}) {
    EXPECT_FALSE(decide(response).store);
    EXPECT_EQ(decide(response).reason, "nothing says how long it is fresh");
    EXPECT_TRUE(decide(response, 200, route_of(30)).store);
  }
}

TEST(Storing, WhatWithholdsAFieldByWhichItIsJudgedIsNotStored) {
  for (const char* control :
       {"max-age=60, must-revalidate, no-cache=\"cache-control\"", "no-cache=\"expires\"",
        "private=\"Expires\"", "max-age=60, private=\"x-a, vary\""}) {
    const Headers response{{"Cache-Control", control}, {"Expires", date_at(60)}, {"Vary", "Accept-Language"}};
    EXPECT_EQ(decide(response, 200, route_of(60)).reason, "it withholds a field by which it is judged")
        << control;
  }
  const Headers other{{"Cache-Control", "max-age=60, no-cache=\"x-a\""}, {"X-A", "1"}};
  EXPECT_TRUE(decide(other).store);
  const Headers named{{"CDN-Cache-Control", "max-age=60"}, {"Connection", "CDN-Cache-Control"}};
  EXPECT_TRUE(decide(named).store);
}

TEST(Storing, WhatIsToBeValidatedEachTimeIsStoredForThat) {
  const StoreDecision decision = decide({{"ETag", "\"a\""}, {"Cache-Control", "no-cache"}});
  EXPECT_TRUE(decision.store);
  EXPECT_EQ(decision.revalidate, 0);
  EXPECT_EQ(decision.source, LifetimeSource::none);
  EXPECT_THAT(decision.reason, HasSubstr("validation only"));
}

TEST(Storing, AnExpiresThatIsNoDateHasExpired) {
  for (const char* value :
       {"0", "-1", "", "tomorrow", "Thu, 18 Aug 2050 02:01:18 UTC", "Thu, 18 Aug 2050 2:01:18 GMT"}) {
    const StoreDecision decision = decide({{"Expires", value}});
    EXPECT_EQ(decision.revalidate, 0) << value;
    EXPECT_EQ(decision.source, LifetimeSource::expires) << value;
  }
}

TEST(Storing, ExpiresIsMeasuredFromDate) {
  EXPECT_EQ(decide({{"Date", date_at(-100)}, {"Expires", date_at(-40)}}).lifetime, 60);
  EXPECT_EQ(decide({{"Date", date_at(-100)}, {"Expires", date_at(-40)}}).revalidate, 0);
  EXPECT_EQ(decide({{"Date", date_at(0)}, {"Expires", date_at(-1)}}).lifetime, 0);
  // A server whose clock is ahead.
  EXPECT_EQ(decide({{"Date", date_at(1000)}, {"Expires", date_at(1060)}}).revalidate, 60);
}

TEST(Storing, ExpiresIsMeasuredFromArrivalWithoutAUsableDate) {
  for (const char* date : {"", "yesterday", "0"})
    EXPECT_EQ(decide({{"Date", date}, {"Expires", date_at(60)}}).revalidate, 60) << date;
  EXPECT_EQ(decide({{"Expires", date_at(60)}}).revalidate, 60);
}

TEST(Storing, TheFirstExpiresCounts) {
  EXPECT_EQ(decide({{"Expires", date_at(10)}, {"Expires", date_at(500)}}).revalidate, 10);
  EXPECT_EQ(decide({{"Expires", "0"}, {"Expires", date_at(500)}}).revalidate, 0);
}

TEST(Storing, ADistantExpiresIsCappedNotOverflown) {
  EXPECT_EQ(decide({{"Expires", "Fri, 31 Dec 9999 23:59:59 GMT"}}).lifetime, kMaxDeltaSeconds);
}

TEST(Storing, TheAgeOnArrivalShortensTheWindow) {
  const StoreDecision decision = decide({{"Cache-Control", "max-age=60"}, {"Age", "20"}});
  EXPECT_EQ(decision.age, 20);
  EXPECT_EQ(decision.lifetime, 60);
  EXPECT_EQ(decision.revalidate, 40);
  EXPECT_THAT(decision.replayed.headers, testing::Contains(Pair("age", "20")));
}

TEST(Storing, APageThatArrivesTooOldIsStaleSinceBefore) {
  const StoreDecision decision =
      decide({{"Cache-Control", "max-age=60, stale-while-revalidate=100"}, {"Age", "90"}});
  EXPECT_TRUE(decision.store);
  EXPECT_EQ(decision.revalidate, 0);
  EXPECT_EQ(decision.fresh_until, kAsked - 30);
}

TEST(Storing, AnAgeThatMakesNoSenseIsIgnored) {
  for (const char* age : {"", "-1", "abc", "7.5", "10s", "10;x=1", "'10'", "\"10\""})
    EXPECT_EQ(decide({{"Cache-Control", "max-age=60"}, {"Age", age}}).revalidate, 60) << age;
}

TEST(Storing, TheFirstOfSeveralAgesCounts) {
  EXPECT_EQ(decide({{"Cache-Control", "max-age=60"}, {"Age", "10"}, {"Age", "50"}}).revalidate, 50);
  EXPECT_EQ(decide({{"Cache-Control", "max-age=60"}, {"Age", "10, 50"}}).revalidate, 50);
}

TEST(Storing, AHugeAgeIsOldNotNegative) {
  const StoreDecision decision = decide({{"Cache-Control", "max-age=60"}, {"Age", "99999999999999999999"}});
  EXPECT_EQ(decision.age, kMaxDeltaSeconds);
  EXPECT_EQ(decision.revalidate, 0);
}

TEST(Storing, AnOldDateIsAnAgeToo) {
  EXPECT_EQ(decide({{"Cache-Control", "max-age=60"}, {"Date", date_at(-25)}}).revalidate, 35);
  EXPECT_EQ(decide({{"Cache-Control", "max-age=60"}, {"Date", date_at(-25)}, {"Age", "30"}}).revalidate, 30);
  EXPECT_EQ(decide({{"Cache-Control", "max-age=60"}, {"Date", date_at(+25)}}).revalidate, 60);
}

TEST(Storing, TheWindowBeginsWhenThePageWasAskedFor) {
  const ExchangeTimes slow{kAsked, kAsked + 8};
  const auto at = [&](Headers response) {
    response.add("Cache-Control", "max-age=60");
    return decide_store("GET", {}, 200, response, slow, {});
  };
  // Made on arrival, or while it was under way: what is not known counts as age.
  EXPECT_EQ(at({}).revalidate, 60);
  EXPECT_EQ(at({{"Date", date_at(8)}}).revalidate, 60);
  EXPECT_EQ(at({{"Date", date_at(0)}}).revalidate, 60);
  EXPECT_EQ(at({{"Date", date_at(-5)}}).revalidate, 55);
  EXPECT_EQ(at({{"Age", "5"}}).revalidate, 55);
  EXPECT_EQ(corrected_initial_age({{"Age", "5"}}, slow), 13);
  EXPECT_EQ(corrected_initial_age({{"Date", date_at(-5)}}, slow), 13);
  EXPECT_EQ(corrected_initial_age({}, slow), 8);
}

TEST(Storing, AClockThatJumpsBackMakesNothingYounger) {
  EXPECT_EQ(
      decide_store("GET", {}, 200, {{"Cache-Control", "max-age=60"}}, {kAsked, kAsked - 100}, {}).revalidate,
      60);
}

TEST(Storing, NeverStoresWhatTheOriginForbids) {
  for (const char* value : {"no-store", "private", "max-age=60, private", "s-maxage=60, no-store",
                            "no-store=x", "public, private", "no-store; max-age=60"})
    EXPECT_FALSE(decide({{"Cache-Control", value}}, 200, route_of(60)).store) << value;
}

TEST(Storing, AnEventStreamHasNoEndThatCouldBeStored) {
  for (const char* type : {"text/event-stream", "Text/Event-Stream; charset=utf-8"}) {
    const StoreDecision decision = decide({{"Cache-Control", "max-age=60"}, {"Content-Type", type}});
    EXPECT_FALSE(decision.store) << type;
    EXPECT_EQ(decision.reason, "it is an event stream");
  }
  EXPECT_TRUE(decide({{"Cache-Control", "max-age=60"}, {"Content-Type", "text/event-streams"}}).store);
}

TEST(Storing, NeverStoresACookie) {
  const StoreDecision decision = decide({{"Cache-Control", "public, max-age=60"}, {"set-cookie", "a=b"}});
  EXPECT_FALSE(decision.store);
  EXPECT_EQ(decision.reason, "it sets a cookie");
  EXPECT_FALSE(
      decide({{"Cache-Control", "max-age=60, no-cache=\"set-cookie\""}, {"Set-Cookie", "a=b"}}).store);
}

TEST(Storing, ConnectionCannotNameTheCookieAway) {
  EXPECT_FALSE(
      decide({{"Cache-Control", "max-age=60"}, {"Set-Cookie", "a"}, {"Connection", "set-cookie"}}).store);
}

TEST(Storing, NeverStoresWhatHasNoKey) {
  EXPECT_FALSE(decide({{"Cache-Control", "max-age=60"}, {"Vary", "Foo, *"}}).store);
  EXPECT_THAT(decide({{"Cache-Control", "max-age=60"}, {"Vary", "Foo , accept"}}).vary,
              ElementsAre("accept", "foo"));
}

TEST(Storing, StoresAnswersToGetOnly) {
  for (const char* method : {"HEAD", "POST", "PUT", "get", "OPTIONS"})
    EXPECT_FALSE(decide_store(method, {}, 200, {{"Cache-Control", "max-age=60"}}, kAtOnce, {}).store)
        << method;
}

TEST(Storing, ARequestWithNoStoreIsNotStored) {
  EXPECT_FALSE(decide_store("GET", {{"Cache-Control", "no-store"}}, 200, {{"Cache-Control", "max-age=60"}},
                            kAtOnce, {})
                   .store);
}

TEST(Storing, AnswersToAuthorizationAreStoredOnlyWhenTheyAreForEveryone) {
  const auto stored = [](const char* control) {
    return decide_store("GET", {{"Authorization", "Bearer x"}}, 200, {{"Cache-Control", control}}, kAtOnce,
                        route_of(60))
        .store;
  };
  EXPECT_TRUE(stored("public, max-age=60"));
  EXPECT_TRUE(stored("s-maxage=60"));
  EXPECT_TRUE(stored("must-revalidate, max-age=60"));
  EXPECT_FALSE(stored("max-age=60"));
  EXPECT_FALSE(stored("proxy-revalidate, max-age=60"));
  EXPECT_FALSE(stored(""));
}

TEST(Storing, NeverStoresFailuresOrParts) {
  for (const int status : {100, 103, 206, 304, 500, 501, 502, 503, 504, 599})
    EXPECT_FALSE(decide({{"Cache-Control", "public, max-age=60"}}, status, route_of(60)).store) << status;
}

TEST(Storing, NeverStoresWhatIsTheFaultOfOneRequest) {
  for (const int status : {400, 401, 403, 405, 413, 414, 416, 421, 429, 431, 451, 499})
    EXPECT_FALSE(decide({{"Cache-Control", "public, max-age=60"}}, status, route_of(60)).store) << status;
}

TEST(Storing, MissingPagesHaveAShortWindowOfTheirOwn) {
  EXPECT_EQ(decide({}, 404, route_of(600)).revalidate, 10);
  EXPECT_EQ(decide({}, 410, route_of(600)).revalidate, 60);
  EXPECT_EQ(decide({{"Cache-Control", "max-age=300"}}, 404, route_of(600)).revalidate, 300);
  StorePolicy never;
  never.not_found = std::chrono::seconds(0);
  EXPECT_FALSE(decide({{"Cache-Control", "max-age=300"}}, 404, never).store);
  EXPECT_TRUE(decide({}, 410, never).store);
}

TEST(Storing, RedirectsKeepTheirLocation) {
  const StoreDecision moved = decide({{"Location", "/new"}}, 301, route_of(60));
  EXPECT_EQ(moved.revalidate, 60);
  EXPECT_THAT(moved.replayed.headers, testing::Contains(Pair("location", "/new")));
}

TEST(Storing, TemporaryRedirectsAreStoredOnlyForAsLongAsTheOriginSays) {
  for (const int status : {302, 303, 307, 201, 202, 299}) {
    EXPECT_FALSE(decide({}, status, route_of(60)).store) << status;
    EXPECT_EQ(decide({{"Cache-Control", "max-age=5"}}, status, route_of(60)).revalidate, 5) << status;
    EXPECT_EQ(decide({{"Cache-Control", "public"}}, status, route_of(60)).revalidate, 60) << status;
  }
}

TEST(Storing, MustUnderstandOverrulesNoStoreWhereTheStatusIsKnown) {
  EXPECT_TRUE(decide({{"Cache-Control", "must-understand, no-store, max-age=60"}}).store);
  EXPECT_FALSE(decide({{"Cache-Control", "must-understand, no-store, max-age=60"}}, 299).store);
  EXPECT_FALSE(decide({{"Cache-Control", "must-understand, max-age=60"}}, 299).store);
  EXPECT_TRUE(decide({{"Cache-Control", "max-age=60"}}, 299).store);
}

TEST(Storing, NoCacheIsStoredButNeverFresh) {
  const StoreDecision decision = decide({{"Cache-Control", "no-cache, max-age=60"}, {"ETag", "\"a\""}});
  EXPECT_TRUE(decision.store);
  EXPECT_EQ(decision.revalidate, 0);
  EXPECT_TRUE(decision.stale.forbidden);
  EXPECT_THAT(decision.reason, HasSubstr("no-cache"));
}

TEST(Storing, QualifiedDirectivesWithholdOnlyTheirFields) {
  const StoreDecision decision =
      decide({{"Cache-Control", "max-age=60, private=\"X-User\", no-cache=\"x-token\""},
              {"X-User", "u"},
              {"X-Token", "t"},
              {"X-Page", "p"}});
  EXPECT_TRUE(decision.store);
  EXPECT_EQ(decision.revalidate, 60);
  EXPECT_THAT(decision.replayed.headers, testing::Contains(Pair("x-page", "p")));
  EXPECT_THAT(decision.replayed.headers, testing::Not(testing::Contains(Pair("x-user", "u"))));
  EXPECT_THAT(decision.replayed.headers, testing::Not(testing::Contains(Pair("x-token", "t"))));
}

TEST(StaleRules, AreTheOriginsWhereItSpeaks) {
  EXPECT_EQ(decide({{"Cache-Control", "max-age=1, stale-while-revalidate=30, stale-if-error=60"}}).stale,
            (StaleRules{false, 30, 60}));
  EXPECT_EQ(decide({{"Cache-Control", "max-age=1"}}).stale, StaleRules{});
}

TEST(StaleRules, ForbidWhatTheOriginWantsValidated) {
  for (const char* value : {"must-revalidate", "proxy-revalidate", "no-cache"}) {
    const std::string control =
        std::string("max-age=1, stale-while-revalidate=30, stale-if-error=9, ") + value;
    EXPECT_EQ(decide({{"Cache-Control", control}}).stale, (StaleRules{true, {}, {}})) << value;
  }
}

TEST(StaleRules, SMaxageForbidsAllButWhatStandsBesideIt) {
  EXPECT_TRUE(decide({{"Cache-Control", "s-maxage=60"}}).stale.forbidden);
  EXPECT_EQ(decide({{"Cache-Control", "s-maxage=60, stale-while-revalidate=5"}}).stale,
            (StaleRules{false, 5, 0}));
  StorePolicy lenient;
  lenient.s_maxage_forbids_stale = false;
  EXPECT_EQ(decide({{"Cache-Control", "s-maxage=60"}}, 200, lenient).stale, StaleRules{});
}

TEST(StaleRules, ABareStaleWhileRevalidateIsForAsLongAsThePolicySays) {
  const Headers framework{{"Cache-Control", "s-maxage=60, stale-while-revalidate"}};
  EXPECT_EQ(decide(framework).stale.while_revalidate, 365 * 24 * 3600);
  StorePolicy policy;
  policy.bare_stale_while_revalidate.reset();
  EXPECT_TRUE(decide(framework, 200, policy).stale.forbidden);
  policy.bare_stale_while_revalidate = std::chrono::seconds(3600);
  EXPECT_EQ(decide(framework, 200, policy).stale, (StaleRules{false, 3600, 0}));
}

TEST(Tags, ComeFromAllFieldsThatCarryThem) {
  StorePolicy policy = route_of(60);
  policy.origin = "https://example.com";
  const StoreDecision decision = decide({{"Cache-Tag", "a, b,,a"},
                                         {"cache-tag", "c"},
                                         {"Surrogate-Key", " d  e\tb "},
                                         {"Cache-Groups", "\"g, 1\", \"h\";x, token, 5"}},
                                        200, policy);
  EXPECT_THAT(decision.tags, UnorderedElementsAre("a", "b", "c", "d", "e", "group:https://example.com g, 1",
                                                  "group:https://example.com h"));
}

TEST(Tags, OfAGroupFieldThatIsNotWellFormedAreNone) {
  EXPECT_THAT(decide({{"Cache-Groups", "\"a\", &"}}, 200, route_of(60)).tags, IsEmpty());
}

TEST(Tags, ThatCannotAllBeKeptKeepThePageOut) {
  std::string many;
  for (int i = 0; i < 101; ++i)
    many += "t" + std::to_string(i) + " ";
  const StoreDecision too_many = decide({{"Surrogate-Key", many}}, 200, route_of(60));
  EXPECT_FALSE(too_many.store);
  EXPECT_THAT(too_many.reason, HasSubstr("101 tags"));
  EXPECT_FALSE(decide({{"Cache-Tag", std::string(513, 'x')}}, 200, route_of(60)).store);
  EXPECT_FALSE(decide({{"Cache-Tag", "\xFF"}}, 200, route_of(60)).store);
}

TEST(Validators, AreTakenOnlyWhereTheyMakeSense) {
  const StoreDecision good =
      decide({{"ETag", " W/\"a\" "}, {"Last-Modified", date_at(-50)}}, 200, route_of(60));
  EXPECT_EQ(good.etag, "W/\"a\"");
  EXPECT_EQ(good.last_modified, kAsked - 50);
  const StoreDecision bad = decide({{"ETag", "abc"}, {"Last-Modified", "soon"}}, 200, route_of(60));
  EXPECT_EQ(bad.etag, std::nullopt);
  EXPECT_EQ(bad.last_modified, std::nullopt);
  EXPECT_EQ(decide({{"ETag", "\"a\""}, {"ETag", "\"b\""}}, 200, route_of(60)).etag, std::nullopt);
}

TEST(Replayed, HasExactlyOneDateThatMakesSense) {
  const auto replayed = [](const Headers& response) {
    return decide(response, 200, route_of(60)).replayed.headers;
  };
  EXPECT_THAT(replayed({}), ElementsAre(Pair("date", date_at(0))));
  EXPECT_THAT(replayed({{"Date", "junk"}}), ElementsAre(Pair("date", date_at(0))));
  EXPECT_THAT(replayed({{"Date", date_at(3)}, {"Date", date_at(9)}}), ElementsAre(Pair("date", date_at(3))));
}

}  // namespace
}  // namespace facetheory
