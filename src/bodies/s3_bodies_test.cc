// S3Bodies through the fault proxy, in front of s3rver: faults, foreign objects, forms of keys, bad
// configuration.
#include "facetheory/bodies/s3_bodies.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/log.h"
#include "facetheory/base/sha256.h"
#include "facetheory/bodies/open_bodies.h"

#include "tests/support/run.h"
#include "tests/support/scripted_server.h"
#include "tests/support/servers.h"

namespace facetheory {
namespace {

using test::ProxyFault;
using test::run;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr int kAlways = 1000;

class S3BodiesTest : public ::testing::Test {
 protected:
  S3BodiesTest() {
    static std::atomic<int> buckets = 0;
    bucket_ = "special-" + std::to_string(++buckets);
    test::shared_s3_server().put("/" + bucket_);
    proxy().reset();
    store_ = open("s3://" + bucket_ + "/isr", proxy().environment());
  }

  static test::FaultProxy& proxy() {
    static test::FaultProxy proxy("s3", test::shared_s3_server().endpoint());
    return proxy;
  }

  static std::unique_ptr<BodyStore> open(const std::string& uri, Environment environment) {
    Platform platform;
    platform.environment = std::move(environment);
    auto store = open_bodies(uri, test::executor(), std::move(platform));
    if (!store) throw std::runtime_error(to_string(store.error()));
    return std::move(*store);
  }

  std::string write(std::string key, std::string bytes) {
    return write(*store_, std::move(key), std::move(bytes));
  }
  static std::string write(BodyStore& store, std::string key, std::string bytes) {
    auto written = run(store.write(std::move(key), Body{std::move(bytes), {}}));
    return written ? "written" : to_string(written.error());
  }
  std::string read(std::string key) { return read(*store_, std::move(key)); }
  static std::string read(BodyStore& store, std::string key) {
    auto body = run(store.read(std::move(key)));
    if (!body) return to_string(body.error());
    return *body ? (*body)->bytes : "(missing)";
  }
  static std::string remove(BodyStore& store, std::string key) {
    auto removed = run(store.remove(std::move(key)));
    return removed ? "removed" : to_string(removed.error());
  }
  static std::string list(BodyStore& store) {
    auto page = run(store.list({}, 100));
    if (!page) return to_string(page.error());
    std::string keys;
    for (const BodyEntry& entry : page->entries)
      keys += entry.key + " ";
    return keys;
  }

  static int requests(const std::string& operation) { return proxy().counters().requests[operation]; }

