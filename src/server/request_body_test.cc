#include "facetheory/server/request_body.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

constexpr BodyFraming kFiveBytes{BodyFraming::Kind::length, 5};
constexpr BodyFraming kInChunks{BodyFraming::Kind::chunked, 0};

// All content of the body, taken from bytes that come in pieces of that size; what is behind it is left in `bytes`.
std::string content_of(RequestBody& body, std::string_view& bytes, std::size_t piece) {
  std::string content;
  while (!bytes.empty() && !body.has_ended()) {
    const auto step = body.take(bytes.substr(0, piece));
    if (!step) return "refused: " + step.error().message;
    content += step->content;
    bytes.remove_prefix(step->consumed);
  }
  return content;
}

TEST(RequestBody, OfNoRequestHasEnded) {
  EXPECT_TRUE(RequestBody().has_ended());
  EXPECT_FALSE(RequestBody().is_there());
}

TEST(RequestBody, OfALengthLeavesWhatIsBehindIt) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{100}}) {
    RequestBody body(kFiveBytes, false, {});
    std::string_view bytes = "helloGET / HTTP/1.1";
    EXPECT_EQ(content_of(body, bytes, piece), "hello");
    EXPECT_TRUE(body.has_ended());
    EXPECT_EQ(bytes, "GET / HTTP/1.1");
    EXPECT_EQ(body.read(), 5U);
  }
}

TEST(RequestBody, InChunksLeavesWhatIsBehindItAndKeepsItsTrailers) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{4}, std::size_t{100}}) {
    RequestBody body(kInChunks, false, {});
    std::string_view bytes = "3\r\nhel\r\n2\r\nlo\r\n0\r\nX-Sum: 7\r\n\r\nGET /";
    EXPECT_EQ(content_of(body, bytes, piece), "hello");
    EXPECT_TRUE(body.has_ended());
    EXPECT_EQ(bytes, "GET /");
    EXPECT_EQ(body.trailers().get("x-sum"), "7");
  }
}

TEST(RequestBody, IsRefusedAtTheLimitHoweverItIsFramed) {
  RequestBody chunked(kInChunks, false, 4);
  std::string_view bytes = "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
  EXPECT_EQ(content_of(chunked, bytes, 100), "refused: the body is larger than this server takes");
  RequestBody counted(kFiveBytes, false, 4);
  EXPECT_EQ(counted.take("hello").error().code, ErrorCode::exhausted);
}

TEST(RequestBody, ThatIsNoChunkedBodyIsInvalid) {
  RequestBody body(kInChunks, false, {});
  EXPECT_EQ(body.take("hello").error().code, ErrorCode::invalid);
}

TEST(RequestBody, IsAwaitedByNobodyWhoWasToldToContinue) {
  RequestBody body(kFiveBytes, true, {});
  EXPECT_TRUE(body.expects_continue());
  body.was_told_to_continue();
  EXPECT_FALSE(body.expects_continue());
  EXPECT_FALSE(RequestBody(BodyFraming{BodyFraming::Kind::length, 0}, true, {}).expects_continue())
      << "there is nothing to send";
}

TEST(RequestBody, AnnouncesOnlyWhatHasNotCome) {
  RequestBody body(kFiveBytes, false, {});
  EXPECT_TRUE(body.announces_more_than(4));
  ASSERT_TRUE(body.take("h"));
  EXPECT_FALSE(body.announces_more_than(4));
  EXPECT_FALSE(RequestBody(kInChunks, false, {}).announces_more_than(0)) << "chunks announce nothing";
}

}  // namespace
}  // namespace facetheory
