#include "facetheory/cache/recent_pages.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

TEST(RecentPages, FindsWhatWasPutLast) {
  RecentPages<int> pages(10);
  EXPECT_EQ(pages.find("a"), nullptr);
  pages.put("a", 1);
  pages.put("a", 2);
  ASSERT_NE(pages.find("a"), nullptr);
  EXPECT_EQ(*pages.find("a"), 2);
  EXPECT_EQ(pages.size(), 1U);
  pages.erase("a");
  pages.erase("a");
  EXPECT_EQ(pages.find("a"), nullptr);
}

TEST(RecentPages, ForgetsWhatHasNotBeenFoundForLongest) {
  RecentPages<int> pages(3);
  for (const char* pk : {"a", "b", "c"})
    pages.put(pk, 1);
  pages.find("a");
  pages.put("d", 1);
  EXPECT_EQ(pages.size(), 3U);
  EXPECT_NE(pages.find("a"), nullptr);
  EXPECT_EQ(pages.find("b"), nullptr);
  EXPECT_NE(pages.find("d"), nullptr);
}

TEST(RecentPages, SparesWhatWasFoundOnce) {
  RecentPages<int> pages(2);
  pages.put("a", 1);
  pages.find("a");
  pages.put("b", 1);
  pages.put("c", 1);
  pages.put("d", 1);
  EXPECT_EQ(pages.find("b"), nullptr);
  EXPECT_EQ(pages.find("a"), nullptr);
  EXPECT_NE(pages.find("c"), nullptr);
  EXPECT_NE(pages.find("d"), nullptr);
  pages.put("e", 1);  // All were found: the oldest goes, and not none.
  EXPECT_EQ(pages.size(), 2U);
  EXPECT_EQ(pages.find("c"), nullptr);
}

TEST(RecentPages, ForgetsAsManyAsTheNextOneCosts) {
  RecentPages<int> pages(10);
  for (const char* pk : {"a", "b", "c"})
    pages.put(pk, 1, 3);
  EXPECT_EQ(pages.cost(), 9U);
  pages.put("d", 1, 5);
  EXPECT_EQ(pages.cost(), 8U);
  EXPECT_EQ(pages.size(), 2U);
  EXPECT_NE(pages.find("c"), nullptr);
  pages.put("c", 2, 1);
  EXPECT_EQ(pages.cost(), 6U);
  pages.put("e", 1, 100);  // At least one.
  EXPECT_EQ(pages.size(), 1U);
  pages.clear();
  EXPECT_EQ(pages.cost(), 0U);
}

}  // namespace
}  // namespace facetheory
