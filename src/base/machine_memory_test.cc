#include "facetheory/base/machine_memory.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

using testing::Optional;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

class MachineMemory : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::optional<std::uint64_t> memory() const { return machine_memory(root_.path()); }

  test::TemporaryDirectory root_;
};

TEST_F(MachineMemory, IsThatOfTheMachineWhereNoGroupLimitsIt) {
  write("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:          123 kB\n");
  EXPECT_THAT(memory(), Optional(8 * kGiB));
  write("proc/self/cgroup", "0::/user.slice/shell\n");
  write("sys/fs/cgroup/user.slice/shell/memory.max", "max\n");
  EXPECT_THAT(memory(), Optional(8 * kGiB));
}

TEST_F(MachineMemory, IsTheSmallestLimitOfItsGroupAndThoseAround) {
  write("proc/meminfo", "MemTotal:        8388608 kB\n");
  write("proc/self/cgroup", "0::/system.slice/facetheory.service\n");
  write("sys/fs/cgroup/system.slice/facetheory.service/memory.max", "3221225472\n");
  EXPECT_THAT(memory(), Optional(3 * kGiB));
  write("sys/fs/cgroup/system.slice/memory.max", "2147483648\n");
  EXPECT_THAT(memory(), Optional(2 * kGiB));
}

TEST_F(MachineMemory, IsTheLimitOfAContainerWhichSeesItsGroupAsTheRoot) {
  write("proc/meminfo", "MemTotal:        8388608 kB\n");
  write("proc/self/cgroup", "0::/../../docker/1f\n");
  write("sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_THAT(memory(), Optional(kGiB / 2));
}

TEST_F(MachineMemory, KnowsTheFirstVersionOfGroups) {
  write("proc/meminfo", "MemTotal:        8388608 kB\n");
  write("proc/self/cgroup", "6:cpu,cpuacct:/docker/1f\n5:memory:/docker/1f\n");
  write("sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes", "1073741824\n");
  EXPECT_THAT(memory(), Optional(kGiB));
  // Where there is no limit, that version gives a number that no machine has.
  write("sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_THAT(memory(), Optional(8 * kGiB));
}

TEST_F(MachineMemory, IsUnknownWhereNothingSaysIt) {
  EXPECT_EQ(memory(), std::nullopt);
  write("proc/meminfo", "MemTotal: much\n");
  EXPECT_EQ(memory(), std::nullopt);
}

TEST_F(MachineMemory, IsKnownHere) {
  ASSERT_TRUE(machine_memory());
  EXPECT_GT(*machine_memory(), std::uint64_t{16} << 20);
}

}  // namespace
}  // namespace facetheory
