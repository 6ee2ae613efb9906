// Which origin is asked, how, and by whose word a page is regenerated; through a whole gateway.
#include <atomic>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gateway_bed.h"
#include "tests/support/scripted_server.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_certificates.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::GatewayBed;
using test::http_answer;
using test::Reply;
using test::ScriptedServer;
using testing::HasSubstr;
using testing::SizeIs;

TEST(GatewayOrigins, AreChosenByHostAndRoute) {
  ScriptedServer shop(test::answer_in_turn({http_answer(200, "shop")}));
  ScriptedServer news(test::answer_in_turn({http_answer(200, "news")}));
  GatewayBed bed("[origins.shop]\nurl = \"" + shop.url() + "\"\nhost = \"origin\"\n[origins.news]\nurl = \"" +
                 news.url() +
                 "\"\nhost = \"www.news.example\"\n"
                 "[[routes]]\npattern = \"/*\"\nhosts = [\"shop.example\"]\norigin = \"shop\"\n"
                 "[[routes]]\npattern = \"/news/*\"\norigin = \"news\"\n[[routes]]\npattern = \"/*\"\n");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(bed.get("/news/1", {{"Host", "shop.example"}}).body, "shop");
    EXPECT_EQ(bed.get("/news/1").body, "news");
    EXPECT_EQ(bed.get("/other").body, "/other 1");
    EXPECT_EQ(bed.ask("POST", "/news/form", {}, "x").body, "news");
  }
  ASSERT_THAT(shop.requests(), SizeIs(1));
  EXPECT_THAT(shop.requests().front(),
              HasSubstr("\r\nHost: 127.0.0.1:" + std::to_string(shop.port()) + "\r\n"));
  EXPECT_THAT(shop.requests().front(), HasSubstr("X-Forwarded-Host: shop.example\r\n"));
  EXPECT_THAT(news.requests().front(), HasSubstr("\r\nHost: www.news.example\r\n"));
}

TEST(GatewayOrigins, AreSpokenToOverTlsIfTheirCertificateIsGood) {
  const test::TestAuthority authority;
  const test::TemporaryDirectory folder;
  const std::string roots = folder.write("roots.pem", authority.root_pem());
  ScriptedServer good(test::answer_in_turn({http_answer(200, "secret")}), authority.issue("localhost"));
  ScriptedServer bad(test::answer_in_turn({http_answer(200, "secret")}),
                     authority.issue("elsewhere.example"));
  GatewayBed bed("[origins.good]\nurl = \"" + good.url() + "\"\nca_file = \"" + roots +
                 "\"\n[origins.bad]\nurl = \"" + bad.url() + "\"\nca_file = \"" + roots +
                 "\"\n[[routes]]\npattern = \"/good\"\norigin = \"good\"\n[[routes]]\npattern = "
                 "\"/bad\"\norigin = \"bad\"\n");
  EXPECT_EQ(bed.get("/good").body, "secret");
  EXPECT_EQ(bed.ask("POST", "/good", {}, "x").body, "secret");
  const Reply refused = bed.get("/bad");
  EXPECT_EQ(refused.status, 502);
  EXPECT_EQ(refused.body.find("elsewhere"), std::string::npos)
      << "what is behind the gateway is nobody's business";
  EXPECT_THAT(bad.requests(), SizeIs(0));
}

TEST(GatewayOrigins, ARequestIdOfATrustedPeerRegeneratesOnce) {
  GatewayBed bed("trusted_peers = [\"127.0.0.1\"]\n[defaults]\nrevalidate = \"10s\"\nmode = \"blocking\"\n");
  bed.get("/a");
  bed.get("/b");
  bed.clock.advance(11s);
  const Headers id{{"X-Request-Id", "message-1"}};
  EXPECT_EQ(bed.get("/a", id).body, "/a 2");
  EXPECT_EQ(bed.get("/a", id).body, "/a 2");
  bed.clock.advance(11s);
  // The queue delivers it once more: it has been done, and is not done again.
  EXPECT_EQ(bed.get("/a", id).body, "/a 2");
  EXPECT_EQ(bed.origin.count("/a"), 2U);
  // Another page's request under the same id is its own.
  EXPECT_EQ(bed.get("/b", id).body, "/b 2");
}

TEST(GatewayOrigins, ARequestIdBelongsToItsDeployAndItsPolicy) {
  const std::string trusted = "trusted_peers = [\"127.0.0.1\"]\n";
  const std::string defaults = "[defaults]\nmode = \"blocking\"\nrevalidate = ";
  GatewayBed bed(trusted + defaults + "\"10s\"\n");
  const Headers id{{"X-Request-Id", "message-1"}};
  EXPECT_EQ(bed.get("/a", id).body, "/a 1");
  bed.clock.advance(11s);
  bed.service->reload(bed.config(trusted + defaults + "\"20s\"\n"));
  EXPECT_GE(bed.get("/a", id).status, 400) << "the id stands for a page that is fresh for 10 s";
  EXPECT_EQ(bed.origin.count("/a"), 1U);
  // Also of a page that is gone: what is wrong is the id, and nothing that goes away by itself.
  EXPECT_EQ(bed.ask("POST", "/a", {{"Host", "site"}}, "x").status, 200);
  const auto refused = bed.get("/a", id);
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("x-request-id"));
  EXPECT_THAT(refused.body, HasSubstr("policy"));
  bed.service->reload(bed.config("deploy_id = \"second\"\n" + trusted + defaults + "\"20s\"\n"));
  EXPECT_EQ(bed.get("/a", id).body, "/a 3");
  bed.clock.advance(21s);
  EXPECT_EQ(bed.get("/a", id).body, "/a 3");
  const std::string versions = "deploy_id = \"second\"\npolicy_version = \"2\"\n";
  bed.service->reload(bed.config(versions + trusted + defaults + "\"20s\"\n"));
  EXPECT_EQ(bed.get("/a", id).body, "/a 4") << "under another policy version it is another request";
}

TEST(GatewayOrigins, AStrangersRequestIdMeansNothing) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\nmode = \"blocking\"\n");
  const Headers id{{"X-Request-Id", "message-1"}};
  bed.get("/a", id);
  bed.clock.advance(11s);
  EXPECT_EQ(bed.get("/a", id).body, "/a 2");
}

}  // namespace
}  // namespace facetheory
