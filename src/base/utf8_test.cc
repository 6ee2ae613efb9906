#include "facetheory/base/utf8.h"

#include <string>

#include <gtest/gtest.h>

#include "facetheory/base/hex.h"

namespace facetheory {
namespace {

using namespace std::string_view_literals;

void expect_refused(std::string_view bytes) {
  EXPECT_FALSE(is_utf8(bytes)) << to_hex(bytes);
  EXPECT_FALSE(is_utf8("before " + std::string(bytes))) << to_hex(bytes);
  EXPECT_FALSE(is_utf8(std::string(bytes) + " after")) << to_hex(bytes);
}

TEST(Utf8, AcceptsTheFirstAndLastCodePointOfEveryLength) {
  for (const std::string_view bytes : {""sv, "\x00"sv, "\x7f"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv,
                                       "\xef\xbf\xbf"sv, "\xf0\x90\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv}) {
    EXPECT_TRUE(is_utf8(bytes)) << to_hex(bytes);
    EXPECT_TRUE(is_utf8("a" + std::string(bytes) + "z")) << to_hex(bytes);
  }
}

TEST(Utf8, RefusesOverlongForms) {
  for (const std::string_view bytes : {"\xc0\x80"sv, "\xc1\xbf"sv, "\xe0\x80\x80"sv, "\xe0\x9f\xbf"sv,
                                       "\xf0\x80\x80\x80"sv, "\xf0\x8f\xbf\xbf"sv}) {
    expect_refused(bytes);
  }
}

TEST(Utf8, RefusesSurrogatesButNotTheirNeighbours) {
  expect_refused("\xed\xa0\x80");
  expect_refused("\xed\xbf\xbf");
  EXPECT_TRUE(is_utf8("\xed\x9f\xbf"));
  EXPECT_TRUE(is_utf8("\xee\x80\x80"));
}

TEST(Utf8, RefusesWhatLiesAboveTheLastCodePoint) {
  expect_refused("\xf4\x90\x80\x80");
  expect_refused("\xf5\x80\x80\x80");
  expect_refused("\xff");
  expect_refused("\xfe");
}

TEST(Utf8, RefusesContinuationBytesThatStandAlone) {
  expect_refused("\x80");
  expect_refused("\xbf");
}

TEST(Utf8, RefusesSequencesThatEndEarly) {
  for (const std::string_view whole : {"\xc2\x80"sv, "\xe2\x82\xac"sv, "\xf0\x9f\x98\x80"sv}) {
    ASSERT_TRUE(is_utf8(whole));
    for (std::size_t length = 1; length < whole.size(); ++length)
      expect_refused(whole.substr(0, length));
  }
}

TEST(Utf8, RefusesABadByteWhereverItStands) {
  for (std::size_t length = 1; length <= 24; ++length) {
    const std::string text(length, 'a');
    EXPECT_TRUE(is_utf8(text));
    for (std::size_t at = 0; at < length; ++at) {
      std::string damaged = text;
      damaged[at] = '\xff';
      EXPECT_FALSE(is_utf8(damaged)) << to_hex(damaged);
    }
  }
}

TEST(Utf8, IsRepairedByteByByte) {
  EXPECT_EQ(to_valid_utf8("caf\xc3\xa9 \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xf0\x9f\x98\x80");
  EXPECT_EQ(to_valid_utf8("a\xff"
                          "b\xe2\x82"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(to_valid_utf8(""), "");
}

}  // namespace
}  // namespace facetheory
