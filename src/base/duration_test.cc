#include "facetheory/base/duration.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  const Result<milliseconds> parsed = parse_duration(text);
  if (parsed) return "accepted as " + std::to_string(parsed->count()) + " ms";
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid);
  return parsed.error().message;
}

std::string refusal_as_seconds(std::string_view text, seconds at_least) {
  const Result<seconds> parsed = parse_seconds(text, at_least);
  if (parsed) return "accepted as " + std::to_string(parsed->count()) + " s";
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid);
  return parsed.error().message;
}

TEST(Duration, KnowsEveryUnit) {
  EXPECT_EQ(*parse_duration("1500ms"), milliseconds(1500));
  EXPECT_EQ(*parse_duration("30s"), seconds(30));
  EXPECT_EQ(*parse_duration("5m"), seconds(300));
  EXPECT_EQ(*parse_duration("2h"), seconds(7200));
  EXPECT_EQ(*parse_duration("7d"), seconds(604'800));
  EXPECT_EQ(*parse_duration("0s"), seconds(0));
}

TEST(Duration, TakesABareNumberForSeconds) {
  EXPECT_EQ(*parse_duration("90"), seconds(90));
  EXPECT_EQ(*parse_seconds("90", seconds(1)), seconds(90));
}

TEST(Duration, RefusesWhatIsNoWholeNumberWithAUnit) {
  for (const std::string_view text :
       {"s", "soon", "1.5h", "3w", "3 s", " 3s", "3s ", "3S", "1h30m", "0x10s", "+3s", "٣s"}) {
    EXPECT_THAT(refusal(text), HasSubstr("'" + std::string(text) + "' is no duration")) << text;
  }
}

TEST(Duration, RefusesAnEmptyOne) {
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
}

TEST(Duration, RefusesANegativeOne) {
  EXPECT_THAT(refusal("-5s"), HasSubstr("is negative"));
}

TEST(Duration, RefusesWhatCouldOverflow) {
  EXPECT_EQ(*parse_duration("36525d"), kLongestDuration);
  for (const std::string_view text : {"36526d", "9223372036854775807", "9223372036854775808s",
                                      "99999999999999999999999999d", "9223372036854775807ms"}) {
    EXPECT_THAT(refusal(text), HasSubstr("longer than a hundred years")) << text;
  }
}

TEST(Duration, AsSecondsRefusesFractionsOfOne) {
  EXPECT_EQ(*parse_seconds("2000ms", seconds(2)), seconds(2));
  EXPECT_THAT(refusal_as_seconds("1500ms", seconds(1)),
              HasSubstr("'1500ms' is not a whole number of seconds"));
}

TEST(Duration, AsSecondsNamesTheLongestThatIsAllowed) {
  EXPECT_EQ(*parse_seconds("15m", seconds(2), seconds(900)), seconds(900));
  const Result<seconds> longer = parse_seconds("901s", seconds(2), seconds(900));
  ASSERT_FALSE(longer);
  EXPECT_THAT(longer.error().message, HasSubstr("at most 900s"));
}

TEST(Duration, AsSecondsNamesTheShortestThatIsAllowed) {
  EXPECT_EQ(*parse_seconds("2s", seconds(2)), seconds(2));
  EXPECT_THAT(refusal_as_seconds("1s", seconds(2)), HasSubstr("at least 2s"));
}

TEST(Duration, IsSaidInWholeSecondsOrElseInMilliseconds) {
  EXPECT_EQ(in_words(seconds(30)), "30 s");
  EXPECT_EQ(in_words(milliseconds(1500)), "1500 ms");
  EXPECT_EQ(in_milliseconds(seconds(2)), "2000 ms");
}

}  // namespace
}  // namespace facetheory
