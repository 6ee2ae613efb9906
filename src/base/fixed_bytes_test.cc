#include "facetheory/base/fixed_bytes.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace facetheory {
namespace {

const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

TEST(FixedBytes, AreACopy) {
  FixedMemory memory(1 << 20);
  std::string bytes(100'001, 'x');
  const auto fixed = memory.copy_of(bytes);
  ASSERT_NE(fixed, nullptr);
  const std::string before = bytes;
  bytes.assign(bytes.size(), 'y');
  EXPECT_EQ(fixed->bytes(), before);
}

TEST(FixedBytesDeathTest, AreNotWrittenTo) {
  FixedMemory memory(1 << 20);
  const auto fixed = memory.copy_of("abc");
  ASSERT_NE(fixed, nullptr);
  EXPECT_DEATH(const_cast<char&>(fixed->bytes().front()) = 'x', "");
}

TEST(FixedBytes, TakeNoMoreThanTheirMemory) {
  FixedMemory memory(3 * kPage);
  auto first = memory.copy_of(std::string(kPage + 1, 'x'));
  const auto second = memory.copy_of("a");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(memory.copy_of("b"), nullptr);
  EXPECT_EQ(memory.bytes_in_use(), memory.most());
  first.reset();
  EXPECT_EQ(memory.bytes_in_use(), kPage);
  EXPECT_EQ(memory.copy_of(std::string(2 * kPage + 1, 'x')), nullptr);
  EXPECT_NE(memory.copy_of(std::string(2 * kPage, 'x')), nullptr);
}

TEST(FixedBytes, LeaveMostMappingsToOthers) {
  FixedMemory memory(std::size_t{1} << 30);
  std::vector<std::shared_ptr<const FixedBytes>> all;
  while (all.size() < 100'000) {
    auto fixed = memory.copy_of("a");
    if (!fixed) break;
    all.push_back(std::move(fixed));
  }
  EXPECT_EQ(all.size(), 16'384u);
  all.pop_back();
  EXPECT_NE(memory.copy_of("a"), nullptr);
}

TEST(FixedBytes, MayOutliveTheirMemory) {
  std::shared_ptr<const FixedBytes> fixed;
  {
    FixedMemory memory(kPage);
    fixed = memory.copy_of("abc");
  }
  ASSERT_NE(fixed, nullptr);
  EXPECT_EQ(fixed->bytes(), "abc");
}

TEST(FixedBytes, OfNothingThereAreNone) {
  FixedMemory memory(kPage);
  EXPECT_EQ(memory.copy_of(""), nullptr);
}

}  // namespace
}  // namespace facetheory
