#include "facetheory/service/folder_watch.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/log.h"
#include "facetheory/table/lmdb_table.h"

#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class FolderWatchTest : public testing::Test {
 protected:
  FolderWatchTest() {
    set_log_sink([this](LogLevel, std::string_view line) { said_.emplace_back(line); });
  }
  ~FolderWatchTest() override { set_log_sink({}); }

  std::string folder() const { return (temporary_.path() / "data").string(); }
  void open_table() {
    auto table = open_lmdb_table(folder());
    ASSERT_TRUE(table);
    table_ = *std::move(table);
    watch_.watch("table", "lmdb:" + folder());
  }

  test::TemporaryDirectory temporary_;
  std::unique_ptr<Table> table_;
  FolderWatch watch_;
  std::vector<std::string> said_;
};

TEST_F(FolderWatchTest, SaysNothingOfAFolderThatIsStillThere) {
  open_table();
  watch_.check();
  EXPECT_EQ(watch_.trouble_of("table"), std::nullopt);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(FolderWatchTest, TellsOnceOfATableWhoseFolderWasDeleted) {
  open_table();
  fs::remove_all(folder());
  watch_.check();
  watch_.check();
  ASSERT_TRUE(watch_.trouble_of("table"));
  EXPECT_THAT(watch_.trouble_of("table")->message, HasSubstr(folder() + ", was deleted or replaced"));
  EXPECT_EQ(watch_.trouble_of("bodies"), std::nullopt);
  EXPECT_THAT(said_, SizeIs(1));
}

TEST_F(FolderWatchTest, TellsOfATableInWhosePlaceAnotherStands) {
  open_table();
  fs::rename(folder(), folder() + "-away");
  auto second = open_lmdb_table(folder());
  ASSERT_TRUE(second);
  watch_.check();
  EXPECT_TRUE(watch_.trouble_of("table"));
}

TEST_F(FolderWatchTest, IsContentWhenTheFolderIsBack) {
  open_table();
  fs::rename(folder(), folder() + "-away");
  watch_.check();
  EXPECT_TRUE(watch_.trouble_of("table"));
  fs::rename(folder() + "-away", folder());
  watch_.check();
  EXPECT_EQ(watch_.trouble_of("table"), std::nullopt);
  EXPECT_THAT(said_, SizeIs(2));
}

TEST_F(FolderWatchTest, AFolderOfFilesMayBeReplacedButNotBeMissing) {
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms(0700));
  watch_.watch("bodies", "file:" + folder());
  fs::rename(folder(), folder() + "-away");
  watch_.check();
  EXPECT_TRUE(watch_.trouble_of("bodies"));
  fs::create_directory(folder());
  watch_.check();
  EXPECT_EQ(watch_.trouble_of("bodies"), std::nullopt);
  EXPECT_THAT(said_, Contains(HasSubstr("is another one than before")));
}

TEST_F(FolderWatchTest, WarnsOfAFolderThatOthersMayRead) {
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms(0750));
  watch_.watch("bodies", "file:" + folder());
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("(mode 0750)"));
  EXPECT_THAT(said_[0], HasSubstr("chmod 700 " + folder()));
}

TEST_F(FolderWatchTest, WarnsOfAFileOfATableThatOthersMayRead) {
  open_table();
  ASSERT_THAT(said_, IsEmpty());
  const std::string file = folder() + "/data.mdb";
  fs::permissions(file, fs::perms(0666));
  FolderWatch().watch("table", "lmdb:" + folder());
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("a file of the table, " + file + " (mode 0666)"));
  EXPECT_THAT(said_[0], HasSubstr("chmod 600 " + file));
}

TEST_F(FolderWatchTest, WarnsOnceOfAFolderAboveThatOthersMayWriteTo) {
  const std::string above = temporary_.path().string();
  for (const char* store : {"table", "bodies"}) {
    fs::create_directory(temporary_.path() / store);
    fs::permissions(temporary_.path() / store, fs::perms(0700));
  }
  const auto watch_both = [&] {
    said_.clear();
    FolderWatch watch;
    watch.watch("table", "file:" + above + "/table");
    watch.watch("bodies", "file:" + above + "/bodies/");
  };
  fs::permissions(above, fs::perms(0777));
  watch_both();
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("the folder above the table, " + above + " (mode 0777)"));
  EXPECT_THAT(said_[0], HasSubstr("chmod go-w " + above));
  fs::permissions(above, fs::perms(0755));  // Others may see the names in it.
  watch_both();
  EXPECT_THAT(said_, IsEmpty());
  fs::permissions(above, fs::perms(01777));  // As /tmp: others may not move what is ours.
  watch_both();
  EXPECT_THAT(said_, IsEmpty());
  fs::permissions(above, fs::perms(0700));
}

TEST_F(FolderWatchTest, AFolderThatIsMadeForATableIsForItsUserAlone) {
  open_table();
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms(0700));
  for (const auto& file : fs::directory_iterator(folder()))
    EXPECT_EQ(file.status().permissions(), fs::perms(0600)) << file.path();
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(FolderWatchTest, OtherStoresHaveNoFolder) {
  watch_.watch("table", "memory:");
  watch_.watch("bodies", "s3://bucket");
  watch_.check();
  EXPECT_EQ(watch_.trouble_of("table"), std::nullopt);
  EXPECT_EQ(watch_.trouble_of("bodies"), std::nullopt);
}

}  // namespace
}  // namespace facetheory
