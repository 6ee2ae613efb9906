#include "facetheory/aws/shared_config.h"

#include <gmock/gmock.h>

#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

using ::testing::HasSubstr;

TEST(ParseConfig, NamesKeepEveryByteButQuotesAndBlanks) {
  const auto sections = parse_config(std::string_view("[a\0\"b\0 c\"]", 10), "config");
  ASSERT_TRUE(sections);
  EXPECT_TRUE(sections->contains(std::string("a\0b\0 c", 6)));
}

TEST(ParseConfig, ReadsSectionsSettingsAndComments) {
  const auto sections = parse_config(
      "# a comment\r\n[default]\r\nRegion = eu-west-1\r\n; another\n  \n\n[profile  \"two words\"] # why\n "
      "a=1\nb = x = y # kept\n"
      "c=\n[default]\noutput=json",
      "f");
  ASSERT_TRUE(sections) << sections.error().message;
  EXPECT_EQ(sections->size(), 2U);
  EXPECT_EQ(sections->at("default"), (ConfigSection{{"region", "eu-west-1"}, {"output", "json"}}));
  EXPECT_EQ(sections->at("profile two words"), (ConfigSection{{"a", "1"}, {"b", "x = y # kept"}, {"c", ""}}));
}

TEST(ParseConfig, KeepsTheSpacesInsideQuotes) {
  const auto sections = parse_config("[profile 'a  b'  c]\nx=1\n", "f");
  ASSERT_TRUE(sections);
  EXPECT_TRUE(sections->contains("profile a  b c"));
}

TEST(ParseConfig, ReadsNestedSettings) {
  const auto sections = parse_config(
      "[services local]\ndynamodb =\n  endpoint_url = http://a:1\n  x = 2\ns3 "
      "=\n\tendpoint_url=http://b:2\nplain = 3\n",
      "f");
  ASSERT_TRUE(sections) << sections.error().message;
  EXPECT_EQ(sections->at("services local"), (ConfigSection{{"dynamodb", ""},
                                                           {"dynamodb.endpoint_url", "http://a:1"},
                                                           {"dynamodb.x", "2"},
                                                           {"s3", ""},
                                                           {"s3.endpoint_url", "http://b:2"},
                                                           {"plain", "3"}}));
}

TEST(ParseConfig, NamesTheLineThatCannotBeRead) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"[default]\nno equals sign\n", "f:2: expected"},
           {"\n\nx = 1\n", "f:3: a setting before"},
           {"[default\n", "f:1: a section begins"},
           {"[ ]\n", "f:1: a section without a name"},
           {"[default]\n= 1\n", "f:2: a value without a name"}}) {
    const auto sections = parse_config(text, "f");
    ASSERT_FALSE(sections) << text;
    EXPECT_EQ(sections.error().code, ErrorCode::invalid);
    EXPECT_THAT(sections.error().message, HasSubstr(message));
  }
}

class ProfileTest : public ::testing::Test {
 protected:
  Result<Profile> load(std::map<std::string, std::string, std::less<>> variables = {}) {
    variables.emplace("HOME", home_.path().string());
    return Profile::load(Environment(std::move(variables)));
  }

  const test::TemporaryDirectory home_;
};

TEST_F(ProfileTest, MissingFilesAreEmptyOnes) {
  const auto profile = load();
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_FALSE(profile->found());
  EXPECT_EQ(profile->name(), "default");
  EXPECT_THAT(profile->files(), HasSubstr((home_.path() / ".aws/credentials").string()));
  EXPECT_THAT(profile->files(), HasSubstr((home_.path() / ".aws/config").string()));
}

TEST_F(ProfileTest, AnEmptyFileIsNoError) {
  home_.write(".aws/config", "");
  ASSERT_TRUE(load());
}

TEST_F(ProfileTest, MergesBothFilesTheCredentialsFileFirst) {
  home_.write(".aws/credentials", "[default]\nregion = from-credentials\naws_access_key_id = a\n");
  home_.write(".aws/config", "[default]\nregion = from-config\noutput = json\n");
  const auto profile = load();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->get("region"), "from-credentials");
  EXPECT_EQ(profile->get("output"), "json");
  EXPECT_EQ(profile->get("nothing"), std::nullopt);
}

TEST_F(ProfileTest, NeverMixesKeysOfTwoFiles) {
  home_.write(".aws/credentials", "[default]\naws_access_key_id = a\naws_secret_access_key = b\n");
  home_.write(".aws/config",
              "[default]\naws_access_key_id = x\naws_secret_access_key = y\naws_session_token = z\n");
  const auto profile = load();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->get("aws_access_key_id"), "a");
  EXPECT_EQ(profile->get("aws_session_token"), std::nullopt);
}

TEST_F(ProfileTest, NamedProfilesArePrefixedInTheConfigFileOnly) {
  home_.write(".aws/credentials",
              "[work]\naws_access_key_id = a\n[profile work]\naws_access_key_id = wrong\n");
  home_.write(".aws/config", "[profile work]\nregion = eu-west-1\n[work]\nregion = wrong\n");
  const auto profile = load({{"AWS_PROFILE", "work"}});
  ASSERT_TRUE(profile);
  EXPECT_TRUE(profile->found());
  EXPECT_EQ(profile->get("aws_access_key_id"), "a");
  EXPECT_EQ(profile->get("region"), "eu-west-1");
}

TEST_F(ProfileTest, ProfileDefaultHidesDefault) {
  home_.write(".aws/config", "[default]\nregion = plain\n[profile default]\nregion = prefixed\n");
  const auto profile = load();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->get("region"), "prefixed");
}

TEST_F(ProfileTest, VariablesNameOtherFiles) {
  home_.write("c", "[default]\naws_access_key_id = a\n");
  home_.write("d", "[default]\nregion = r\n");
  const auto profile =
      load({{"AWS_SHARED_CREDENTIALS_FILE", (home_.path() / "c").string()}, {"AWS_CONFIG_FILE", "~/d"}});
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->get("aws_access_key_id"), "a");
  EXPECT_EQ(profile->get("region"), "r");
}

TEST_F(ProfileTest, AFileThatCannotBeReadIsInvalidAndNamed) {
  const auto profile = load({{"AWS_CONFIG_FILE", home_.path().string()}});
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, ErrorCode::invalid);
  EXPECT_THAT(profile.error().message, HasSubstr(home_.path().string()));
}

TEST_F(ProfileTest, AServicesSectionNamesEndpoints) {
  home_.write(".aws/config",
              "[default]\nservices = local\nendpoint_url = http://all:1\n[services local]\ns3 =\n  "
              "endpoint_url = http://s3:2\n");
  const auto profile = load();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->endpoint_url("s3"), "http://s3:2");
  EXPECT_EQ(profile->endpoint_url("dynamodb"), "http://all:1");
}

}  // namespace
}  // namespace facetheory