  std::string bucket_;
  std::unique_ptr<BodyStore> store_;
};

// ---- What is sent

TEST_F(S3BodiesTest, SendsTheMetadataThatFaceTheorySends) {
  Body body{"<p>", {}};
  body.metadata.status = 404;
  body.metadata.content_type = "text/html; charset=utf-8";
  body.metadata.headers = {{"content-security-policy", "default-src 'self'"}, {"cache-tag", "a"}};
  ASSERT_TRUE(run(store_->write("0123/1-a.html", body)));
  const test::ProxyRequest request = proxy().log().back();
  EXPECT_EQ(request.method + " " + request.target, "PUT /" + bucket_ + "/isr/0123/1-a.html");
  EXPECT_EQ(request.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(request.headers.at("if-none-match"), "*");
  EXPECT_EQ(request.headers.at("x-amz-meta-facetheory-status"), "404");
  EXPECT_EQ(request.headers.at("x-amz-meta-facetheory-content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(request.headers.at("x-amz-meta-facetheory-content-security-policy"), "default-src 'self'");
  EXPECT_EQ(request.headers.at("x-amz-meta-facetheory-sha256"), sha256_hex("<p>"));
  EXPECT_EQ(request.headers.at("x-amz-meta-facetheory-headers"),
            R"([["content-security-policy"],["cache-tag","a"]])");
}

TEST(S3Address, IsTheBucketsHostNameAtAmazonAndAPathElsewhere) {
  const Origin amazon{true, "s3.eu-west-1.amazonaws.com", 443};
  const Origin local{false, "127.0.0.1", 9000};
  const SigningScope scope{"eu-west-1", "s3"};
  const S3Address by_name = address_of("pages", ServiceEndpoint{amazon, scope, false});
  EXPECT_EQ(by_name.origin.host, "pages.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(by_name.path, "/");
  const S3Address dotted = address_of("pages.example.com", ServiceEndpoint{amazon, scope, false});
  EXPECT_EQ(dotted.origin, amazon);
  EXPECT_EQ(dotted.path, "/pages.example.com/");
  const S3Address custom = address_of("pages", ServiceEndpoint{local, scope, true});
  EXPECT_EQ(custom.origin, local);
  EXPECT_EQ(custom.path, "/pages/");
}

TEST_F(S3BodiesTest, SignsWithASessionToken) {
  test::FaultProxy with_token("s3", test::shared_s3_server().endpoint(), "a/session+token==");
  auto store = open("s3://" + bucket_, with_token.environment());
  EXPECT_EQ(write(*store, "k", "x"), "written");
  EXPECT_EQ(read(*store, "k"), "x");
  EXPECT_THAT(with_token.counters().signature_failures, IsEmpty());
}

// ---- What others wrote

TEST_F(S3BodiesTest, ReadsAnObjectWithoutAnyMetadataOfOurs) {
  test::shared_s3_server().put("/" + bucket_ + "/isr/foreign.html", {{"Content-Type", "text/plain"}},
                               "hello");
  auto body = run(store_->read("foreign.html"));
  ASSERT_TRUE(body && *body);
  EXPECT_EQ(**body,
            (Body{"hello",
                  BodyMetadata{.status = 200, .content_type = "text/plain", .headers = {}, .sha256 = {}}}));
}

TEST_F(S3BodiesTest, ReadsAnObjectAsFaceTheoryWritesIt) {
  test::shared_s3_server().put("/" + bucket_ + "/isr/ts.html",
                               {{"Content-Type", "text/html"},
                                {"x-amz-meta-facetheory-status", "203"},
                                {"x-amz-meta-facetheory-content-type", "text/html; charset=utf-8"},
                                {"x-amz-meta-facetheory-content-security-policy", "img-src *"}},
                               "<p>");
  auto body = run(store_->read("ts.html"));
  ASSERT_TRUE(body && *body);
  EXPECT_EQ((*body)->metadata.status, 203);
  EXPECT_EQ((*body)->metadata.content_type, "text/html; charset=utf-8");
  EXPECT_THAT((*body)->metadata.headers, ::testing::ElementsAre(std::pair<std::string, std::string>(
                                             "content-security-policy", "img-src *")));
  EXPECT_FALSE((*body)->metadata.sha256);
}

TEST_F(S3BodiesTest, ReadsEveryFormOfAKey) {
  ASSERT_EQ(write("h/1.html", "page"), "written");
  EXPECT_EQ(read("h/1.html"), "page");
  EXPECT_EQ(read("isr/h/1.html"), "page");
  EXPECT_EQ(read("s3://" + bucket_ + "/isr/h/1.html"), "page");
}

TEST_F(S3BodiesTest, NamesItsBodiesWithThePrefixOrWithoutAsItIsTold) {
  const auto relative = open("s3://" + bucket_ + "/isr?pointers=relative", proxy().environment());
  EXPECT_EQ(store_->reference("h/1.html"), "isr/h/1.html");
  EXPECT_EQ(relative->reference("h/1.html"), "h/1.html");
  ASSERT_EQ(write(*relative, "h/1.html", "page"), "written");
  EXPECT_EQ(list(*store_), "h/1.html ");  // The objects are the same, and so is what can be read.
  for (BodyStore* store : {store_.get(), relative.get()}) {
    EXPECT_EQ(read(*store, "h/1.html"), "page");
    EXPECT_EQ(read(*store, "isr/h/1.html"), "page");
    EXPECT_EQ(read(*store, "s3://" + bucket_ + "/isr/h/1.html"), "page");
  }
}

TEST_F(S3BodiesTest, ReadsAPointerThatBeginsLikeThePrefixAndGoesOnAfterIt) {
  // FaceTheory's keyPrefix and htmlPointerPrefix may both be "isr".
  test::shared_s3_server().put("/" + bucket_ + "/isr/isr/h/2.html", {}, "below");
  const auto relative = open("s3://" + bucket_ + "/isr?pointers=relative", proxy().environment());
  EXPECT_EQ(read(*relative, "isr/h/2.html"), "below");
  EXPECT_EQ(read("isr/h/2.html"), "below");
}

TEST_F(S3BodiesTest, ReadsACompleteKeyOutsideOfItsPrefix) {
  test::shared_s3_server().put("/" + bucket_ + "/elsewhere/2.html", {}, "other");
  EXPECT_EQ(read("elsewhere/2.html"), "other");
  EXPECT_EQ(read("s3://" + bucket_ + "/elsewhere/2.html"), "other");
  EXPECT_EQ(read("s3://" + bucket_ + "/elsewhere/3.html"), "(missing)");
}

TEST_F(S3BodiesTest, PrefersItsPrefixWhereAKeyIsFoundTwice) {
  test::shared_s3_server().put("/" + bucket_ + "/k", {}, "outside");
  ASSERT_EQ(write("k", "inside"), "written");
  EXPECT_EQ(read("k"), "inside");
}

TEST_F(S3BodiesTest, RefusesToReadFromAnotherBucketAndNamesBoth) {
  EXPECT_THAT(read("s3://other-bucket/isr/k"),
              AllOf(StartsWith("invalid: "), HasSubstr("other-bucket"), HasSubstr(bucket_)));
  EXPECT_EQ(requests("GetObject"), 0);
}

TEST_F(S3BodiesTest, ListsAndRemovesOnlyWhatIsUnderItsPrefix) {
  test::shared_s3_server().put("/" + bucket_ + "/isr2/k", {}, "x");
  test::shared_s3_server().put("/" + bucket_ + "/k", {}, "x");
  ASSERT_EQ(write("k", "ours"), "written");
  EXPECT_EQ(list(*store_), "k ");
  EXPECT_EQ(remove(*store_, "k"), "removed");
  EXPECT_EQ(list(*store_), "");
  EXPECT_EQ(read("k"), "x");  // The one outside of the prefix.
}

TEST_F(S3BodiesTest, ComparesBytesWithAForeignObjectUnderItsKey) {
  test::shared_s3_server().put("/" + bucket_ + "/isr/k", {}, "foreign");
  EXPECT_EQ(write("k", "foreign"), "written");
  EXPECT_THAT(write("k", "ours"), AllOf(StartsWith("invalid: "), HasSubstr("exists with other bytes")));
}

// ---- Faults

TEST_F(S3BodiesTest, NoticesDamagedBytes) {
  ASSERT_EQ(write("k", "0123456789"), "written");
  proxy().inject({.kind = ProxyFault::corrupt, .operation = "GetObject"});
  EXPECT_THAT(read("k"), AllOf(StartsWith("corrupt: "), HasSubstr("SHA-256")));
  EXPECT_EQ(read("k"), "0123456789");
}

TEST_F(S3BodiesTest, SettlesAWriteWhoseAnswerWasDropped) {
  proxy().inject({.kind = ProxyFault::cut_after, .operation = "PutObject"});
  EXPECT_EQ(write("k", "x"), "written");
  EXPECT_EQ(read("k"), "x");
  EXPECT_EQ(requests("PutObject"), 2);
  EXPECT_EQ(requests("HeadObject"), 1);
}

TEST_F(S3BodiesTest, SettlesAWriteThatWasDoneAndAnsweredWithAnError) {
  proxy().inject({.kind = ProxyFault::error_after, .operation = "PutObject"});
  EXPECT_EQ(write("k", "x"), "written");
  EXPECT_EQ(requests("PutObject"), 2);
}

TEST_F(S3BodiesTest, DoesNotTakeSomebodyElsesBodyForItsOwnWhenAnAnswerWasDropped) {
  test::shared_s3_server().put("/" + bucket_ + "/isr/k", {}, "theirs");
  proxy().inject({.kind = ProxyFault::cut_after, .operation = "PutObject"});
  EXPECT_THAT(write("k", "ours"), StartsWith("invalid: "));
  EXPECT_EQ(read("k"), "theirs");
}

class S3PassingFault : public S3BodiesTest, public ::testing::WithParamInterface<ProxyFault> {};

TEST_P(S3PassingFault, IsOutlivedByEveryOperation) {
  // A delayed answer comes, so there is no second attempt.
  const int count = GetParam() == ProxyFault::delay ? 1 : 2;
  for (const char* operation : {"PutObject", "GetObject", "ListObjectsV2", "DeleteObject"}) {
    proxy().inject(
        {.kind = GetParam(), .operation = operation, .count = count, .delay = std::chrono::milliseconds(5)});
  }
  EXPECT_EQ(write("k", "x"), "written");
  EXPECT_EQ(read("k"), "x");
  EXPECT_EQ(list(*store_), "k ");
  EXPECT_EQ(remove(*store_, "k"), "removed");
  EXPECT_EQ(read("k"), "(missing)");
  EXPECT_EQ(proxy().counters().pending, 0);
}

INSTANTIATE_TEST_SUITE_P(S3, S3PassingFault,
                         ::testing::Values(ProxyFault::throttle, ProxyFault::conflict, ProxyFault::delay,
                                           ProxyFault::cut_before, ProxyFault::cut_after,
                                           ProxyFault::cut_answer, ProxyFault::error_before,
                                           ProxyFault::error_after, ProxyFault::not_http),
                         [](const auto& fault) { return std::string(test::name(fault.param)); });

TEST_F(S3BodiesTest, SaysThatItIsThrottledWhenThatDoesNotEnd) {
  proxy().inject({.kind = ProxyFault::throttle, .count = kAlways});
  EXPECT_THAT(write("k", "x"), AllOf(StartsWith("unavailable: "), HasSubstr("SlowDown")));
  EXPECT_THAT(read("k"), StartsWith("unavailable: "));
  EXPECT_THAT(list(*store_), StartsWith("unavailable: "));
  proxy().clear();
  EXPECT_EQ(read("k"), "(missing)");
}

TEST_F(S3BodiesTest, SaysThatNobodyKnowsWhenEveryAnswerToAWriteIsDropped) {
  proxy().inject({.kind = ProxyFault::cut_after, .operation = "PutObject", .count = kAlways});
  EXPECT_THAT(write("k", "x"), StartsWith("ambiguous: "));
  proxy().clear();
  EXPECT_EQ(read("k"), "x");
}

TEST_F(S3BodiesTest, NeverCallsAReadAmbiguous) {
  ASSERT_EQ(write("k", "x"), "written");
  for (const ProxyFault fault : {ProxyFault::cut_before, ProxyFault::cut_answer, ProxyFault::error_after}) {
    proxy().clear();
    proxy().inject({.kind = fault, .count = kAlways});
    EXPECT_THAT(read("k"), StartsWith("unavailable: "));
    EXPECT_THAT(list(*store_), StartsWith("unavailable: "));
  }
}

TEST_F(S3BodiesTest, DoesNotTakeTheAnswerOfSomethingInBetweenForABody) {
  ASSERT_EQ(write("k", "x"), "written");
  proxy().inject({.kind = ProxyFault::garbage, .count = 3});
  EXPECT_THAT(read("k"), StartsWith("unavailable: "));
  EXPECT_THAT(list(*store_), StartsWith("unavailable: "));
  EXPECT_THAT(write("other", "x"), StartsWith("ambiguous: "));
}

TEST_F(S3BodiesTest, WritesWithoutConditionWhereTheServiceKnowsNone) {
  proxy().inject({.kind = ProxyFault::error_before, .operation = "PutObject", .status = 501});
  EXPECT_EQ(write("k", "x"), "written");
  EXPECT_EQ(read("k"), "x");
  int conditional = 0;
  for (const test::ProxyRequest& request : proxy().log())
    conditional += static_cast<int>(request.headers.count("if-none-match"));
  EXPECT_EQ(conditional, 1);
  EXPECT_EQ(requests("PutObject"), 2);

  proxy().inject({.kind = ProxyFault::error_before, .operation = "PutObject", .status = 501});
  EXPECT_THAT(write("k", "other"), AllOf(StartsWith("invalid: "), HasSubstr("exists with other bytes")));
  EXPECT_EQ(read("k"), "x");
}

TEST_F(S3BodiesTest, TellsOnceThatTheServiceHasNoConditionalWrites) {
  std::vector<std::string> told;
  set_log_sink([&](LogLevel, std::string_view line) { told.emplace_back(line); });
  EXPECT_EQ(write("conditional", "x"), "written");
  EXPECT_THAT(told, IsEmpty());
  for (const char* key : {"a", "b"}) {
    proxy().inject({.kind = ProxyFault::error_before, .operation = "PutObject", .status = 501});
    EXPECT_EQ(write(key, "x"), "written");
  }
  set_log_sink({});
  EXPECT_THAT(told,
              ::testing::ElementsAre(AllOf(HasSubstr(bucket_), HasSubstr("has no conditional writes"))));
}

TEST_F(S3BodiesTest, KeepsItsWordUnderRandomFaults) {
  proxy().randomise(20261115, {{ProxyFault::throttle, 0.08},
                               {ProxyFault::cut_before, 0.05},
                               {ProxyFault::cut_after, 0.08},
                               {ProxyFault::cut_answer, 0.05},
                               {ProxyFault::error_after, 0.05},
                               {ProxyFault::delay, 0.05}});
  std::vector<std::string> acknowledged;
  std::vector<std::string> unsettled;
  for (int i = 0; i < 80; ++i) {
    const std::string key = "k" + std::to_string(100 + i);
    const std::string outcome = write(key, "body of " + key);
    if (outcome == "written") {
      acknowledged.push_back(key);
    } else {
      EXPECT_TRUE(outcome.starts_with("ambiguous: ") || outcome.starts_with("unavailable: ")) << outcome;
      unsettled.push_back(key);
    }
  }
  EXPECT_GT(proxy().counters().faults["cut_after"], 0);
  proxy().clear();
  EXPECT_GT(acknowledged.size(), 60u);
  for (const std::string& key : acknowledged)
    EXPECT_EQ(read(key), "body of " + key);
  for (const std::string& key : unsettled)
    EXPECT_THAT(read(key), ::testing::AnyOf("(missing)", "body of " + key));
  EXPECT_THAT(proxy().counters().signature_failures, IsEmpty());
}

// ---- What a 404 means

// All answers that a store gets where every request is answered so.
class S3NotFound : public S3BodiesTest {
 protected:
  struct Outcomes {
    std::string read;
    std::string removed;
    std::string written;
    std::string listed;
  };
  static Outcomes outcomes_of(const std::string& answer) {
    const test::ScriptedServer server(test::answer_in_turn({answer}));
    auto store = open("s3://pages/isr", Environment(test::aws_variables("s3", server.url())));
    return {read(*store, "k"), remove(*store, "k"), write(*store, "k", "x"), list(*store)};
  }
  static std::string with_code(const std::string& code) {
    return test::http_answer(404, "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code></Error>");
  }
};

TEST_F(S3NotFound, MeansAMissingBodyWhereTheCodeSaysSo) {
  const Outcomes outcomes = outcomes_of(with_code("NoSuchKey"));
  EXPECT_EQ(outcomes.read, "(missing)");
  EXPECT_EQ(outcomes.removed, "removed");
}

TEST_F(S3NotFound, MeansAMissingBodyWhereTheServerSaysNoMore) {
  const Outcomes outcomes = outcomes_of(test::http_answer(404, ""));
  EXPECT_EQ(outcomes.read, "(missing)");
  EXPECT_EQ(outcomes.removed, "removed");
}

TEST_F(S3NotFound, MeansWrongCredentialsWhereTheServerDoesNotKnowTheUser) {
  const Outcomes outcomes = outcomes_of(with_code("XAdminUserNotFound"));
  for (const std::string& outcome : {outcomes.read, outcomes.removed, outcomes.written, outcomes.listed}) {
    EXPECT_THAT(outcome, AllOf(StartsWith("unauthorized: "), HasSubstr("404 XAdminUserNotFound"),
                               HasSubstr("AWS_ACCESS_KEY_ID")));
  }
}

TEST_F(S3NotFound, MeansTheConfigurationWhereTheServerHasAnotherCode) {
  for (const char* code : {"NoSuchBucket", "NoSuchTenant", "MethodNotFound"}) {
    const Outcomes outcomes = outcomes_of(with_code(code));
    for (const std::string& outcome : {outcomes.read, outcomes.removed, outcomes.written, outcomes.listed})
      EXPECT_THAT(outcome, AllOf(StartsWith("invalid: "), HasSubstr("404 " + std::string(code))));
  }
}

TEST_F(S3NotFound, MeansThatTheStoreIsNotThereWhereTheAnswerIsNotOfS3) {
  for (const char* page :
       {"<html><body>404 Not Found</body></html>", "default backend - 404", "<Error/>", " "}) {
    const Outcomes outcomes = outcomes_of(test::http_answer(404, page, "Content-Type: text/html\r\n"));
    for (const std::string& outcome : {outcomes.read, outcomes.removed, outcomes.written, outcomes.listed}) {
      EXPECT_THAT(outcome, AllOf(StartsWith("unavailable: "), HasSubstr(": 404: not an answer of S3")));
    }
  }
}

// ---- Bad configuration

TEST_F(S3BodiesTest, SaysThatABucketIsMissing) {
  auto store = open("s3://no-such-bucket/isr", proxy().environment());
  for (const std::string& outcome :
       {write(*store, "k", "x"), read(*store, "k"), list(*store), remove(*store, "k")}) {
    EXPECT_THAT(outcome,
                AllOf(StartsWith("invalid: "), HasSubstr("no-such-bucket"), HasSubstr("create the bucket")));
  }
}

TEST_F(S3BodiesTest, SaysThatCredentialsAreWrong) {
  for (const auto& [variable, value] :
       {std::pair("AWS_SECRET_ACCESS_KEY", "wrong"), std::pair("AWS_ACCESS_KEY_ID", "AKIAUNKNOWN"),
        std::pair("AWS_SESSION_TOKEN", "unexpected")}) {
    auto variables = test::aws_variables("s3", proxy().endpoint());
    variables[variable] = value;
    auto store = open("s3://" + bucket_, Environment(variables));
    for (const std::string& outcome : {write(*store, "k", "x"), read(*store, "k"), list(*store)}) {
      EXPECT_THAT(outcome, AllOf(StartsWith("unauthorized: "), HasSubstr(bucket_),
                                 HasSubstr("AWS_SECRET_ACCESS_KEY")));
    }
  }
}

TEST_F(S3BodiesTest, SaysThatAccessIsDenied) {
  proxy().inject({.kind = ProxyFault::error_before, .count = 4, .status = 403});
  for (const std::string& outcome : {write("k", "x"), read("k"), list(*store_), remove(*store_, "k")}) {
    EXPECT_THAT(outcome,
                AllOf(StartsWith("unauthorized: "), HasSubstr("AccessDenied"), HasSubstr("s3:ListBucket")));
  }
}

TEST_F(S3BodiesTest, SaysThatTheBucketIsInAnotherRegion) {
  proxy().inject({.kind = ProxyFault::error_before, .count = 2, .status = 301, .code = "PermanentRedirect"});
  EXPECT_THAT(read("k"), AllOf(StartsWith("invalid: "), HasSubstr("AWS_REGION")));
  EXPECT_THAT(write("k", "x"), AllOf(StartsWith("invalid: "), HasSubstr("AWS_REGION")));
}

TEST_F(S3BodiesTest, SaysThatNobodyAnswersAtTheEndpoint) {
  auto store = open("s3://" + bucket_, Environment(test::aws_variables("s3", "http://127.0.0.1:1")));
  for (const std::string& outcome : {write(*store, "k", "x"), read(*store, "k"), list(*store)}) {
    EXPECT_THAT(outcome, AllOf(StartsWith("unavailable: "), HasSubstr("127.0.0.1:1"),
                               HasSubstr("AWS_ENDPOINT_URL_S3")));
  }
}

TEST_F(S3BodiesTest, SaysThatAListTokenIsNotIts) {
  auto page = run(store_->list("nonsense", 10));
  ASSERT_FALSE(page);
  EXPECT_NE(page.error().code, ErrorCode::internal);
}

}  // namespace
}  // namespace facetheory
