#include "facetheory/bodies/stored_bytes.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

constexpr std::size_t kOffset = 1'000;

// A file that holds "before", the bytes, and more behind them.
class StoredBytesTest : public testing::Test {
 protected:
  StoredBytesTest() {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<char>(i * 7 + i / 256);
    std::ofstream(path_) << std::string(kOffset, '-') << bytes_ << std::string(kOffset, '+');
  }

  std::shared_ptr<const OpenFile> file() const {
    return std::make_shared<const OpenFile>(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  }
  StoredBytes stored(std::uint64_t offset = kOffset) const { return {{file(), offset}, bytes_}; }
  // Empty: they cannot be read at once.
  static std::string read(const StoredBytes& stored) {
    std::string into(stored.size(), '?');
    return stored.read_at_once(into.data()) ? into : "";
  }
  void overwrite(std::size_t at, const std::string& with) const {
    const OpenFile file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::pwrite(file.descriptor(), with.data(), with.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(with.size()));
  }

  const test::TemporaryDirectory folder_;
  const std::string path_ = (folder_.path() / "file").string();
  std::string bytes_ = std::string(50'000, '\0');
};

TEST_F(StoredBytesTest, AreReadWhereTheyLie) {
  const StoredBytes one = stored();
  const StoredBytes other = one;
  EXPECT_EQ(read(one), bytes_);
  EXPECT_EQ(read(other), bytes_);
  ::unlink(path_.c_str());
  EXPECT_EQ(read(one), bytes_);
}

TEST_F(StoredBytesTest, AreNotTheNextOnesNorThoseOfAShorterFile) {
  EXPECT_EQ(read(stored(kOffset + 1)), "");
  EXPECT_EQ(read(stored(kOffset - 1)), "");
  EXPECT_EQ(read(stored(10 * bytes_.size())), "");
  const StoredBytes before = stored();
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(kOffset + bytes_.size() - 1)), 0);
  EXPECT_EQ(read(before), "");
}

TEST_F(StoredBytesTest, OneOtherBitIsNoticedWhereverItIs) {
  const StoredBytes before = stored();
  for (std::size_t at = 0; at < bytes_.size(); at += 997) {
    overwrite(kOffset + at, std::string(1, static_cast<char>(bytes_[at] ^ 0x10)));
    EXPECT_EQ(read(before), "") << at;
    overwrite(kOffset + at, std::string(1, bytes_[at]));
  }
  EXPECT_EQ(read(before), bytes_);
}

TEST_F(StoredBytesTest, KnowWhichBytesTheyAre) {
  const StoredBytes these = stored();
  EXPECT_TRUE(these.are(bytes_));
  EXPECT_FALSE(these.are(bytes_.substr(1)));
  EXPECT_FALSE(these.are(bytes_ + "x"));
  bytes_.back() ^= 1;
  EXPECT_FALSE(these.are(bytes_));
}

TEST_F(StoredBytesTest, NoneAtAllAreThereAlways) {
  bytes_.clear();
  const StoredBytes none = stored();
  EXPECT_EQ(none.size(), 0u);
  char nothing = '?';
  EXPECT_TRUE(none.read_at_once(&nothing));
  EXPECT_EQ(nothing, '?');
}

// How many of the file's pages the system has in memory.
std::size_t pages_in_memory(int file, std::size_t size) {
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) return 0;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there((size + page - 1) / page);
  ::mincore(map, size, there.data());
  ::munmap(map, size);
  std::size_t count = 0;
  for (const unsigned char one : there)
    count += one & 1U;
  return count;
}

TEST_F(StoredBytesTest, DoNotWaitForADisk) {
  const StoredBytes before = stored();
  const OpenFile file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::fsync(file.descriptor()), 0);
  ASSERT_EQ(::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED), 0);
  const std::size_t size = bytes_.size() + 2 * kOffset;
  // Where the file system has no disk, they stay.
  if (pages_in_memory(file.descriptor(), size) > 0) return;
  EXPECT_EQ(read(before), "");
  std::string into(size, '?');
  ASSERT_EQ(::pread(file.descriptor(), into.data(), size, 0), static_cast<ssize_t>(size));
  EXPECT_EQ(read(before), bytes_);
}

}  // namespace
}  // namespace facetheory
