#include "facetheory/isr/version_id.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

TEST(VersionId, SortsByTimeOfCreationAsText) {
  SeededRandom random(1);
  std::vector<std::string> ids;
  for (const std::int64_t time :
       {0LL, 1LL, 31LL, 32LL, 1'700'000'000'000LL, 1'700'000'000'001LL, (1LL << 48) - 1})
    ids.push_back(version_sk(time, random));
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
}

TEST(VersionId, NeverRepeatsWithinOneMillisecond) {
  SeededRandom random(2);
  std::set<std::string> ids;
  for (int i = 0; i < 10'000; ++i)
    ids.insert(version_sk(1'700'000'000'000, random));
  EXPECT_EQ(ids.size(), 10'000U);
}

TEST(VersionId, TellsItsTime) {
  SeededRandom random(3);
  for (const std::int64_t time : {0LL, 1'700'000'000'123LL, (1LL << 48) - 1})
    EXPECT_EQ(time_of_version_sk(version_sk(time, random)), time);
}

TEST(VersionId, LeavesIdsOfOtherWritersAlone) {
  for (const char* sk : {"", "VER#", "VER#7", "VER#01ARZ3NDEKTSV4RRFFQ69G5FAI", "META",
                         "VER#01arz3ndektsv4rrffq69g5fav", "VER#01ARZ3NDEKTSV4RRFFQ69G5FAVX"}) {
    EXPECT_EQ(time_of_version_sk(sk), std::nullopt) << sk;
  }
}

}  // namespace
}  // namespace facetheory
