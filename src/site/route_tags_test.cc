#include "facetheory/site/route_tags.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/http/normal_form.h"
#include "facetheory/site/page_key.h"
#include "facetheory/site/read_config.h"

namespace facetheory {
namespace {

using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Optional;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

Config config_with_tags() {
  auto read = read_config(R"(
origin = "http://127.0.0.1:3000"
trusted_peers = ["127.0.0.1"]
[[routes]]
pattern = "/news/{slug}"
hosts = ["example.com"]
key = "facetheory"
tags = ["news", "article-{slug}"]
[[routes]]
pattern = "/docs/{proxy*}"
hosts = ["example.com"]
key = "facetheory"
tags = ["docs", "docs-{proxy}"]
[[routes]]
pattern = "/shop/{z}/{proxy*}"
hosts = ["example.com"]
key = "facetheory"
tags = ["shop-{z}", "below-{proxy}"]
[[routes]]
pattern = "/plain/{slug}"
tags = ["plain", "plain-{slug}"]
[[routes]]
pattern = "/plain/passed"
cache = false
[[routes]]
pattern = "/hosted/{slug}"
tenant = "host"
tags = ["hosted"]
[[routes]]
pattern = "/named/{slug}"
tenant = "header:x-org"
tags = ["named"]
[[routes]]
pattern = "/none"
hosts = ["example.com"]
key = "facetheory"
)",
                          "facetheory.toml");
  EXPECT_TRUE(read) << read.error().message;
  return *std::move(read);
}

std::optional<std::vector<std::string>> tags_of_pk(std::string pk) {
  return RouteTags(config_with_tags()).of(Page{.pk = std::move(pk)});
}

std::optional<std::vector<std::string>> tags_of_url(std::string_view url, std::string_view tenant = {}) {
  return RouteTags(config_with_tags()).of(*page_of(url, tenant));
}

// What the gateway makes of a GET of that target.
PageKey key_of_request(const Config& config, const std::string& target) {
  const RouteTable routes = route_table(config);
  const std::size_t mark = std::min(target.find('?'), target.size());
  const std::string sent = target.substr(0, mark);
  const std::string path = *normalise_path(sent);
  const auto match = routes.match("example.com", "GET", path);
  const Headers none;
  PageRequest request{.headers = none, .host = "example.com", .path = path};
  const std::string query = target.substr(std::min(mark + 1, target.size()));
  request.query = query;
  request.sent_path = sent;
  auto key = page_key(config, config.routes[match->route], match->variables, request);
  return std::get<PageKey>(*std::move(key));
}

TEST(RouteTags, AreFilledFromTheParamsThatFaceTheorysKeyNames) {
  EXPECT_THAT(tags_of_pk("CACHE#acme::/news/{slug}?slug=a%2520b&page=2#auth=0&cookies=1"),
              Optional(UnorderedElementsAre("news", "article-a b")));
  EXPECT_THAT(tags_of_pk("CACHE#default::/none?"), Optional(IsEmpty()));
}

TEST(RouteTags, AreThoseThatTheGatewayGivesARequestForThePage) {
  const Config config = config_with_tags();
  const RouteTags by_route(config);
  for (const char* target : {"/news/plain",
                             "/news/e%20g",
                             "/news/caf%C3%A9",
                             "/news/caf%c3%a9",
                             "/news/caf\xC3\xA9",
                             "/news/a%2Fb",
                             "/news/a%2fb",
                             "/news/%2520",
                             "/news/%41",
                             "/news/a+b",
                             "/news/%FF",
                             "/news/a?slug=b",
                             "/docs",
                             "/docs/?a=1&proxy=x",
                             "/docs?a=1&proxy=x",
                             "/shop/s/x/y",
                             "/shop/s%20t?proxy=x",
                             "/shop/s",
                             "/plain/e%20g",
                             "/plain/caf\xC3\xA9?page=2"}) {
    const PageKey asked = key_of_request(config, target);
    EXPECT_THAT(by_route.of(asked.page), Optional(UnorderedElementsAreArray(asked.tags)))
        << target << " is " << asked.page.pk;
  }
}

TEST(RouteTags, AreThoseOfBothPagesThatFaceTheorysKeyDoesNotTellApart) {
  const Config config = config_with_tags();
  for (const char* target : {"/docs/a/b", "/docs/a%20b/%C3%A9", "/docs/a%2Fb/c", "/docs?proxy=a%20b"}) {
    const PageKey asked = key_of_request(config, target);
    EXPECT_THAT(RouteTags(config).of(asked.page), Optional(IsSupersetOf(asked.tags))) << target;
  }
  const PageKey below = key_of_request(config, "/docs/x");
  const PageKey query = key_of_request(config, "/docs?proxy=x");
  ASSERT_EQ(below.page.pk, query.page.pk);
  EXPECT_THAT(tags_of_pk(below.page.pk), Optional(UnorderedElementsAre("docs", "docs-x", "docs-")));
}

TEST(RouteTags, AreThoseOfTheRouteThatAUrlBelongsTo) {
  EXPECT_THAT(tags_of_url("https://any.org:8443/plain/a%20b?page=2 h:accept-language=de"),
              Optional(UnorderedElementsAre("plain", "plain-a b")));
  EXPECT_THAT(tags_of_url("https://acme.org:8443/hosted/a", "acme.org"),
              Optional(UnorderedElementsAre("hosted")));
  EXPECT_THAT(tags_of_url("http://any.org/named/a", "acme"), Optional(UnorderedElementsAre("named")));
}

TEST(RouteTags, OfAUrlThatIsNoPageOfTheRouteAreNotKnown) {
  EXPECT_EQ(tags_of_url("http://any.org/plain/a", "acme"), std::nullopt);
  EXPECT_EQ(tags_of_url("http://any.org/hosted/a", "acme.org"), std::nullopt);
  EXPECT_EQ(tags_of_url("http://any.org/named/a"), std::nullopt);
  EXPECT_EQ(tags_of_url("http://any.org/plain/passed"), std::nullopt);
  EXPECT_EQ(tags_of_url("http://example.com/news/a"), std::nullopt);  // It has FaceTheory's key.
  EXPECT_EQ(tags_of_url("http://any.org/elsewhere"), std::nullopt);
  EXPECT_EQ(tags_of_url("ftp://any.org/plain/a"), std::nullopt);
  EXPECT_EQ(tags_of_url("http:///plain/a"), std::nullopt);
  EXPECT_EQ(tags_of_url("/plain/a"), std::nullopt);
}

TEST(RouteTags, ACacheKeyThatIsNotThePagesOwnTellsNothing) {
  Page page = *page_of("http://any.org/plain/a");
  page.cache_key = "http://any.org/plain/b";
  EXPECT_EQ(RouteTags(config_with_tags()).of(page), std::nullopt);
}

TEST(RouteTags, OfAPageWhoseKeyNamesNoRouteAreNotKnown) {
  for (const char* pk : {"CACHE#0a1b", "TENANT#acme#CACHE#0a1b", "CACHE#acme::/elsewhere?",
                         "CACHE#acme::/plain/{slug}?slug=a", "CACHE#acme::/news/{slug}", "TAG#news", ""}) {
    EXPECT_EQ(tags_of_pk(pk), std::nullopt) << pk;
  }
  EXPECT_TRUE(names_route(Page{.pk = "CACHE#acme::/elsewhere?"}));
  EXPECT_TRUE(names_route(*page_of("http://any.org/elsewhere")));
  EXPECT_FALSE(names_route(Page{.pk = "TENANT#acme#CACHE#0a1b"}));
}

TEST(RouteTags, ThatCannotBeMadeAreLeftOut) {
  EXPECT_THAT(tags_of_pk("CACHE#acme::/news/{slug}?other=1"), Optional(UnorderedElementsAre("news")));
}

}  // namespace
}  // namespace facetheory
