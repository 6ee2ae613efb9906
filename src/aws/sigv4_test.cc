#include "facetheory/aws/sigv4.h"

#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gmock/gmock.h>

#include "facetheory/http/client.h"

#include "tests/support/script.h"

namespace facetheory {
namespace {

using ::testing::HasSubstr;

WallTime at(std::int64_t epoch_seconds) {
  return WallTime(std::chrono::seconds(epoch_seconds));
}

constexpr std::int64_t kAug30In2015 = 1440938160;  // 2015-08-30T12:36:00Z
constexpr std::int64_t kMay24In2013 = 1369353600;  // 2013-05-24T00:00:00Z

const Credentials kDocumented{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "", std::nullopt};
const Credentials kDocumentedS3{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "",
                                std::nullopt};

test::ScriptRun botocore_vectors() {
  return test::run_script("/usr/bin/python3 '" FACETHEORY_SIGV4_VECTORS "'");
}

TEST(SigV4, SignsEveryRequestAsBotocoreDoes) {
  const test::ScriptRun vectors = botocore_vectors();
  ASSERT_EQ(vectors.exit_status, 0);
  ASSERT_GE(vectors.lines.size(), 60U);
  for (const std::string& line : vectors.lines) {
    const boost::json::value vector = boost::json::parse(line);
    const auto text = [&](const char* key) { return std::string(vector.at(key).as_string()); };
    HttpRequest request;
    request.method = text("method");
    request.target = text("target");
    request.body = text("body");
    Headers expected;
    for (const boost::json::value& field : vector.at("headers").as_array()) {
      request.headers.add(std::string(field.at(0).as_string()), std::string(field.at(1).as_string()));
    }
    const Headers before = request.headers;
    const Credentials credentials{text("access_key"), text("secret_key"), text("token"), std::nullopt};
    const Result<Origin> origin = parse_origin(text("scheme") + "://" + text("host"));
    ASSERT_TRUE(origin) << line;
    sign(request, host_field(*origin), credentials, {text("region"), text("service")},
         at(vector.at("time").as_int64()));

    std::size_t added = 0;
    for (const auto& [name, value] : vector.at("added").as_object()) {
      const auto ours = request.headers.get(std::string(name));
      ASSERT_TRUE(ours) << name << " is missing: " << line;
      EXPECT_EQ(*ours, std::string(value.as_string())) << line;
      ++added;
    }
    EXPECT_EQ(std::distance(request.headers.begin(), request.headers.end()),
              std::distance(before.begin(), before.end()) + static_cast<std::ptrdiff_t>(added))
        << line;
  }
}

TEST(SigV4, SignsTheDocumentedExampleOfAService) {
  HttpRequest request;
  request.target = "/?Action=ListUsers&Version=2010-05-08";
  request.headers.add("Content-Type", "application/x-www-form-urlencoded; charset=utf-8");
  sign(request, "iam.amazonaws.com", kDocumented, {"us-east-1", "iam"}, at(kAug30In2015));
  EXPECT_EQ(request.headers.get("X-Amz-Date"), "20150830T123600Z");
  EXPECT_EQ(request.headers.get("Authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
            "SignedHeaders=content-type;host;x-amz-date, "
            "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
}

TEST(SigV4, SignsAnEmptyQueryParameterWithAnEqualsSign) {
  HttpRequest request;
  request.target = "/?lifecycle";
  sign(request, "examplebucket.s3.amazonaws.com", kDocumentedS3, {"us-east-1", "s3"}, at(kMay24In2013));
  EXPECT_EQ(request.headers.get("X-Amz-Content-Sha256"),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_THAT(std::string(*request.headers.get("Authorization")),
              HasSubstr("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(SigV4, SortsTheQuery) {
  for (const char* target : {"/?max-keys=2&prefix=J", "/?prefix=J&max-keys=2"}) {
    HttpRequest request;
    request.target = target;
    sign(request, "examplebucket.s3.amazonaws.com", kDocumentedS3, {"us-east-1", "s3"}, at(kMay24In2013));
    EXPECT_THAT(std::string(*request.headers.get("Authorization")),
                HasSubstr("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
  }
}

TEST(SigV4, SigningAgainReplacesTheFirstSignature) {
  HttpRequest once;
  once.body = "x";
  HttpRequest twice = once;
  const Credentials temporary{"A", "b", "token", std::nullopt};
  sign(twice, "h", temporary, {"r", "s3"}, at(1));
  sign(twice, "h", temporary, {"r", "s3"}, at(2));
  sign(once, "h", temporary, {"r", "s3"}, at(2));
  EXPECT_EQ(once.headers, twice.headers);
}

TEST(SigV4, SignsContentTypeAndAmzFieldsAndNoOthers) {
  HttpRequest request;
  request.headers = {
      {"CONTENT-TYPE", "t"}, {"X-Amz-Meta-A", "1"}, {"If-None-Match", "*"}, {"X-Amzn-Trace-Id", "2"}};
  sign(request, "h", kDocumented, {"r", "s3"}, at(0));
  EXPECT_THAT(std::string(*request.headers.get("Authorization")),
              HasSubstr("SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-meta-a,"));
}

TEST(PercentEncode, KeepsUnreservedCharactersOnly) {
  EXPECT_EQ(percent_encode("AZaz09-_.~"), "AZaz09-_.~");
  EXPECT_EQ(percent_encode("a b/c+d%=\xc3\xa9\x01"), "a%20b%2Fc%2Bd%25%3D%C3%A9%01");
  EXPECT_EQ(percent_encode(std::string_view("\0\xff", 2)), "%00%FF");
}

TEST(PercentEncode, KeepsSlashesInPaths) {
  EXPECT_EQ(percent_encode_path("/a b//c?d/"), "/a%20b//c%3Fd/");
}

}  // namespace
}  // namespace facetheory
