#include "facetheory/cache/pointer_cache.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

Pointer pointer(std::string s3_key) {
  MetaRow meta;
  meta.s3_key = std::move(s3_key);
  return {std::move(meta), {}, {}};
}

TEST(PointerCache, FindsWhatWasPutLast) {
  PointerCache cache(10);
  EXPECT_EQ(cache.find("a"), nullptr);
  cache.put("a", pointer("1"));
  cache.put("a", pointer("2"));
  ASSERT_NE(cache.find("a"), nullptr);
  EXPECT_EQ(cache.find("a")->meta->s3_key, "2");
  EXPECT_EQ(cache.size(), 1U);
  cache.erase("a");
  cache.erase("a");
  EXPECT_EQ(cache.find("a"), nullptr);
}

TEST(PointerCache, ForgetsTheLeastRecentlyUsed) {
  PointerCache cache(3);
  for (const char* pk : {"a", "b", "c"})
    cache.put(pk, pointer(pk));
  cache.find("a");
  cache.put("d", pointer("d"));
  EXPECT_EQ(cache.size(), 3U);
  EXPECT_NE(cache.find("a"), nullptr);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_NE(cache.find("d"), nullptr);
}

}  // namespace
}  // namespace facetheory
