#include "facetheory/http/message.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

TEST(Headers, FindsAFieldWhateverTheCaseOfItsName) {
  const Headers headers{{"Content-Type", "text/html"}};
  EXPECT_EQ(headers.get("content-type"), "text/html");
  EXPECT_EQ(headers.get("CONTENT-TYPE"), "text/html");
  EXPECT_EQ(headers.get("content-typ"), std::nullopt);
  EXPECT_EQ(headers.get("content-type2"), std::nullopt);
}

TEST(Headers, GivesTheFirstOfARepeatedField) {
  Headers headers;
  headers.add("Via", "a");
  headers.add("via", "b");
  EXPECT_EQ(headers.get("VIA"), "a");
  EXPECT_EQ(std::distance(headers.begin(), headers.end()), 2);
}

TEST(Headers, SettingReplacesEveryFieldOfThatName) {
  Headers headers{{"a", "1"}, {"B", "2"}, {"A", "3"}};
  headers.set("a", "4");
  EXPECT_EQ(headers, (Headers{{"B", "2"}, {"a", "4"}}));
}

}  // namespace
}  // namespace facetheory
