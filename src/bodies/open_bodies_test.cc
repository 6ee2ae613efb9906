#include "facetheory/bodies/open_bodies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/whole_path.h"

#include "tests/support/run.h"
#include "tests/support/servers.h"

namespace facetheory {
namespace {

using test::run;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& uri, std::map<std::string, std::string, std::less<>> variables = {}) {
  Platform platform;
  platform.environment = Environment(std::move(variables));
  auto store = open_bodies(uri, test::executor(), std::move(platform));
  return store ? "(opened)" : to_string(store.error());
}

TEST(OpenBodies, RefusesWhatIsNoUriAndSaysWhatWouldBe) {
  for (const char* uri : {"",
                          "memory",
                          "memory:x",
                          "file:",
                          "file://host/folder",
                          "lmdb:",
                          "lmdb://host/folder",
                          "s3",
                          "s3:bucket",
                          "s3:/bucket/x",
                          "S3://bodies",
                          "s3://B_D",
                          "s3://ab",
                          "s3://-ab",
                          "s3://a..b",
                          "s3:///prefix",
                          "s3://bodies//x",
                          "s3://bodies/a/../b",
                          "s3://bodies/a\nb",
                          "dynamodb:x",
                          "/var/bodies"}) {
    EXPECT_THAT(refusal(uri, {{"AWS_REGION", "eu-west-1"}}),
                AllOf(HasSubstr("invalid: \"" + std::string(uri) + "\""),
                      HasSubstr("memory:, lmdb:<folder>, file:<folder>, s3://bucket")))
        << uri;
  }
}

TEST(OpenBodies, SaysWhichVariableIsMissing) {
  EXPECT_THAT(refusal("s3:"), HasSubstr("FACETHEORY_ISR_BUCKET is not set"));
  EXPECT_THAT(refusal("s3://bodies"), HasSubstr("AWS_REGION"));
}

TEST(OpenBodies, SaysWhatIsWrongWithAFolder) {
  EXPECT_THAT(refusal("file:/dev/null"), AllOf(HasSubstr("invalid: "), HasSubstr("/dev/null")));
  EXPECT_THAT(refusal("file:/dev/null/below"), AllOf(HasSubstr("invalid: "), HasSubstr("/dev/null/below")));
  EXPECT_THAT(refusal("lmdb:/dev/null"), AllOf(HasSubstr("invalid: "), HasSubstr("/dev/null")));
}

TEST(OpenBodies, OpensMemory) {
  auto store = open_bodies("memory:", test::executor());
  ASSERT_TRUE(store);
  ASSERT_TRUE(run((*store)->write("k", Body{"x", {}})));
  EXPECT_EQ((*run((*store)->read("k")))->bytes, "x");
}

TEST(OpenBodies, OpensAFolderAgain) {
  const test::TemporaryDirectory folder;
  for (const std::string& uri :
       {"file:" + folder.path().string() + "/a/b", "file://" + folder.path().string() + "/a/b/",
        "lmdb:" + folder.path().string() + "/a/b/", "lmdb://" + folder.path().string() + "/a/b"}) {
    auto store = open_bodies(uri, test::executor());
    ASSERT_TRUE(store) << to_string(store.error());
    ASSERT_TRUE(run((*store)->write("k", Body{"x", {}})));
    EXPECT_EQ(run((*store)->list({}, 10))->entries.size(), 1u);
  }
}

TEST(OpenBodies, DoesNotOpenAsFilesWhatHasATableBesideThem) {
  const test::TemporaryDirectory folder;
  auto store = open_bodies("lmdb:" + folder.path().string(), test::executor());
  ASSERT_TRUE(store);
  ASSERT_TRUE(run((*store)->write("k", Body{"x", {}})));
  EXPECT_THAT(refusal("file:" + folder.path().string()),
              AllOf(HasSubstr("invalid: "), HasSubstr("open it as lmdb:" + folder.path().string())));
}

TEST(OpenBodies, OpensAsFilesWhatSomebodyHasOpenedWithATableAndNotWrittenTo) {
  const test::TemporaryDirectory folder;
  ASSERT_TRUE(open_bodies("lmdb:" + folder.path().string(), test::executor()));
  auto store = open_bodies("file:" + folder.path().string(), test::executor());
  ASSERT_TRUE(store) << to_string(store.error());
  EXPECT_TRUE(run((*store)->list({}, 10))->entries.empty());
}

TEST(OpenBodies, CompletesAUriWithWhatTheEnvironmentAndTheWorkingFolderSay) {
  const Environment environment({{"FACETHEORY_ISR_BUCKET", "pages"}, {"FACETHEORY_ISR_PREFIX", "p/"}});
  EXPECT_EQ(complete_bodies_uri("s3:", environment), "s3://pages/p");
  EXPECT_EQ(complete_bodies_uri("s3:?pointers=relative", environment), "s3://pages/p?pointers=relative");
  EXPECT_EQ(complete_bodies_uri("s3://other", environment), "s3://other");
  EXPECT_EQ(complete_bodies_uri("s3://other/x/", environment), "s3://other/x");
  EXPECT_EQ(complete_bodies_uri("s3:", Environment()), "s3:");
  EXPECT_EQ(complete_bodies_uri("file:/a/./b/../c/", environment), "file:/a/c");
  EXPECT_EQ(complete_bodies_uri("lmdb:x", environment), "lmdb:" + whole_path("x"));
  EXPECT_TRUE(whole_path("x").starts_with('/') && whole_path("x").ends_with("/x"));
  EXPECT_EQ(complete_bodies_uri("memory:", environment), "memory:");
}

TEST(OpenBodies, TakesBucketAndPrefixFromTheEnvironment) {
  test::FaultProxy proxy("s3", test::shared_s3_server().endpoint());
  auto variables = test::aws_variables("s3", proxy.endpoint());
  variables["FACETHEORY_ISR_BUCKET"] = "bodies";
  const auto write = [&](const std::string& key) {
    Platform platform;
    platform.environment = Environment(variables);
    auto store = open_bodies("s3:", test::executor(), std::move(platform));
    ASSERT_TRUE(store) << to_string(store.error());
    ASSERT_TRUE(run((*store)->write(key, Body{"x", {}})));
  };
  write("from-environment");
  EXPECT_EQ(proxy.log().back().target, "/bodies/isr/from-environment");
  variables["FACETHEORY_ISR_PREFIX"] = "other/place/";
  write("from-environment");
  EXPECT_EQ(proxy.log().back().target, "/bodies/other/place/from-environment");
}

TEST(OpenBodies, TakesTheFormOfPointersFromTheUriOrTheEnvironment) {
  const auto reference = [](const std::string& uri, const std::string& variable) {
    std::map<std::string, std::string, std::less<>> variables = {{"AWS_REGION", "eu-west-1"},
                                                                 {"FACETHEORY_ISR_BUCKET", "bodies"}};
    if (!variable.empty()) variables["FACETHEORY_ISR_POINTERS"] = variable;
    Platform platform;
    platform.environment = Environment(std::move(variables));
    auto store = open_bodies(uri, test::executor(), std::move(platform));
    return store ? (*store)->reference("k") : to_string(store.error());
  };
  EXPECT_EQ(reference("s3:", ""), "isr/k");
  EXPECT_EQ(reference("s3:?pointers=relative", ""), "k");
  EXPECT_EQ(reference("s3:", "relative"), "k");
  EXPECT_EQ(reference("s3://bodies/a/b?pointers=relative", ""), "k");
  EXPECT_EQ(reference("s3://bodies/a/b", "relative"), "k");
  EXPECT_EQ(reference("s3://bodies/a/b?pointers=complete", "relative"), "a/b/k");
  EXPECT_THAT(reference("s3://bodies/a?pointers=bare", ""),
              AllOf(HasSubstr("invalid: "), HasSubstr("?pointers=bare"), HasSubstr("?pointers=relative")));
  EXPECT_THAT(reference("s3://bodies/a?b", ""), HasSubstr("\"?b\" is no option"));
  EXPECT_THAT(reference("s3:", "short"),
              AllOf(HasSubstr("FACETHEORY_ISR_POINTERS is \"short\""), HasSubstr("complete or relative")));
}

}  // namespace
}  // namespace facetheory
