#include "facetheory/base/random.h"

#include <array>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

// Says what it was told to say.
class ScriptedRandom final : public Random {
 public:
  explicit ScriptedRandom(std::vector<std::uint64_t> values) : values_(std::move(values)) {}
  std::uint64_t next() override { return values_.at(used_++); }
  std::size_t used() const { return used_; }

 private:
  std::vector<std::uint64_t> values_;
  std::size_t used_ = 0;
};

TEST(SeededRandom, FollowsSplitMix64) {
  // The published first outputs for this seed.
  SeededRandom random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
}

TEST(SeededRandom, RepeatsItselfForOneSeedOnly) {
  SeededRandom first(7);
  SeededRandom again(7);
  SeededRandom other(8);
  const std::uint64_t value = first.next();
  EXPECT_EQ(again.next(), value);
  EXPECT_NE(other.next(), value);
}

TEST(SystemRandom, DoesNotRepeatItself) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i)
    seen.insert(system_random().next());
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(Uniform, StaysBelowTheBoundAndReachesEveryNumber) {
  SeededRandom random(1);
  std::array<int, 6> counts{};
  for (int i = 0; i < 6000; ++i)
    counts.at(uniform(random, 6))++;
  for (const int count : counts)
    EXPECT_NEAR(count, 1000, 150);
}

TEST(Uniform, WithABoundOfOneIsAlwaysZero) {
  SeededRandom random(1);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(uniform(random, 1), 0U);
}

TEST(Uniform, DrawsAgainWhereSmallNumbersWouldBeFavoured) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t kBound = (1ULL << 63) + 1;  // only one whole multiple of it fits
  ScriptedRandom random({kMax, kBound, kBound - 1});
  EXPECT_EQ(uniform(random, kBound), kBound - 1);
  EXPECT_EQ(random.used(), 3U);
}

TEST(Uuid, HasTheShapeOfVersionFour) {
  SeededRandom random(42);
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(uuid_v4(random),
                testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  }
}

TEST(Uuid, SetsVersionAndVariantWhateverTheRandomBitsAre) {
  ScriptedRandom zeros({0, 0});
  EXPECT_EQ(uuid_v4(zeros), "00000000-0000-4000-8000-000000000000");
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  ScriptedRandom ones({kMax, kMax});
  EXPECT_EQ(uuid_v4(ones), "ffffffff-ffff-4fff-bfff-ffffffffffff");
}

TEST(Uuid, DoesNotRepeat) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i)
    seen.insert(uuid_v4(system_random()));
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace facetheory
