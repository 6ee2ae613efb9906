#include "facetheory/bodies/kept_body.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

Body body_of(std::size_t size) {
  Body body;
  for (std::size_t i = 0; i < size; ++i)
    body.bytes += static_cast<char>(i * 7);
  body.metadata.status = 404;
  body.metadata.content_type = "text/html; charset=utf-8";
  body.metadata.headers = {
      {"link", "<a>"}, {"x-empty", ""}, {"link", std::string(300, 'b')}, {"a", "\xE9\""}};
  return body;
}

TEST(KeptBody, ComesBackAsItWas) {
  for (const std::size_t size : {0U, 1U, 1'024U, 65'536U, 65'537U, 1'000'000U}) {
    const Body body = body_of(size);
    const KeptBody kept(body);
    EXPECT_TRUE(kept.bytes() == body.bytes) << size;
    EXPECT_EQ(kept.status(), 404);
    EXPECT_EQ(kept.content_type(), body.metadata.content_type);
    EXPECT_TRUE(kept.body() == body) << size;
    std::vector<std::pair<std::string, std::string>> fields;
    kept.each_header(
        [&](std::string_view name, std::string_view value) { fields.emplace_back(name, value); });
    EXPECT_EQ(fields, body.metadata.headers);
  }
  EXPECT_TRUE(KeptBody(Body{}).body() == Body{});
}

TEST(KeptBody, DoesWithoutTheDigestThatTheStoreHasChecked) {
  Body body = body_of(10);
  body.metadata.sha256 = std::string(64, 'a');
  EXPECT_EQ(KeptBody(std::move(body)).metadata().sha256, std::nullopt);
}

}  // namespace
}  // namespace facetheory
