#include "facetheory/http/http_date.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

constexpr std::int64_t kNow = 1'790'000'000;    // That is in September 2026.
constexpr std::int64_t kExample = 784'111'777;  // The RFC's own.

TEST(HttpDate, ReadsAllThreeFormsOfOneMoment) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", kNow), kExample);
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", kNow), kExample);
  EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994", kNow), kExample);
  EXPECT_EQ(parse_http_date("Sun Nov 06 08:49:37 1994", kNow), kExample);
}

TEST(HttpDate, DoesNotMindTheCaseOfLetters) {
  EXPECT_EQ(parse_http_date("sUN, 06 nOV 1994 08:49:37 gmt", kNow), kExample);
}

TEST(HttpDate, WritesThePreferredForm) {
  EXPECT_EQ(format_http_date(kExample), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(format_http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(format_http_date(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
}

TEST(HttpDate, WritesNoYearOfMoreThanFourDigits) {
  EXPECT_EQ(format_http_date(INT64_MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
  EXPECT_EQ(format_http_date(INT64_MIN), "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST(HttpDate, ReadsBackWhatItWritesAcrossCenturies) {
  for (std::int64_t time = -62'000'000'000; time < 250'000'000'000; time += 86'399'999)
    ASSERT_EQ(parse_http_date(format_http_date(time), kNow), time);
}

TEST(HttpDate, KnowsLeapDays) {
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 00:00:00 GMT", kNow), 1'709'164'800);
  EXPECT_EQ(parse_http_date("Tue, 29 Feb 2000 00:00:00 GMT", kNow), 951'782'400);
  EXPECT_EQ(parse_http_date("Wed, 29 Feb 2023 00:00:00 GMT", kNow), std::nullopt);
  EXPECT_EQ(parse_http_date("Mon, 29 Feb 2100 00:00:00 GMT", kNow), std::nullopt);
}

TEST(HttpDate, AcceptsALeapSecond) {
  EXPECT_EQ(parse_http_date("Sat, 31 Dec 2016 23:59:60 GMT", kNow), 1'483'228'800);
}

TEST(HttpDate, RefusesTheWeekdayOfAnotherDay) {
  EXPECT_EQ(parse_http_date("Mon, 06 Nov 1994 08:49:37 GMT", kNow), std::nullopt);
}

TEST(HttpDate, PutsATwoDigitYearAtMostFiftyYearsAhead) {
  const auto year_of = [](const char* text) { return format_http_date(parse_http_date(text, kNow).value()); };
  EXPECT_EQ(year_of("Wednesday, 01-Jan-76 00:00:00 GMT"), "Wed, 01 Jan 2076 00:00:00 GMT");
  EXPECT_EQ(year_of("Saturday, 01-Jan-77 00:00:00 GMT"), "Sat, 01 Jan 1977 00:00:00 GMT");
  // Two digits may mean the next century when its beginning is near.
  constexpr std::int64_t kEndOfCentury = 4'070'908'800;  // 2099
  EXPECT_EQ(format_http_date(parse_http_date("Friday, 01-Jan-40 00:00:00 GMT", kEndOfCentury).value()),
            "Fri, 01 Jan 2140 00:00:00 GMT");
}

TEST(HttpDate, RefusesWhatIsNoDate) {
  for (const char* text : {"",
                           "0",
                           "-1",
                           "never",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 06 Nov 1994 08:49:37 UTC",
                           "Sun, 06 Nov 1994 08:49:37 +0000",
                           "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun 06 Nov 1994 08:49:37 GMT",
                           "Sun,  06 Nov 1994 08:49:37 GMT",
                           "Sun, 06  Nov 1994 08:49:37 GMT",
                           "Sun, 06-Nov-1994 08:49:37 GMT",
                           "Sun, 06 Nov 94 08:49:37 GMT",
                           "Sun, 06 Nov 1994 8:49:37 GMT",
                           "Sun, 06 Nov 1994 24:00:00 GMT",
                           "Sun, 06 Nov 1994 08:60:37 GMT",
                           "Sun, 06 Nov 1994 08:49:61 GMT",
                           "Sun, 00 Nov 1994 08:49:37 GMT",
                           "Sun, 31 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Foo 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 GMT ",
                           " Sun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 GMTX",
                           "Sunday, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov 6 08:49:37 1994",
                           "Sun Nov  6 08:49:37 1994 GMT",
                           "1994-11-06T08:49:37Z",
                           "784111777"})
    EXPECT_EQ(parse_http_date(text, kNow), std::nullopt) << text;
}

}  // namespace
}  // namespace facetheory
