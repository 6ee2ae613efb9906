#include "facetheory/base/memory_file.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace facetheory {
namespace {

TEST(MemoryFile, HoldsItsBytes) {
  const std::string bytes(100'000, 'x');
  const auto file = MemoryFile::of(bytes);
  ASSERT_NE(file, nullptr);
  std::string read(bytes.size() + 1, '\0');
  EXPECT_EQ(::pread(file->descriptor(), read.data(), read.size(), 0), 100'000);
  EXPECT_EQ(read.substr(0, bytes.size()), bytes);
}

TEST(MemoryFile, LeavesMostDescriptorsToOthers) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{40, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<std::shared_ptr<const MemoryFile>> files;
  for (int i = 0; i < 10; ++i)
    files.push_back(MemoryFile::of("a"));
  EXPECT_NE(files.back(), nullptr);
  EXPECT_EQ(MemoryFile::of("a"), nullptr);
  files.pop_back();
  EXPECT_NE(MemoryFile::of("a"), nullptr);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace facetheory
