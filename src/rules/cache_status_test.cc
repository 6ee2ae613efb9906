#include "facetheory/rules/cache_status.h"

#include <gtest/gtest.h>

#include "facetheory/http/structured_fields.h"

namespace facetheory {
namespace {

TEST(CacheStatus, SaysHitWithWhatIsLeft) {
  EXPECT_EQ(to_string(CacheStatus{.ttl = 42}), "facetheory; hit; ttl=42");
  EXPECT_EQ(to_string(CacheStatus{.ttl = -3}), "facetheory; hit; ttl=-3");
}

TEST(CacheStatus, SaysWhyItForwardedAndWhatCameOfIt) {
  EXPECT_EQ(to_string(CacheStatus{.forwarded = Forwarded::stale,
                                  .forwarded_status = 304,
                                  .ttl = 60,
                                  .stored = true,
                                  .collapsed = true}),
            "facetheory; fwd=stale; fwd-status=304; stored; collapsed; ttl=60");
}

TEST(CacheStatus, AHitNeverClaimsToHaveBeenForwarded) {
  EXPECT_EQ(to_string(CacheStatus{.forwarded_status = 200, .stored = true, .collapsed = true}),
            "facetheory; hit");
}

TEST(CacheStatus, NamesEveryReasonAsTheRfcDoes) {
  EXPECT_EQ(name(Forwarded::bypass), "bypass");
  EXPECT_EQ(name(Forwarded::method), "method");
  EXPECT_EQ(name(Forwarded::uri_miss), "uri-miss");
  EXPECT_EQ(name(Forwarded::vary_miss), "vary-miss");
  EXPECT_EQ(name(Forwarded::miss), "miss");
  EXPECT_EQ(name(Forwarded::request), "request");
  EXPECT_EQ(name(Forwarded::stale), "stale");
  EXPECT_EQ(name(Forwarded::partial), "partial");
}

TEST(CacheStatus, QuotesTheKeyAndWhatIsNoToken) {
  EXPECT_EQ(to_string(CacheStatus{.key = R"(/a"b\)", .detail = "no-cache"}),
            R"(facetheory; hit; key="/a\"b\\"; detail=no-cache)");
  EXPECT_EQ(to_string(CacheStatus{.detail = "no cache"}), R"(facetheory; hit; detail="no cache")");
}

TEST(CacheStatus, CannotBreakAHeader) {
  const std::string evil = "/x\r\nSet-Cookie: a=b\x01\xFF\"; hit";
  const std::string text = to_string(CacheStatus{.ttl = INT64_MIN, .key = evil, .detail = evil});
  EXPECT_EQ(text.find_first_of("\r\n"), std::string::npos);
  const auto parsed = parse_sf_list(text);
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->size(), 1U);
  const auto& item = std::get<SfItem>(parsed->front());
  ASSERT_EQ(item.parameters.size(), 4U);
  EXPECT_EQ(std::get<std::string>(item.parameters[2].second), "/x??Set-Cookie: a=b??\"; hit");
}

TEST(CacheStatus, CutsALongKey) {
  const std::string text = to_string(CacheStatus{.key = std::string(10'000, 'k')});
  EXPECT_LT(text.size(), 300U);
  EXPECT_TRUE(text.ends_with("kkk...\""));
}

TEST(CacheStatus, AppendsBehindOthers) {
  std::string field = "origin; hit, ";
  append(field, CacheStatus{.forwarded = Forwarded::uri_miss});
  EXPECT_EQ(field, "origin; hit, facetheory; fwd=uri-miss");
}

}  // namespace
}  // namespace facetheory
