#include <gmock/gmock.h>

#include "facetheory/aws/service_client.h"

#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string, std::less<>>;

class EndpointTest : public ::testing::Test {
 protected:
  Result<ServiceEndpoint> resolve(std::string_view service, Variables variables) {
    variables.emplace("HOME", home_.path().string());
    return resolve_endpoint(service, Environment(std::move(variables)));
  }

  const test::TemporaryDirectory home_;
};

TEST_F(EndpointTest, TheRegionNamesAmazonsOwn) {
  const auto dynamodb = resolve("dynamodb", {{"AWS_REGION", "eu-west-1"}, {"AWS_DEFAULT_REGION", "other"}});
  ASSERT_TRUE(dynamodb) << dynamodb.error().message;
  EXPECT_EQ(dynamodb->origin, (Origin{true, "dynamodb.eu-west-1.amazonaws.com", 443}));
  EXPECT_EQ(dynamodb->scope.region, "eu-west-1");
  EXPECT_EQ(dynamodb->scope.service, "dynamodb");
  EXPECT_FALSE(dynamodb->custom);
  const auto s3 = resolve("s3", {{"AWS_DEFAULT_REGION", "cn-north-1"}});
  ASSERT_TRUE(s3);
  EXPECT_EQ(s3->origin.host, "s3.cn-north-1.amazonaws.com.cn");
}

TEST_F(EndpointTest, TheServicesOwnVariableGoesBeforeTheCommonOne) {
  const Variables both = {{"AWS_ENDPOINT_URL", "http://127.0.0.1:1"},
                          {"AWS_ENDPOINT_URL_S3", "http://127.0.0.1:2"}};
  const auto s3 = resolve("s3", both);
  ASSERT_TRUE(s3);
  EXPECT_EQ(s3->origin.port, 2);
  EXPECT_TRUE(s3->custom);
  EXPECT_EQ(resolve("dynamodb", both)->origin.port, 1);
}

TEST_F(EndpointTest, TheProfileIsAskedLast) {
  home_.write(".aws/config",
              "[default]\nregion = eu-north-1\nendpoint_url = http://127.0.0.1:3\nservices = mine\n[services "
              "mine]\ndynamodb =\n"
              "  endpoint_url = http://127.0.0.1:4\n");
  const auto s3 = resolve("s3", {});
  ASSERT_TRUE(s3) << s3.error().message;
  EXPECT_EQ(s3->origin.port, 3);
  EXPECT_EQ(s3->scope.region, "eu-north-1");
  EXPECT_TRUE(s3->custom);
  EXPECT_EQ(resolve("dynamodb", {})->origin.port, 4);
  EXPECT_EQ(resolve("dynamodb", {{"AWS_ENDPOINT_URL", "http://127.0.0.1:5"}})->origin.port, 5);
  EXPECT_EQ(resolve("dynamodb", {{"AWS_REGION", "us-west-2"}})->scope.region, "us-west-2");
}

TEST_F(EndpointTest, ACustomEndpointNeedsNoRegion) {
  const auto endpoint = resolve("dynamodb", {{"AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:8000"}});
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->scope.region, "us-east-1");
}

TEST_F(EndpointTest, NoRegionIsAnErrorThatNamesTheVariable) {
  const auto endpoint = resolve("dynamodb", {});
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().code, ErrorCode::invalid);
  EXPECT_THAT(endpoint.error().message, HasSubstr("set AWS_REGION"));
  EXPECT_THAT(endpoint.error().message, HasSubstr("AWS_ENDPOINT_URL_DYNAMODB"));
}

TEST_F(EndpointTest, AMalformedUrlIsAnErrorThatNamesItsSource) {
  const auto variable = resolve("s3", {{"AWS_ENDPOINT_URL_S3", "localhost:9000"}});
  ASSERT_FALSE(variable);
  EXPECT_EQ(variable.error().code, ErrorCode::invalid);
  EXPECT_THAT(variable.error().message, HasSubstr("AWS_ENDPOINT_URL_S3: "));
  home_.write(".aws/config", "[default]\nendpoint_url = nonsense\n");
  const auto profile = resolve("s3", {});
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().message, HasSubstr("endpoint_url of profile \"default\": "));
}

TEST_F(EndpointTest, ARegionThatCouldNotBeOneIsRefused) {
  for (const char* region : {"eu west", "evil.example/", "EU-WEST-1", "a@b"}) {
    const auto endpoint = resolve("s3", {{"AWS_REGION", region}});
    ASSERT_FALSE(endpoint) << region;
    EXPECT_EQ(endpoint.error().code, ErrorCode::invalid);
    EXPECT_THAT(endpoint.error().message, HasSubstr("AWS_REGION is \"" + std::string(region)));
  }
}

TEST_F(EndpointTest, ABrokenConfigFileMattersOnlyWhereItIsNeeded) {
  home_.write(".aws/config", "what is this\n");
  EXPECT_FALSE(resolve("s3", {{"AWS_REGION", "eu-west-1"}}));
  EXPECT_TRUE(resolve("s3", {{"AWS_REGION", "eu-west-1"}, {"AWS_ENDPOINT_URL", "http://127.0.0.1:1"}}));
}

}  // namespace
}  // namespace facetheory
