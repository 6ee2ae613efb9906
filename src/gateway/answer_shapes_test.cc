#include "facetheory/gateway/answer_shapes.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

std::string head_of(int number, const std::string& more = "") {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"" + std::to_string(number) +
         "\"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n" + more +
         "Via: 1.1 facetheory\r\nContent-Length: " + std::to_string(1'000 + number) + "\r\n";
}

std::vector<Key> rows_of(int number) {
  const std::string digits = std::to_string(number);
  return {{"CACHE#" + std::string(64 - digits.size(), '0') + digits, "META"}, {"TENANT#", "META"}};
}

WarmText text_of(int number, const std::string& more = "") {
  return {head_of(number, more), "example.org", "tenant", rows_of(number)};
}

void expect_same(const AnswerShapes& shapes, const ShapedText& kept, const WarmText& text) {
  std::string head = "before ";
  shapes.append_head(kept, head);
  EXPECT_EQ(head, "before " + std::string(text.head()));
  EXPECT_EQ(shapes.host(kept), text.host());
  EXPECT_EQ(shapes.tenant(kept), text.tenant());
  EXPECT_EQ(shapes.rows(kept), text.rows());
  EXPECT_EQ(shapes.text(kept).all(), text.all());
  RowSet set;
  for (const Key& row : text.rows())
    set.add(row);
  EXPECT_EQ(shapes.row_set(kept).words(), set.words());
}

TEST(AnswerShapes, LoseNothing) {
  AnswerShapes shapes;
  for (int i = 0; i < 20; ++i)
    expect_same(shapes, shapes.shaped(text_of(i)), text_of(i));
  // What begins with a field of its own, has it twice, lacks it, or is empty.
  const WarmText odd[] = {
      {"\r\nETag: a\r\nETag: b\r\n", "", "", {}},
      {"", "", "", {}},
      {"HTTP/1.1 304 Not Modified\r\n", "h", "", rows_of(1)},
      {"HTTP/1.1 200 OK\r\nDate: \r\nX: y", "h", "t", {{"pk", "sk"}, {"a", "b"}, {"c", "d"}}}};
  for (const WarmText& text : odd) {
    for (int i = 0; i < 3; ++i)
      expect_same(shapes, shapes.shaped(text), text);
  }
}

TEST(AnswerShapes, KeepOfMostAnswersOnlyWhatDiffers) {
  AnswerShapes shapes;
  shapes.shaped(text_of(0));
  const ShapedText kept = shapes.shaped(text_of(1));
  EXPECT_NE(kept.shape, 0);
  EXPECT_LT(kept.own.text().size(), text_of(1).all().size() / 2);
  EXPECT_LE(kept.own.memory(), 112U);
}

TEST(AnswerShapes, AreNotMadeOfWhatDiffersOnEveryPage) {
  AnswerShapes shapes;
  for (int i = 0; i < 5'000; ++i) {
    const std::string more = "X-Request-Id: " + std::to_string(i) + "\r\n";
    EXPECT_EQ(shapes.shaped(text_of(i, more)).shape, 0);
  }
  EXPECT_EQ(shapes.memory(), 0U);
}

TEST(AnswerShapes, LastAsLongAsTheirAnswers) {
  AnswerShapes shapes;
  shapes.shaped(text_of(0));
  const ShapedText one = shapes.shaped(text_of(1));
  const ShapedText two = shapes.shaped(text_of(2));
  EXPECT_EQ(one.shape, two.shape);
  const std::size_t taken = shapes.memory();
  EXPECT_GT(taken, 0U);
  shapes.let_go(one);
  EXPECT_EQ(shapes.memory(), taken);
  expect_same(shapes, two, text_of(2));
  shapes.let_go(two);
  EXPECT_EQ(shapes.memory(), 0U);
}

}  // namespace
}  // namespace facetheory
