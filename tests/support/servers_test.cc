// The servers and the proxy themselves: what the other tests rely on, checked with Debian's boto3 as an
// independent client.
#include "tests/support/servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace facetheory::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr milliseconds kLong{60'000};

// Runs a boto3 script against the endpoint; `c` is the client. Returns what it printed.
std::string boto3(const std::string& endpoint, const std::string& service, const std::string& script,
                  const std::string& secret = std::string(kTestSecretKey)) {
  ChildProcess process(
      {"/usr/bin/python3", "-c",
       "import boto3, botocore, sys\n"
       "from botocore.config import Config\n"
       "c = boto3.client(sys.argv[1], endpoint_url=sys.argv[2], region_name='us-east-1',\n"
       "    aws_access_key_id=sys.argv[3], aws_secret_access_key=sys.argv[4],\n"
       "    config=Config(retries={'total_max_attempts': 1}, s3={'addressing_style': 'path'}))\n"
       "try:\n" +
           ("  " + script) +
           "\nexcept Exception as e:\n"
           "  print('raised', type(e).__name__, e)\n",
       service, endpoint, std::string(kTestAccessKey), secret});
  process.wait(kLong);
  return process.output();
}
std::string boto3(const FaultProxy& proxy, const std::string& service, const std::string& script,
                  const std::string& secret = std::string(kTestSecretKey)) {
  return boto3(proxy.endpoint(), service, script, secret);
}

// Makes each PutObject conditional; this age of boto3 has no parameter for it.
constexpr const char* kIfNoneMatch =
    "c.meta.events.register('before-sign.s3.PutObject', "
    "lambda request, **_: request.headers.add_header('If-None-Match', '*')); ";

