#include "facetheory/gateway/spill_file.h"

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

constexpr std::uint64_t kCapacity = 10'000;

class SpillFileTest : public testing::Test {
 protected:
  SpillFileTest() { EXPECT_NE(file_, nullptr); }

  // Writes and waits: where they lie, if they do.
  std::optional<std::uint64_t> try_to_write(const std::string& bytes) {
    std::mutex mutex;
    std::condition_variable told;
    std::optional<std::optional<std::uint64_t>> place;
    EXPECT_TRUE(
        file_->write(std::make_shared<const std::string>(bytes), [&](std::optional<std::uint64_t> at) {
          const std::lock_guard lock(mutex);
          place = at;
          told.notify_one();
        }));
    std::unique_lock lock(mutex);
    told.wait(lock, [&] { return place.has_value(); });
    return *place;
  }
  std::uint64_t write(const std::string& bytes) { return try_to_write(bytes).value(); }
  // Empty: they cannot be read.
  std::string read(std::uint64_t place, std::size_t size) const {
    std::string into(size, '?');
    return file_->read_at_once(place, size, into.data()) ? into : "";
  }

  const test::TemporaryDirectory folder_;
  const std::unique_ptr<SpillFile> file_ = SpillFile::make(folder_.path(), kCapacity);
};

TEST_F(SpillFileTest, HasWhatWasWrittenLast) {
  std::map<std::uint64_t, std::string> written;
  for (int i = 0; i < 200; ++i) {
    const std::string bytes(static_cast<std::size_t>(100 + i * 7), static_cast<char>('a' + i % 26));
    written[write(bytes)] = bytes;
  }
  std::size_t there = 0;
  for (const auto& [place, bytes] : written) {
    if (file_->is_overwritten(place)) {
      EXPECT_EQ(read(place, bytes.size()), "");
      EXPECT_EQ(there, 0u);  // The oldest go first.
    } else {
      EXPECT_EQ(read(place, bytes.size()), bytes);
      there += bytes.size();
    }
  }
  EXPECT_LE(there, kCapacity);
  EXPECT_GE(there,
            kCapacity - 4'000);  // A piece lies in one place, and leaves some room where the ring ends.
}

TEST_F(SpillFileTest, TakesNothingThatIsLargerThanItIs) {
  const auto larger = std::make_shared<const std::string>(kCapacity + 1, 'x');
  EXPECT_FALSE(file_->write(larger, [](std::optional<std::uint64_t>) { ADD_FAILURE(); }));
  EXPECT_EQ(read(write(std::string(kCapacity, 'y')), kCapacity), std::string(kCapacity, 'y'));
}

TEST_F(SpillFileTest, IsEmptiedAndOverWhenTheDiskIsFull) {
  const std::uint64_t place = write("abc");
  EXPECT_EQ(read(place, 3), "abc");
  {
    const test::FileSizeLimit limit(1'000);
    EXPECT_EQ(try_to_write(std::string(2'000, 'x')), std::nullopt);
  }
  EXPECT_EQ(read(place, 3), "");
  EXPECT_FALSE(file_->write(std::make_shared<const std::string>("abc"), [](auto) { ADD_FAILURE(); }));
}

TEST_F(SpillFileTest, HasNoName) {
  write("x");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SpillFileTest, OfAFolderThatIsNotThereIsNone) {
  EXPECT_EQ(SpillFile::make(folder_.path() / "absent", kCapacity), nullptr);
}

}  // namespace
}  // namespace facetheory
