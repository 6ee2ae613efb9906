#include "facetheory/http/request_body_writer.h"

#include <string>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

std::string text_of_framed(const RequestBodyWriter::Framed& framed) {
  std::string text;
  for (const std::string_view part : framed.texts)
    text += part;
  return text;
}

TEST(RequestBodyWriter, CountsABodyOfKnownLength) {
  RequestBodyWriter writer({BodyFraming::Kind::length, 5}, false);
  EXPECT_FALSE(writer.began_with(2));
  EXPECT_EQ(writer.objection_to("four"), "more is written than its Content-Length says");
  EXPECT_EQ(writer.end_of_body({}).error().code, ErrorCode::invalid) << "three bytes are missing";
  EXPECT_EQ(writer.objection_to("llo"), std::nullopt);
  EXPECT_EQ(text_of_framed(writer.frame("llo")), "llo");
  EXPECT_EQ(*writer.end_of_body({}), "");
  EXPECT_FALSE(writer.takes_trailers());
}

TEST(RequestBodyWriter, FramesABodyOfUnknownLengthInChunks) {
  RequestBodyWriter writer({BodyFraming::Kind::chunked, 0}, false);
  EXPECT_FALSE(writer.began_with(0));
  EXPECT_EQ(text_of_framed(writer.frame("hello")), "5\r\nhello\r\n");
  EXPECT_TRUE(writer.takes_trailers());
  EXPECT_EQ(*writer.end_of_body({{"X-Sum", "7"}}), "0\r\nX-Sum: 7\r\n\r\n");
}

TEST(RequestBodyWriter, LeavesTheTurnToTheOriginWhileItIsToSayContinue) {
  RequestBodyWriter writer({BodyFraming::Kind::chunked, 0}, true);
  EXPECT_FALSE(writer.is_our_turn());
  writer.may_continue();
  EXPECT_TRUE(writer.is_our_turn());
  writer.begin_write();
  EXPECT_FALSE(writer.is_our_turn()) << "the write is in flight";
  writer.end_write();
  EXPECT_TRUE(writer.is_our_turn());
  writer.finish();
  EXPECT_EQ(writer.objection_to("x"), "there is nothing more to be written");
}

TEST(RequestBodyWriter, WritesWhatItLikesInATunnelUntilItHasSaidAll) {
  RequestBodyWriter writer({}, false);
  EXPECT_TRUE(writer.began_with(0));
  writer.finish();
  writer.begin_tunnel();
  EXPECT_TRUE(writer.is_tunnel());
  EXPECT_EQ(text_of_framed(writer.frame("raw")), "raw");
  writer.begin_write();
  writer.finish();
  writer.end_write();
  EXPECT_EQ(writer.state(), RequestBodyWriter::State::done) << "all was said while a write was in flight";
}

TEST(RequestBodyWriter, SaysWhyItFailedAlsoWhenAllWasSaid) {
  RequestBodyWriter writer({BodyFraming::Kind::length, 5}, false);
  writer.fail({ErrorCode::ambiguous, "broken"});
  EXPECT_EQ(writer.state(), RequestBodyWriter::State::failed);
  EXPECT_EQ(writer.failure()->message, "broken");
  RequestBodyWriter tunnel({}, false);
  tunnel.begin_tunnel();
  tunnel.finish();
  tunnel.fail({ErrorCode::ambiguous, "broken"});
  EXPECT_EQ(tunnel.state(), RequestBodyWriter::State::done);
  EXPECT_TRUE(tunnel.failure());
}

}  // namespace
}  // namespace facetheory