TEST(ChildProcess, CollectsOutputAndReportsTheExitStatus) {
  ChildProcess process({"sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(process.wait(kLong), 7);
  EXPECT_EQ(process.output(), "out\nerr\n");
  EXPECT_FALSE(process.running());
}

TEST(ChildProcess, IsKilledByItsDestructor) {
  pid_t pid = 0;
  {
    ChildProcess process({"sh", "-c", "echo $$; exec sleep 600"});
    ASSERT_TRUE(process.wait_for_output("\n", kLong));
    pid = std::stoi(process.output());
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(ChildProcess, GoesWithItsParentWhenThatIsKilled) {
  // The inner process is tied to the outer one by the same means as the outer one to us; the output pipe,
  // which both hold, ends only when both are gone.
  ChildProcess outer({"sh", "-c", "setpriv --pdeathsig KILL -- sh -c 'echo $$; exec sleep 30' & wait"});
  ASSERT_TRUE(outer.wait_for_output("\n", kLong));
  const pid_t inner = std::stoi(outer.output());
  EXPECT_EQ(::kill(inner, 0), 0);
  const auto killed_at = std::chrono::steady_clock::now();
  outer.kill();
  EXPECT_LT(std::chrono::steady_clock::now() - killed_at, std::chrono::seconds(15));
}

TEST(DynamoDbProxy, ForwardsWhatIsSignedAndCountsIt) {
  FaultProxy proxy("dynamodb", shared_dynamodb_local());
  EXPECT_EQ(boto3(proxy, "dynamodb", "print(c.list_tables()['TableNames'])"), "[]\n");
  EXPECT_EQ(proxy.counters().requests.at("ListTables"), 1);
  EXPECT_EQ(proxy.counters().forwarded.at("ListTables"), 1);
  EXPECT_THAT(proxy.counters().signature_failures, IsEmpty());
}

TEST(DynamoDbProxy, RefusesAWrongSecret) {
  FaultProxy proxy("dynamodb", shared_dynamodb_local());
  EXPECT_THAT(boto3(proxy, "dynamodb", "c.list_tables()", "wrong"), HasSubstr("InvalidSignatureException"));
  EXPECT_EQ(proxy.counters().signature_failures.size(), 1u);
  EXPECT_EQ(proxy.counters().forwarded.count("ListTables"), 0u);
}

TEST(DynamoDbProxy, RefusesAMissingSessionToken) {
  FaultProxy proxy("dynamodb", shared_dynamodb_local(), "a-session-token");
  EXPECT_THAT(boto3(proxy, "dynamodb", "c.list_tables()"), HasSubstr("UnrecognizedClientException"));
}

TEST(DynamoDbProxy, AppliesFaultsToTheNamedOperationInOrder) {
  FaultProxy proxy("dynamodb", shared_dynamodb_local());
  proxy.inject({.kind = ProxyFault::throttle, .operation = "ListTables", .skip = 1});
  proxy.inject({.kind = ProxyFault::cut_before, .operation = "DescribeTable"});
  EXPECT_EQ(boto3(proxy, "dynamodb", "print(c.list_tables()['TableNames']); c.list_tables()").substr(0, 3),
            "[]\n");
  EXPECT_EQ(proxy.counters().faults.at("throttle"), 1);
  EXPECT_EQ(proxy.counters().pending, 1);
  EXPECT_THAT(boto3(proxy, "dynamodb", "c.describe_table(TableName='none')"), HasSubstr("raised"));
  EXPECT_EQ(proxy.counters().pending, 0);
  EXPECT_EQ(proxy.counters().forwarded.count("DescribeTable"), 0u);
}

TEST(DynamoDbProxy, DropsAnAnswerAfterTheCommit) {
  FaultProxy proxy("dynamodb", shared_dynamodb_local());
  proxy.inject({.kind = ProxyFault::cut_after, .operation = "CreateTable"});
  EXPECT_THAT(boto3(proxy, "dynamodb",
                    "c.create_table(TableName='dropped', BillingMode='PAY_PER_REQUEST',"
                    "AttributeDefinitions=[{'AttributeName':'pk','AttributeType':'S'}],"
                    "KeySchema=[{'AttributeName':'pk','KeyType':'HASH'}])"),
              HasSubstr("Connection was closed"));
  EXPECT_THAT(boto3(proxy, "dynamodb", "print(c.list_tables()['TableNames'])"), HasSubstr("dropped"));
  EXPECT_THAT(boto3(proxy, "dynamodb", "c.delete_table(TableName='dropped')"), IsEmpty());
}

TEST(DynamoDbProxy, CancelsATransactionWithConflictReasons) {
  FaultProxy proxy("dynamodb", shared_dynamodb_local());
  proxy.inject({.kind = ProxyFault::conflict, .operation = "TransactWriteItems"});
  EXPECT_THAT(
      boto3(proxy, "dynamodb",
            "c.transact_write_items(TransactItems=[{'Delete':{'TableName':'pages','Key':{'pk':{'S':str(i)}}}}"
            " for i in range(3)])"),
      HasSubstr("[None, TransactionConflict, TransactionConflict]"));
}

TEST(S3Proxy, StoresAndListsSignedRequests) {
  FaultProxy proxy("s3", shared_s3_server().endpoint());
  EXPECT_EQ(
      boto3(
          proxy, "s3",
          "c.put_object(Bucket='bodies', Key='proxy/a b+%\u00e4', Body=b'x' * 300000, Metadata={'k': 'v'}); "
          "r = c.get_object(Bucket='bodies', Key='proxy/a b+%\u00e4'); print(len(r['Body'].read()), "
          "r['Metadata']);"
          "print([o['Key'] for o in c.list_objects_v2(Bucket='bodies', Prefix='proxy/')['Contents']])"),
      "300000 {'k': 'v'}\n['proxy/a b+%\u00e4']\n");
  EXPECT_THAT(proxy.counters().signature_failures, IsEmpty());
}

TEST(S3Proxy, HonoursIfNoneMatchOnWrites) {
  FaultProxy proxy("s3", shared_s3_server().endpoint());
  const std::string put = kIfNoneMatch + std::string("c.put_object(Bucket='bodies', Key='once', Body=b'1')");
  EXPECT_THAT(boto3(proxy, "s3", put), IsEmpty());
  EXPECT_THAT(boto3(proxy, "s3", put), HasSubstr("PreconditionFailed"));
}

TEST(Moto, HonoursIfNoneMatchOnWritesByItself) {
  shared_moto().make_bucket("once");
  const std::string put = kIfNoneMatch + std::string("c.put_object(Bucket='once', Key='k', Body=b'1')");
  EXPECT_THAT(boto3(shared_moto().endpoint(), "s3", put), IsEmpty());
  EXPECT_THAT(boto3(shared_moto().endpoint(), "s3", put), HasSubstr("PreconditionFailed"));
}

TEST(S3Proxy, CorruptsAndCutsAnswers) {
  FaultProxy proxy("s3", shared_s3_server().endpoint());
  proxy.inject({.kind = ProxyFault::corrupt, .operation = "GetObject"});
  EXPECT_EQ(boto3(proxy, "s3",
                  "c.put_object(Bucket='bodies', Key='c', Body=b'aaa'); "
                  "print(c.get_object(Bucket='bodies', Key='c')['Body'].read())"),
            "b'a`a'\n");
  proxy.inject({.kind = ProxyFault::cut_answer, .operation = "GetObject"});
  EXPECT_THAT(boto3(proxy, "s3", "c.get_object(Bucket='bodies', Key='c')['Body'].read()"),
              HasSubstr("raised"));
}

TEST(S3Proxy, RefusesAWrongSecretAndAnUnknownBucketIsPassedOn) {
  FaultProxy proxy("s3", shared_s3_server().endpoint());
  EXPECT_THAT(boto3(proxy, "s3", "c.list_objects_v2(Bucket='bodies')", "wrong"),
              HasSubstr("SignatureDoesNotMatch"));
  EXPECT_THAT(boto3(proxy, "s3", "c.list_objects_v2(Bucket='nowhere')"), HasSubstr("NoSuchBucket"));
}

TEST(Proxy, RepeatsItsRandomFaultsForOneSeed) {
  std::vector<std::map<std::string, int>> runs;
  for (int i = 0; i < 2; ++i) {
    FaultProxy proxy("dynamodb", shared_dynamodb_local());
    proxy.randomise(42, {{ProxyFault::throttle, 0.5}, {ProxyFault::error_before, 0.2}});
    boto3(proxy, "dynamodb",
          "exec('for i in range(40):\\n  try: c.list_tables()\\n  except Exception: pass')");
    runs.push_back(proxy.counters().faults);
    EXPECT_EQ(proxy.counters().requests.at("ListTables"), 40);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_GT(runs[0].at("throttle"), 5);
  EXPECT_GT(runs[0].at("error_before"), 1);
}

}  // namespace
}  // namespace facetheory::test
