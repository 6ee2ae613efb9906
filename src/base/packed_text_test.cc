#include "facetheory/base/packed_text.h"

#include <gtest/gtest.h>

#include "facetheory/base/random.h"

namespace facetheory {
namespace {

TEST(PackedText, ComesBackAsItWas) {
  SeededRandom random(1);
  const std::string_view letters = "0123456789abcdefABCDEFgxyz-/#\0\xff";
  for (int i = 0; i < 5'000; ++i) {
    std::string text;
    // Long runs of digits among others.
    for (std::uint64_t pieces = uniform(random, 6); pieces > 0; --pieces) {
      const std::uint64_t among = uniform(random, 2) == 0 ? 16 : letters.size();
      for (std::uint64_t size = uniform(random, 300); size > 0; --size)
        text += letters[uniform(random, among)];
    }
    ASSERT_EQ(unpacked_text(packed_text(text)), text);
  }
}

TEST(PackedText, ADigestTakesHalfAsMuch) {
  EXPECT_EQ(packed_text("CACHE#" + std::string(64, 'e')).size(), 1U + 6 + 1 + 32);
  EXPECT_EQ(packed_text("").size(), 0U);
  EXPECT_EQ(packed_text("/news").size(), 6U);
}

}  // namespace
}  // namespace facetheory
