#include "facetheory/http/answer_reader.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

TEST(AnswerReader, TakesAsMuchAsWasAnnouncedAndNoMore) {
  AnswerReader reader;
  reader.begin_body({BodyFraming::Kind::length, 5}, true);
  EXPECT_FALSE(reader.has_all());
  const AnswerReader::Piece piece = reader.take("hello and more");
  EXPECT_EQ(piece.content, "hello");
  EXPECT_EQ(piece.consumed, 5U);
  EXPECT_TRUE(reader.has_all());
  reader.finish(true);
  EXPECT_TRUE(reader.keeps_alive());
}

TEST(AnswerReader, EndsChunksByThemselvesAndHasTheirTrailers) {
  AnswerReader reader;
  reader.begin_body({BodyFraming::Kind::chunked, 0}, true);
  EXPECT_EQ(reader.take("5\r\nhello\r\n0\r\n").content, "hello");
  EXPECT_EQ(reader.state(), AnswerReader::State::body);
  EXPECT_EQ(reader.take("\r\n0\r\nX-Sum: 7\r\n\r\nleft").consumed, 17U);
  EXPECT_EQ(reader.state(), AnswerReader::State::done);
  EXPECT_EQ(reader.trailers().get("x-sum"), "7");
  reader.finish(false);
  EXPECT_FALSE(reader.keeps_alive()) << "something is left over";
}

TEST(AnswerReader, SaysWhatIsWrongWithChunks) {
  AnswerReader reader;
  reader.begin_body({BodyFraming::Kind::chunked, 0}, true);
  reader.take("five");
  EXPECT_EQ(reader.state(), AnswerReader::State::failed);
  EXPECT_EQ(reader.malformed(), "neither an extension nor CRLF follows a chunk's size");
}

TEST(AnswerReader, EndsWithTheConnectionWhereNothingElseTellsTheEnd) {
  AnswerReader reader;
  EXPECT_FALSE(reader.ends_with_connection()) << "no head has come";
  reader.begin_body({BodyFraming::Kind::until_close, 0}, true);
  EXPECT_TRUE(reader.ends_with_connection());
  EXPECT_FALSE(reader.keeps_alive());
  AnswerReader tunnel;
  tunnel.begin_tunnel();
  EXPECT_TRUE(tunnel.ends_with_connection());
  EXPECT_EQ(tunnel.take("raw").content, "raw");
}

TEST(AnswerReader, TakesAFewInterimAnswers) {
  AnswerReader reader;
  EXPECT_FALSE(reader.has_had_interim());
  for (int i = 0; i < 15; ++i)
    EXPECT_TRUE(reader.take_interim());
  EXPECT_FALSE(reader.take_interim());
  EXPECT_TRUE(reader.has_had_interim());
}

}  // namespace
}  // namespace facetheory
