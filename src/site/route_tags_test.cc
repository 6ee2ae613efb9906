#include "facetheory/site/route_tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/site/read_config.h"

namespace facetheory {
namespace {

using testing::IsEmpty;
using testing::Optional;
using testing::UnorderedElementsAre;

const Config& config_with_tags() {
  static const Config config = [] {
    auto read = read_config(R"(
origin = "http://127.0.0.1:3000"
[[routes]]
pattern = "/news/{slug}"
hosts = ["example.com"]
key = "facetheory"
tags = ["news", "article-{slug}"]
[[routes]]
pattern = "/plain/{slug}"
tags = ["plain"]
[[routes]]
pattern = "/none"
hosts = ["example.com"]
key = "facetheory"
)",
                            "facetheory.toml");
    EXPECT_TRUE(read) << read.error().message;
    return *std::move(read);
  }();
  return config;
}

TEST(RouteTags, AreFilledFromTheParamsThatFaceTheorysKeyNames) {
  EXPECT_THAT(
      tags_by_route(config_with_tags(), "CACHE#acme::/news/{slug}?slug=a%20b&page=2#auth=0&cookies=1"),
      Optional(UnorderedElementsAre("news", "article-a b")));
  EXPECT_THAT(tags_by_route(config_with_tags(), "CACHE#default::/none?"), Optional(IsEmpty()));
}

TEST(RouteTags, OfAPageWhoseKeyNamesNoRouteAreNotKnown) {
  for (const char* pk : {"CACHE#0a1b", "TENANT#acme#CACHE#0a1b", "CACHE#acme::/elsewhere?",
                         "CACHE#acme::/plain/{slug}?slug=a", "CACHE#acme::/news/{slug}", "TAG#news", ""}) {
    EXPECT_EQ(tags_by_route(config_with_tags(), pk), std::nullopt) << pk;
  }
  EXPECT_TRUE(names_route("CACHE#acme::/elsewhere?"));
  EXPECT_FALSE(names_route("TENANT#acme#CACHE#0a1b"));
}

TEST(RouteTags, ThatCannotBeMadeAreLeftOut) {
  EXPECT_THAT(tags_by_route(config_with_tags(), "CACHE#acme::/news/{slug}?other=1"),
              Optional(UnorderedElementsAre("news")));
}

}  // namespace
}  // namespace facetheory
