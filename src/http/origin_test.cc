#include "facetheory/http/origin.h"

#include <gmock/gmock.h>

namespace facetheory {
namespace {

using ::testing::HasSubstr;

TEST(ParseOrigin, ReadsSchemeHostAndPort) {
  EXPECT_EQ(*parse_origin("http://127.0.0.1:8000"), (Origin{false, "127.0.0.1", 8000}));
  EXPECT_EQ(*parse_origin("HTTPS://S3.eu-west-1.AmazonAWS.com/"),
            (Origin{true, "s3.eu-west-1.amazonaws.com", 443}));
  EXPECT_EQ(*parse_origin("https://[::1]:8443"), (Origin{true, "::1", 8443}));
  EXPECT_EQ(*parse_origin("http://localhost"), (Origin{false, "localhost", 80}));
  EXPECT_EQ(*parse_origin("http://127.0.0.1.example:81/"), (Origin{false, "127.0.0.1.example", 81}));
}

TEST(ParseOrigin, RefusesWhatIsNotAnOrigin) {
  for (const char* url : {"",
                          "localhost:8000",
                          "ftp://host",
                          "http://",
                          "http://host/path",
                          "http://host?x",
                          "http://host#f",
                          "http://host:0",
                          "http://host:65536",
                          "http://ho st",
                          "http://host:80 80",
                          "http://host%0d%0a",
                          "http://[::1",
                          "http://[]",
                          "http://[::1]x",
                          "http://::1",
                          "http://[localhost]",
                          "http://[::1%]",
                          "http://[::1%1\r\nX: y]",
                          "http://[::1%1/]",
                          "http://host:",
                          "http://host:+1",
                          "http://:80",
                          "http://h/x@y"}) {
    const Result<Origin> origin = parse_origin(url);
    ASSERT_FALSE(origin) << url;
    EXPECT_EQ(origin.error().code, ErrorCode::invalid) << url;
    EXPECT_THAT(origin.error().message, HasSubstr("http://127.0.0.1:8000")) << url;
  }
}

TEST(ParseOrigin, ReadsAnAddressToItsEnd) {
  EXPECT_FALSE(parse_origin(std::string_view("http://[::1\0.example]", 21)));
}

TEST(ParseOrigin, NeverRepeatsAPassword) {
  const Result<Origin> origin = parse_origin("http://me:geheim@host/path");
  ASSERT_FALSE(origin);
  EXPECT_THAT(origin.error().message, HasSubstr("user name"));
  EXPECT_THAT(origin.error().message, ::testing::Not(HasSubstr("geheim")));
}

TEST(HostField, NamesThePortOnlyWhereItIsNotTheSchemesOwn) {
  EXPECT_EQ(host_field({false, "h", 80}), "h");
  EXPECT_EQ(host_field({true, "h", 443}), "h");
  EXPECT_EQ(host_field({true, "h", 80}), "h:80");
  EXPECT_EQ(host_field({false, "::1", 8000}), "[::1]:8000");
}

TEST(HostField, LeavesTheZoneOfAnAddressAtHome) {
  const auto origin = parse_origin("http://[::1%1]:8000");
  ASSERT_TRUE(origin);
  EXPECT_EQ(host_field(*origin), "[::1]:8000");
  EXPECT_EQ(url_of(*origin), "http://[::1%1]:8000");
}

}  // namespace
}  // namespace facetheory
