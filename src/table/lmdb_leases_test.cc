#include "facetheory/table/lmdb_leases.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/table/lmdb_keys.h"

#include "tests/support/servers.h"

namespace facetheory {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Scope = LmdbLeases::Scope;

constexpr std::uint64_t kDataInode = 77;

// There is no LMDB here: tests say themselves which transaction is begun and which snapshot is read.
class LmdbLeasesTest : public ::testing::Test {
 protected:
  static std::string key(const std::string& pk, const std::string& sk = "LOCK") {
    return LmdbKey::of({pk, sk}).bytes;
  }

  std::string directory() const { return temporary_.path().string(); }
  std::filesystem::path file() const { return temporary_.path() / "leases"; }

  std::unique_ptr<LmdbLeases> open() const {
    auto leases = LmdbLeases::open(directory(), kDataInode);
    if (!leases) throw std::runtime_error(to_string(leases.error()));
    return *std::move(leases);
  }

  static std::optional<std::string> find(const LmdbLeases& leases, const std::string& key,
                                         std::uint64_t snapshot) {
    const LeaseRows rows = leases.rows(Scope::row(key), snapshot);
    const auto row = rows.find(key);
    return row == rows.end() ? std::nullopt : std::optional(row->second);
  }

  void overwrite(std::streamoff at, std::string_view bytes) const {
    std::fstream out(file(), std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(at) << bytes;
  }

  test::TemporaryDirectory temporary_;
};

TEST_F(LmdbLeasesTest, ARowIsPutReplacedAndErasedAndEveryMappingOfTheFileSeesIt) {
  const auto ours = open();
  const auto theirs = open();
  ours->begin(1);
  ASSERT_TRUE(ours->put(key("a"), "one"));
  EXPECT_EQ(find(*theirs, key("a"), 0), "one");
  theirs->begin(1);
  ASSERT_TRUE(theirs->put(key("a"), "two, which is longer"));
  EXPECT_EQ(find(*ours, key("a"), 0), "two, which is longer");
  EXPECT_EQ(find(*ours, key("b"), 0), std::nullopt);
  ours->erase(key("a"));
  EXPECT_EQ(find(*theirs, key("a"), 0), std::nullopt);
  ours->erase(key("a"));
}

TEST_F(LmdbLeasesTest, ScopesAreARowAPartitionAndTheTable) {
  const auto leases = open();
  for (const char* pk : {"a", "aa", "b"}) {
    for (const char* sk : {"1", "2"})
      ASSERT_TRUE(leases->put(key(pk, sk), std::string(pk) + sk));
  }
  const auto records = [](const LeaseRows& rows) {
    std::vector<std::string> result;
    for (const auto& [key, record] : rows)
      result.push_back(record);
    return result;
  };
  const std::string one = key("aa", "1");
  const std::string partition = LmdbKey::partition_prefix("a");
  EXPECT_THAT(records(leases->rows(Scope::row(one), 0)), testing::ElementsAre("aa1"));
  EXPECT_THAT(records(leases->rows(Scope::partition(partition), 0)), testing::ElementsAre("a1", "a2"));
  EXPECT_THAT(records(leases->rows(Scope::table(), 0)),
              testing::ElementsAre("a1", "a2", "b1", "b2", "aa1", "aa2"));
}

TEST_F(LmdbLeasesTest, ARowThatEndsWithATransactionIsSeenBySnapshotsBeforeItOnly) {
  const auto leases = open();
  leases->begin(5);
  ASSERT_TRUE(leases->put(key("a"), "x"));
  EXPECT_FALSE(leases->end_with(5, key("b")));
  ASSERT_TRUE(leases->end_with(5, key("a")));
  EXPECT_EQ(find(*leases, key("a"), 4), "x");
  EXPECT_EQ(find(*leases, key("a"), 5), std::nullopt);  // The transaction itself sees it so, too.
  EXPECT_EQ(find(*leases, key("a"), 6), std::nullopt);
  leases->begin(6);
  EXPECT_EQ(find(*leases, key("a"), 6), std::nullopt);
}

TEST_F(LmdbLeasesTest, ARowGoesOnWhenTheTransactionItWasToEndWithWasNeverCommitted) {
  ASSERT_TRUE(open()->put(key("a"), "x"));
  {
    const auto killed = open();
    killed->begin(5);
    ASSERT_TRUE(killed->end_with(5, key("a")));
  }
  const auto next = open();
  EXPECT_EQ(find(*next, key("a"), 4), "x");
  next->begin(5);  // The number is given out again.
  EXPECT_EQ(find(*next, key("a"), 5), "x");
  next->begin(6);
  EXPECT_EQ(find(*next, key("a"), 6), "x");
}

TEST_F(LmdbLeasesTest, ThereIsRoomForSevenRowsOfAPartitionAndEndedOnesMakeRoom) {
  const auto leases = open();
  leases->begin(1);
  for (int i = 0; i < 7; ++i)
    ASSERT_TRUE(leases->put(key("a", std::to_string(i)), "x")) << i;
  EXPECT_FALSE(leases->put(key("a", "7"), "x"));
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(leases->put(key("a", "3"), "y" + std::to_string(i))) << i;
  EXPECT_EQ(leases->rows(Scope::table(), 1).size(), 7U);
  EXPECT_EQ(find(*leases, key("a", "3"), 1), "y19");
  EXPECT_EQ(find(*leases, key("a", "2"), 1), "x");

  leases->end_with(1, key("a", "5"));
  EXPECT_FALSE(leases->put(key("a", "7"), "x"));  // There is no room before that is committed.
  leases->begin(2);
  EXPECT_TRUE(leases->put(key("a", "7"), "x"));
  leases->erase(key("a", "0"));
  EXPECT_TRUE(leases->put(key("a", "8"), "x"));
  EXPECT_FALSE(leases->put(key("a", "9"), "x"));
}

TEST_F(LmdbLeasesTest, ARowHasAKibibyteLessItsHead) {
  const auto leases = open();
  const std::string largest(1024 - 16 - key("a").size(), 'x');
  EXPECT_TRUE(leases->put(key("a"), largest));
  EXPECT_EQ(find(*leases, key("a"), 0), largest);
  EXPECT_FALSE(leases->put(key("a"), largest + 'x'));
  EXPECT_EQ(find(*leases, key("a"), 0), largest);
}

TEST_F(LmdbLeasesTest, EveryChangeIsCountedInItsBucketAndInTheTable) {
  const auto leases = open();
  const std::string mine = key("a");
  const std::string other = key("b");
  std::uint64_t of_row = leases->changes(Scope::row(mine));
  std::uint64_t of_table = leases->changes(Scope::table());
  const std::uint64_t of_other = leases->changes(Scope::row(other));
  const auto expect_counted = [&](const char* what) {
    EXPECT_GT(leases->changes(Scope::row(mine)), std::exchange(of_row, leases->changes(Scope::row(mine))))
        << what;
    EXPECT_GT(leases->changes(Scope::table()), std::exchange(of_table, leases->changes(Scope::table())))
        << what;
  };
  leases->begin(1);
  leases->put(mine, "x");
  expect_counted("put");
  leases->put(mine, "y");
  expect_counted("replace");
  leases->end_with(1, mine);
  expect_counted("mark");
  leases->begin(1);
  expect_counted("take the mark off");
  leases->end_with(1, mine);
  expect_counted("mark again");
  leases->begin(2);
  expect_counted("remove what was marked");
  leases->put(mine, "x");
  expect_counted("put again");
  leases->erase(mine);
  expect_counted("erase");
  EXPECT_EQ(leases->changes(Scope::row(other)), of_other);
}

TEST_F(LmdbLeasesTest, AReaderThatSawNoChangeSawAWholeRow) {
  const auto ours = open();
  const auto theirs = open();
  const std::string moving = key("a", "moving");
  const std::string steady = key("a", "steady");
  ours->put(moving, std::string(800, 'a'));
  ours->put(steady, "steady");
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (std::uint64_t n = 1; !stop; ++n) {
      ours->begin(n);
      ours->put(moving, std::string(700 + n % 100, static_cast<char>('a' + n % 26)));
      if (n % 3 == 0) ours->put(key("a", "other"), std::string(900, '#'));
      if (n % 5 == 0) ours->erase(key("a", "other"));
    }
  });
  int seen = 0;
  for (std::uint64_t looks = 0; seen < 3000 && looks < 10'000'000; ++looks) {
    const std::uint64_t before = theirs->changes(Scope::row(moving));
    const auto row = find(*theirs, moving, 0);
    const auto beside = find(*theirs, steady, 0);
    if (theirs->changes(Scope::row(moving)) != before) continue;
    ++seen;
    ASSERT_EQ(beside, "steady");
    ASSERT_TRUE(row);
    ASSERT_EQ(*row, std::string(row->size(), row->front()));
    ASSERT_GE(row->size(), 700U);
  }
  stop = true;
  writer.join();
  EXPECT_EQ(seen, 3000);
}

