#include "facetheory/table/open_table.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/log.h"

#include "tests/support/run.h"
#include "tests/support/servers.h"

namespace facetheory {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OpenTableTest : public ::testing::Test {
 protected:
  OpenTableTest() {
    set_log_sink([this](LogLevel, std::string_view line) { log_.emplace_back(line); });
  }
  ~OpenTableTest() override { set_log_sink({}); }

  Result<std::unique_ptr<Table>> open(std::string uri,
                                      std::map<std::string, std::string, std::less<>> variables = {}) {
    variables.emplace("AWS_REGION", "eu-west-1");
    Platform platform;
    platform.environment = Environment(std::move(variables));
    return open_table(std::move(uri), test::executor(), platform);
  }

  std::vector<std::string> log_;
};

TEST_F(OpenTableTest, OpensEachKind) {
  const test::TemporaryDirectory directory;
  EXPECT_TRUE(open("memory:"));
  EXPECT_TRUE(open("lmdb:" + (directory.path() / "new" / "table").string()));
  EXPECT_TRUE(open("dynamodb:pages"));
}

TEST_F(OpenTableTest, NamesTheAcceptedFormsWhenTheUriIsNone) {
  for (const char* uri : {"", "memory", "memory:x", "sqlite:x", "lmdb", "/var/lib/table", "dynamodb"}) {
    const auto table = open(uri);
    ASSERT_FALSE(table) << uri;
    EXPECT_EQ(table.error().code, ErrorCode::invalid);
    EXPECT_THAT(table.error().message, AllOf(HasSubstr("\"" + std::string(uri) + "\""),
                                             HasSubstr("lmdb:<directory>"), HasSubstr("dynamodb:<table>")));
  }
}

TEST_F(OpenTableTest, KnowsWhetherAnEmbeddedTableIsThere) {
  const test::TemporaryDirectory directory;
  const std::string uri = "lmdb:" + (directory.path() / "new" / "table").string();
  EXPECT_TRUE(is_yet_to_be_made(uri));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "new"));
  ASSERT_TRUE(open(uri));
  EXPECT_FALSE(is_yet_to_be_made(uri));
  for (const char* elsewhere : {"memory:", "dynamodb:pages", "lmdb:"})
    EXPECT_FALSE(is_yet_to_be_made(elsewhere)) << elsewhere;
}

TEST_F(OpenTableTest, WantsADirectoryForLmdb) {
  const auto table = open("lmdb:");
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("lmdb:<directory>"));
}

TEST_F(OpenTableTest, TakesTheTableNameFromTheEnvironmentSilently) {
  EXPECT_TRUE(
      open("dynamodb:", {{"FACETHEORY_CACHE_TABLE_NAME", "pages"}, {"APPTHEORY_CACHE_TABLE_NAME", "other"}}));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(OpenTableTest, TakesTheAliasWithAWarningThatNamesTheRightVariable) {
  EXPECT_TRUE(open("dynamodb:", {{"APPTHEORY_CACHE_TABLE_NAME", "pages"}}));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("FACETHEORY_CACHE_TABLE_NAME=pages")));
}

TEST_F(OpenTableTest, CompletesAUriWithWhatTheEnvironmentAndTheWorkingFolderSay) {
  const std::map<std::string, std::string, std::less<>> old = {{"APPTHEORY_CACHE_TABLE_NAME", "old"}};
  const Environment alias(old);
  const Environment both({{"FACETHEORY_CACHE_TABLE_NAME", "pages"}, {"APPTHEORY_CACHE_TABLE_NAME", "old"}});
  EXPECT_EQ(complete_table_uri("dynamodb:", both), "dynamodb:pages");
  EXPECT_EQ(complete_table_uri("dynamodb:", alias), "dynamodb:old");
  EXPECT_EQ(complete_table_uri("dynamodb:", Environment()), "dynamodb:");
  EXPECT_EQ(complete_table_uri("dynamodb:own", both), "dynamodb:own");
  EXPECT_EQ(complete_table_uri("lmdb:/a/./b/../c/", both), "lmdb:/a/c");
  EXPECT_EQ(complete_table_uri("memory:", both), "memory:");
}

TEST_F(OpenTableTest, SaysWhichVariablesAreMissing) {
  const auto table = open("dynamodb:");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::invalid);
  EXPECT_THAT(table.error().message,
              AllOf(HasSubstr("FACETHEORY_CACHE_TABLE_NAME"), HasSubstr("APPTHEORY_CACHE_TABLE_NAME")));
}

}  // namespace
}  // namespace facetheory
