#include "facetheory/server/answer_writer.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kDate = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

std::string text_of(const AnswerWriter::Framed& framed) {
  std::string text;
  for (const std::string_view part : framed.texts)
    text += part;
  return text;
}

TEST(AnswerWriter, FramesAnAnswerOfKnownLengthByItsLength) {
  AnswerWriter answer(false, 1);
  answer.begin(200, 5);
  EXPECT_EQ(answer.head(200, {{"X-A", "b"}}, 5, kDate, false),
            "HTTP/1.1 200 OK\r\nX-A: b\r\n" + std::string(kDate) + "Content-Length: 5\r\n\r\n");
  EXPECT_EQ(text_of(*answer.frame("hel")), "hel");
  EXPECT_EQ(answer.end_of_body({}).error().code, ErrorCode::internal) << "two bytes are missing";
  EXPECT_EQ(text_of(*answer.frame("lo")), "lo");
  EXPECT_EQ(*answer.end_of_body({}), "");
  EXPECT_EQ(answer.frame("!").error().code, ErrorCode::internal);
}

TEST(AnswerWriter, FramesAnAnswerWithoutLengthInChunks) {
  AnswerWriter answer(false, 1);
  answer.begin(200, {});
  EXPECT_THAT(answer.head(200, {}, {}, kDate, false), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(text_of(*answer.frame("hello")), "5\r\nhello\r\n");
  EXPECT_EQ(text_of(*answer.frame("")), "") << "an empty chunk would end the body";
  EXPECT_EQ(*answer.end_of_body({{"X-Sum", "7"}}), "0\r\nX-Sum: 7\r\n\r\n");
}

TEST(AnswerWriter, EndsAnAnswerWithoutLengthWithTheConnectionWhereChunksAreNotKnown) {
  AnswerWriter answer(false, 0);
  answer.begin(200, {});
  EXPECT_EQ(answer.state(), AnswerWriter::State::until_close);
  EXPECT_THAT(answer.head(200, {}, {}, kDate, true), Not(HasSubstr("chunked")));
  EXPECT_EQ(text_of(*answer.frame("hello")), "hello");
}

TEST(AnswerWriter, SendsNoBodyToHeadNorWithStatusesThatHaveNone) {
  AnswerWriter to_head(true, 1);
  to_head.begin(200, 5);
  EXPECT_THAT(to_head.head(200, {}, 5, kDate, false), HasSubstr("Content-Length: 5\r\n"));
  EXPECT_EQ(text_of(*to_head.frame("hello")), "");
  for (const int status : {204, 304}) {
    AnswerWriter answer(false, 1);
    answer.begin(status, 5);
    EXPECT_EQ(text_of(*answer.frame("hello")), "") << status;
    EXPECT_THAT(answer.head(status, {}, 5, kDate, false), Not(HasSubstr("Content-Length"))) << status;
  }
}

TEST(AnswerWriter, SaysWhatBecomesOfTheConnectionWhereTheVersionDoesNot) {
  EXPECT_THAT(AnswerWriter(false, 1).head(200, {}, 0, kDate, true), HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(AnswerWriter(false, 1).head(200, {}, 0, kDate, false), Not(HasSubstr("Connection")));
  EXPECT_THAT(AnswerWriter(false, 0).head(200, {}, 0, kDate, false), HasSubstr("Connection: keep-alive\r\n"));
}

TEST(AnswerWriter, LeavesTheDateOfTheOriginAndAddsNothingToInterimAnswers) {
  const std::string dated = AnswerWriter(false, 1).head(200, {{"Date", "long ago"}}, 0, kDate, false);
  EXPECT_THAT(dated, Not(HasSubstr("1994")));
  EXPECT_EQ(AnswerWriter(false, 1).head(103, {{"Link", "</a>"}}, {}, kDate, true),
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
}

TEST(AnswerWriter, StaysATunnelWhenThisSideHasSaidAll) {
  AnswerWriter answer(false, 1);
  answer.begin_tunnel();
  EXPECT_EQ(text_of(*answer.frame("raw")), "raw");
  answer.end();
  EXPECT_TRUE(answer.is_tunnel());
  EXPECT_TRUE(answer.has_ended());
}

}  // namespace
}  // namespace facetheory