TEST_F(LmdbLeasesTest, WhatAnotherBootOfTheMachineLeftIsForgotten) {
  ASSERT_TRUE(open()->put(key("a"), "x"));
  EXPECT_EQ(find(*open(), key("a"), 0), "x");
  overwrite(32, "00000000-another-boot");
  EXPECT_EQ(find(*open(), key("a"), 0), std::nullopt);
  ASSERT_TRUE(open()->put(key("a"), "y"));
  EXPECT_EQ(find(*open(), key("a"), 0), "y");
}

TEST_F(LmdbLeasesTest, LeasesOfAnotherTableOrOfACopyOrOfAnOlderStateAreForgotten) {
  open()->begin(10);
  ASSERT_TRUE(open()->put(key("a"), "x"));
  std::filesystem::copy_file(file(), temporary_.path() / "copy");

  open()->begin(9);  // data.mdb was restored in place.
  EXPECT_EQ(find(*open(), key("a"), 20), std::nullopt);

  std::filesystem::copy_file(temporary_.path() / "copy", file(),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(find(*open(), key("a"), 0), "x");  // The same inode: as if nothing had happened.
  const auto other = LmdbLeases::open(directory(), kDataInode + 1);
  ASSERT_TRUE(other);
  EXPECT_EQ(find(**other, key("a"), 0), std::nullopt);

  std::filesystem::rename(temporary_.path() / "copy", file());
  EXPECT_EQ(find(*open(), key("a"), 0), std::nullopt);
}

TEST_F(LmdbLeasesTest, AnUnfinishedFileIsMadeAnew) {
  for (const std::size_t size : {0U, 10U, 5000U}) {
    std::ofstream(file(), std::ios::binary) << std::string(size, '\0');
    ASSERT_TRUE(open()->put(key("a"), "x"));
    EXPECT_EQ(find(*open(), key("a"), 0), "x");
  }
}

TEST_F(LmdbLeasesTest, AFileOfAnotherProgramIsRefusedAndLeftAsItIs) {
  std::ofstream(file()) << "tenants and their leases";
  const auto leases = LmdbLeases::open(directory(), kDataInode);
  ASSERT_FALSE(leases);
  EXPECT_EQ(leases.error().code, ErrorCode::invalid);
  EXPECT_THAT(leases.error().message, AllOf(HasSubstr(file().string()), HasSubstr("move it away")));
  EXPECT_EQ(std::filesystem::file_size(file()), 24U);
}

TEST_F(LmdbLeasesTest, ANewerFormatIsRefusedWithBothVersions) {
  open();
  overwrite(0, "facetheory leases 2");
  const auto leases = LmdbLeases::open(directory(), kDataInode);
  ASSERT_FALSE(leases);
  EXPECT_EQ(leases.error().code, ErrorCode::invalid);
  EXPECT_THAT(leases.error().message, AllOf(HasSubstr("format 2"), HasSubstr("knows 1")));
}

TEST_F(LmdbLeasesTest, AFileThatWasCutOffIsRefusedUntilTheMachineRestarts) {
  ASSERT_TRUE(open()->put(key("a"), "x"));
  std::filesystem::resize_file(file(), 100000);
  const auto leases = LmdbLeases::open(directory(), kDataInode);
  ASSERT_FALSE(leases);
  EXPECT_EQ(leases.error().code, ErrorCode::corrupt);
  EXPECT_THAT(leases.error().message,
              AllOf(HasSubstr(file().string()), HasSubstr("cut off"), HasSubstr("delete")));
  EXPECT_EQ(std::filesystem::file_size(file()), 100000U);
  overwrite(32, "00000000-another-boot");
  EXPECT_EQ(find(*open(), key("a"), 0), std::nullopt);
}

TEST_F(LmdbLeasesTest, ADamagedRowIsNotTakenForAbsent) {
  ASSERT_TRUE(open()->put(key("a"), "easy-to-find"));
  std::ifstream in(file(), std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(in), {});
  const std::size_t row = content.find(key("a") + "easy-to-find");
  ASSERT_NE(row, std::string::npos);
  overwrite(static_cast<std::streamoff>(row - 8), "\xff\xff\xff\xff\xff\xff\xff\xff");  // Its sizes.
  const std::string partition = LmdbKey::partition_prefix("a");
  EXPECT_EQ(find(*open(), key("a"), 0), "");
  EXPECT_EQ(open()->rows(Scope::partition(partition), 0).size(), 1U);
  EXPECT_EQ(open()->rows(Scope::table(), 0).size(), 1U);
  ASSERT_TRUE(open()->put(key("a"), "healed"));
  EXPECT_EQ(find(*open(), key("a"), 0), "healed");
}

}  // namespace
}  // namespace facetheory
