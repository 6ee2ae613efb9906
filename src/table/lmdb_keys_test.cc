#include "facetheory/table/lmdb_keys.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

constexpr std::size_t kLmdbMaxKeyBytes = 511;

TEST(LmdbKeysTest, NoKeyIsLongerThanLmdbAllows) {
  for (const std::size_t pk : {1U, 127U, 128U, 129U, 2048U}) {
    for (const std::size_t sk : {1U, 379U, 380U, 381U, 1024U}) {
      EXPECT_LE(LmdbKey::of({std::string(pk, 'p'), std::string(sk, 's')}).bytes.size(), kLmdbMaxKeyBytes);
    }
  }
}

TEST(LmdbKeysTest, KeysOfOnePartitionSortAsTheirSortKeysDo) {
  std::vector<std::string> sort_keys = {"A",      "LOCK",  "META", "META\x01", "VER#1",
                                        "VER#10", "VER#2", "\x01", "z"};
  const std::string long_key(380, 'm');
  for (const char* tail : {"", "\x01", "\x02", "a", "z"})
    sort_keys.push_back(long_key + tail);
  sort_keys.push_back(std::string(379, 'm'));
  sort_keys.push_back(std::string(379, 'm') + "n");
  std::sort(sort_keys.begin(), sort_keys.end());
  for (const std::string& pk : {std::string("p"), std::string(500, 'p')}) {
    for (std::size_t i = 1; i < sort_keys.size(); ++i) {
      EXPECT_LE(LmdbKey::of({pk, sort_keys[i - 1]}).bytes, LmdbKey::of({pk, sort_keys[i]}).bytes);
    }
  }
}

TEST(LmdbKeysTest, PartitionsNeverShareKeys) {
  // The pk's length stands in front: else "a" + "bMETA" would be the key of "ab" + "META".
  std::set<std::string> keys;
  for (const char* pk : {"a", "ab", "a\x01", "a\x02", "abc"}) {
    for (const char* sk : {"bMETA", "META", "cMETA", "bcMETA"})
      keys.insert(LmdbKey::of({pk, sk}).bytes);
  }
  EXPECT_EQ(keys.size(), 20U);
}

TEST(LmdbKeysTest, SaysWhatAStoredKeyStandsFor) {
  const LmdbKey plain = LmdbKey::of({"CACHE#1", "META"});
  const LmdbKey::Parsed parsed = LmdbKey::parse(plain.bytes);
  EXPECT_TRUE(parsed.valid);
  EXPECT_EQ(parsed.pk, "CACHE#1");
  EXPECT_EQ(parsed.sk, "META");
  EXPECT_FALSE(parsed.hashed);
  EXPECT_FALSE(parsed.overflow);

  const LmdbKey extreme = LmdbKey::of({std::string(2048, 'p'), std::string(1024, 's')});
  const LmdbKey::Parsed long_parsed = LmdbKey::parse(extreme.bytes);
  EXPECT_TRUE(long_parsed.valid);
  EXPECT_TRUE(long_parsed.hashed);
  EXPECT_TRUE(long_parsed.overflow);
  EXPECT_EQ(long_parsed.sk, std::string(380, 's'));
}

TEST(LmdbKeysTest, RecognisesWhatIsNoKeyOfARow) {
  for (const std::string& bytes :
       {std::string(), std::string("\0format", 7), std::string("\x01"), std::string("\x01\x05pk"),
        std::string("\x02short"), std::string("\x03whatever")}) {
    EXPECT_FALSE(LmdbKey::parse(bytes).valid);
  }
}

TEST(LmdbKeysTest, TheEndOfAPrefixSortsAfterAllThatBeginsWithIt) {
  EXPECT_EQ(end_of_prefix("ab"), "ac");
  EXPECT_EQ(end_of_prefix("a\xff\xff"), "b");
  EXPECT_EQ(end_of_prefix("\xff"), "");
}

}  // namespace
}  // namespace facetheory
