#include "facetheory/rules/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(EndToEnd, RemovesWhatConcernsOneConnectionAndWhatConnectionNames) {
  EXPECT_EQ(end_to_end({{"Connection", "close, X-Hop"},
                        {"connection", "x-other"},
                        {"Keep-Alive", "timeout=5"},
                        {"TE", "trailers"},
                        {"Trailer", "x"},
                        {"Transfer-Encoding", "chunked"},
                        {"Upgrade", "h2c"},
                        {"Proxy-Connection", "close"},
                        {"Proxy-Authenticate", "Basic"},
                        {"Proxy-Authorization", "x"},
                        {"x-hop", "1"},
                        {"X-Other", "2"},
                        {"X-Kept", "3"}}),
            (Headers{{"X-Kept", "3"}}));
}

TEST(EndToEnd, WhatGuardsThePageCannotBeNamedAway) {
  const Headers guarded{
      {"Host", "h"},           {"Cookie", "c"},     {"Authorization", "a"}, {"Cache-Control", "private"},
      {"Content-Length", "1"}, {"Set-Cookie", "s"}, {"Vary", "*"}};
  Headers sent = guarded;
  sent.add("Connection", "host, cookie, authorization, cache-control, content-length, Set-Cookie, VARY");
  EXPECT_EQ(end_to_end(sent), guarded);
}

TEST(WorthStoring, KeepsTheFieldsOfThePageInLowerCase) {
  const ReplayedHeaders kept = worth_storing({{"Content-Type", "text/html"},
                                              {"Location", "/x"},
                                              {"Link", "<a>"},
                                              {"LINK", " <b> "},
                                              {"Cache-Tag", "t"},
                                              {"Via", "1.1 x"}});
  EXPECT_EQ(kept.content_type, "text/html");
  EXPECT_THAT(kept.headers, ElementsAre(Pair("location", "/x"), Pair("link", "<a>"), Pair("link", "<b>"),
                                        Pair("cache-tag", "t"), Pair("via", "1.1 x")));
}

TEST(WorthStoring, DropsWhatIsOfOneAnswerOrOfOneClient) {
  EXPECT_EQ(worth_storing({{"Content-Length", "5"},
                           {"Age", "3"},
                           {"ETag", "\"x\""},
                           {"Set-Cookie", "a=b"},
                           {"Authentication-Info", "x"},
                           {"X-Facetheory-Isr", "hit"},
                           {"Transfer-Encoding", "chunked"}}),
            ReplayedHeaders{});
}

TEST(WorthStoring, DropsWhatTheOriginWithholdsAndWhatIsNotWellFormed) {
  EXPECT_EQ(worth_storing({{"X-User", "u"}, {"bad name", "x"}, {"x-evil", "a\r\nb: c"}}, {"x-user"}),
            ReplayedHeaders{});
}

TEST(Freshened, TakesTheFieldsOfThe304InPlaceOfStoredOnes) {
  const ReplayedHeaders stored{"text/html",
                               {{"x-a", "1"}, {"link", "<a>"}, {"link", "<b>"}, {"content-encoding", "br"}}};
  const ReplayedHeaders fresh = freshened(stored, {{"Link", "<c>"},
                                                   {"Content-Encoding", "gzip"},
                                                   {"Content-Length", "0"},
                                                   {"X-New", "n"},
                                                   {"ETag", "\"e\""}});
  EXPECT_EQ(fresh.content_type, "text/html");
  EXPECT_THAT(fresh.headers, ElementsAre(Pair("x-a", "1"), Pair("content-encoding", "br"),
                                         Pair("link", "<c>"), Pair("x-new", "n")));
}

TEST(Freshened, ForgetsWhatThe304Withholds) {
  EXPECT_EQ(freshened({"", {{"x-user", "u"}, {"x-a", "1"}}}, {{"X-User", "v"}}, {"x-user"}),
            (ReplayedHeaders{"", {{"x-a", "1"}}}));
}

TEST(Freshened, StoresNoCookieOfA304) {
  EXPECT_EQ(freshened({}, {{"Set-Cookie", "a=b"}}), ReplayedHeaders{});
}

TEST(Freshened, ChangesNothingWithoutFields) {
  const ReplayedHeaders stored{"text/html", {{"x-a", "1"}}};
  EXPECT_EQ(freshened(stored, {}), stored);
}

TEST(SentToClients, SendsNothingThatIsTheServersOwnToSay) {
  for (const char* name :
       {"content-length", "Transfer-Encoding", "connection", "keep-alive", "upgrade", "etag", "set-cookie"})
    EXPECT_FALSE(sent_to_clients(name)) << name;
}

TEST(SentToClients, KeepsTagsToItself) {
  for (const char* name : {"cache-tag", "Surrogate-Key", "surrogate-control", "age"})
    EXPECT_FALSE(sent_to_clients(name)) << name;
  EXPECT_TRUE(sent_to_clients("cache-control"));
  EXPECT_TRUE(sent_to_clients("cache-groups"));
}

TEST(SentWithNotModified, LeavesOutWhatDescribesABody) {
  for (const char* name : {"content-type", "Content-Encoding", "content-language", "cache-tag"})
    EXPECT_FALSE(sent_with_not_modified(name)) << name;
  for (const char* name :
       {"content-location", "content-security-policy", "vary", "cache-control", "date", "expires"})
    EXPECT_TRUE(sent_with_not_modified(name)) << name;
}

}  // namespace
}  // namespace facetheory
