// What only DynamoDB's table can meet: faults on the way, refusals of the service, answers that are not what
// they should be, tables that are missing or of another shape, and other programs on the same table.
#include "facetheory/table/dynamodb_table.h"

#include <atomic>
#include <stdexcept>

#include <boost/asio/awaitable.hpp>
#include <boost/crc.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/random.h"

#include "tests/crash/crash_rows.h"
#include "tests/support/run.h"
#include "tests/support/scripted_server.h"
#include "tests/support/servers.h"

namespace facetheory::test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr milliseconds kLongest{60'000};

FaultProxy& proxy() {
  static FaultProxy shared("dynamodb", shared_dynamodb_local());
  return shared;
}

Platform platform_of(const Environment& environment) {
  Platform platform;
  platform.environment = environment;
  return platform;
}

DynamoDbOptions quick() {
  DynamoDbOptions options;
  options.retry = {.max_attempts = 4, .base_delay = milliseconds(1), .max_delay = milliseconds(5)};
  return options;
}

std::unique_ptr<Table> opened(const std::string& name, const Environment& environment,
                              DynamoDbOptions options = quick()) {
  auto table = open_dynamodb_table(name, executor(), platform_of(environment), std::move(options));
  if (!table) throw std::runtime_error(to_string(table.error()));
  return std::move(table).value();
}

std::string fresh_name() {
  static std::atomic<int> count = 0;
  return "table-" + std::to_string(++count);
}

std::unique_ptr<Table> made(const std::string& name) {
  auto table = opened(name, proxy().environment());
  const Result<void> created = run(table->create());
  if (!created) throw std::runtime_error(to_string(created.error()));
  return table;
}

template <typename T>
Error error_of(const Result<T>& result) {
  if (!result) return result.error();
  ADD_FAILURE() << "succeeded";
  return {};
}

// One table behind the proxy for all cases; each with an item of its own.
class DynamoDbFaults : public testing::Test {
 protected:
  DynamoDbFaults() : table_(shared()) {
    proxy().reset();
    key_ = {testing::UnitTest::GetInstance()->current_test_info()->name(), "item"};
  }
  ~DynamoDbFaults() override { proxy().clear(); }

  static void TearDownTestSuite() { shared_table().reset(); }

  void inject(ProxyFault kind, std::string operation, int count = 1) {
    proxy().inject({.kind = kind, .operation = std::move(operation), .count = count});
  }
  Put put() const { return Put{Item{key_, {{"n", 1}}}}; }
  Result<WriteOutcome> write(Write write) { return run(table_.write(std::move(write), Durability::machine)); }
  Result<std::optional<Item>> get() { return run(table_.get(key_, Consistency::strong)); }
  bool is_there() {
    const auto found = get();
    EXPECT_TRUE(found.has_value()) << to_string(found.error());
    return found && found->has_value();
  }
  std::vector<TransactItem> increment() const { return {Update{key_, Changes().increment("n", 1)}}; }
  Result<TransactOutcome> transact(std::vector<TransactItem> items) {
    return run(table_.transact(std::move(items), uuid_v4(system_random())));
  }
  std::int64_t count() {
    const auto found = get();
    if (!found || !found->has_value()) return 0;
    return (*found)->attributes.find("n")->as<Number>()->to_int64().value();
  }
  static int requests(const std::string& operation) { return proxy().counters().requests[operation]; }
  static int forwarded(const std::string& operation) { return proxy().counters().forwarded[operation]; }

  Key key_;
  Table& table_;

 private:
  static std::unique_ptr<Table>& shared_table() {
    static std::unique_ptr<Table> table;
    return table;
  }
  static Table& shared() {
    if (!shared_table()) shared_table() = made(fresh_name());
    return *shared_table();
  }
};

TEST_F(DynamoDbFaults, AThrottledWriteIsRepeatedUntilItIsDone) {
  inject(ProxyFault::throttle, "PutItem", 2);
  const auto outcome = write(put());
  ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  EXPECT_TRUE(is_there());
  EXPECT_EQ(requests("PutItem"), 3);
  EXPECT_EQ(forwarded("PutItem"), 1);
}

TEST_F(DynamoDbFaults, EveryCodeOfThrottlingIsRepeated) {
  for (const char* code : {"ThrottlingException", "RequestLimitExceeded",
                           "ProvisionedThroughputExceededException", "TransactionInProgressException"}) {
    proxy().inject({.kind = ProxyFault::throttle, .operation = "PutItem", .code = code});
    const auto outcome = write(put());
    EXPECT_TRUE(outcome.has_value()) << code << ": " << to_string(outcome.error());
  }
  EXPECT_EQ(proxy().counters().pending, 0);
}

TEST_F(DynamoDbFaults, AWriteThrottledTooOftenIsUnavailableAndWasNotDone) {
  inject(ProxyFault::throttle, "PutItem", 100);
  const Error error = error_of(write(put()));
  EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("ProvisionedThroughputExceededException"));
  EXPECT_EQ(requests("PutItem"), 4);
  EXPECT_FALSE(is_there());
}

TEST_F(DynamoDbFaults, AConflictingWriteIsRepeated) {
  inject(ProxyFault::conflict, "UpdateItem");
  ASSERT_TRUE(write(Update{key_, Changes().increment("n", 1)}).has_value());
  EXPECT_EQ(count(), 1);
}

TEST_F(DynamoDbFaults, AConflictingTransactionIsRepeated) {
  inject(ProxyFault::conflict, "TransactWriteItems", 2);
  const auto outcome = transact(increment());
  ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  EXPECT_TRUE(std::holds_alternative<Committed>(*outcome));
  EXPECT_EQ(count(), 1);
}

TEST_F(DynamoDbFaults, ATransactionThatConflictsTooOftenIsUnavailableAndWasNotDone) {
  inject(ProxyFault::conflict, "TransactWriteItems", 100);
  const Error error = error_of(transact(increment()));
  EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  EXPECT_FALSE(is_there());
}

TEST_F(DynamoDbFaults, AThrottledReadIsRepeated) {
  ASSERT_TRUE(write(put()).has_value());
  inject(ProxyFault::throttle, "GetItem", 2);
  EXPECT_TRUE(is_there());
}

TEST_F(DynamoDbFaults, ADelayedAnswerIsWaitedFor) {
  proxy().inject({.kind = ProxyFault::delay, .operation = "PutItem", .delay = milliseconds(50)});
  EXPECT_TRUE(write(put()).has_value());
  EXPECT_EQ(requests("PutItem"), 1);
}

TEST_F(DynamoDbFaults, AWriteWhoseAnswerTakesTooLongIsAmbiguous) {
  DynamoDbOptions impatient = quick();
  impatient.http.read_timeout = milliseconds(50);
  auto table = opened("elsewhere", proxy().environment(), impatient);
  proxy().inject({.kind = ProxyFault::delay, .operation = "UpdateItem", .delay = milliseconds(2000)});
  const Error error =
      error_of(run(table->write(Update{key_, Changes().increment("n", 1)}, Durability::machine)));
  EXPECT_EQ(error.code, ErrorCode::ambiguous) << to_string(error);
  EXPECT_EQ(requests("UpdateItem"), 1);
}

TEST_F(DynamoDbFaults, AWriteLostOnItsWayIsAmbiguousAndNotRepeated) {
  inject(ProxyFault::cut_before, "PutItem");
  const Error error = error_of(write(put()));
  EXPECT_EQ(error.code, ErrorCode::ambiguous) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("PutItem on dynamodb:"));
  EXPECT_EQ(requests("PutItem"), 1);
  EXPECT_FALSE(is_there());
}

TEST_F(DynamoDbFaults, AWriteWhoseAnswerIsLostIsAmbiguousThoughItWasDone) {
  inject(ProxyFault::cut_after, "PutItem");
  EXPECT_EQ(error_of(write(put())).code, ErrorCode::ambiguous);
  EXPECT_EQ(requests("PutItem"), 1);
  EXPECT_TRUE(is_there());
}

TEST_F(DynamoDbFaults, AnUpdateOrDeleteWhoseAnswerIsLostIsNotRepeated) {
  ASSERT_TRUE(write(put()).has_value());
  inject(ProxyFault::cut_after, "UpdateItem");
  EXPECT_EQ(error_of(write(Update{key_, Changes().increment("n", 1)})).code, ErrorCode::ambiguous);
  EXPECT_EQ(count(), 2);
  inject(ProxyFault::cut_after, "DeleteItem");
  EXPECT_EQ(error_of(write(Delete{key_})).code, ErrorCode::ambiguous);
  EXPECT_FALSE(is_there());
  EXPECT_EQ(requests("DeleteItem"), 1);
}

TEST_F(DynamoDbFaults, AWriteWhoseAnswerIsCutOffIsAmbiguous) {
  inject(ProxyFault::cut_answer, "PutItem");
  EXPECT_EQ(error_of(write(put())).code, ErrorCode::ambiguous);
  EXPECT_TRUE(is_there());
}

TEST_F(DynamoDbFaults, AServerErrorLeavesAWriteAmbiguousWhetherItWasDoneOrNot) {
  inject(ProxyFault::error_after, "PutItem");
  EXPECT_EQ(error_of(write(put())).code, ErrorCode::ambiguous);
  EXPECT_TRUE(is_there());
  inject(ProxyFault::error_before, "DeleteItem");
  EXPECT_EQ(error_of(write(Delete{key_})).code, ErrorCode::ambiguous);
  EXPECT_TRUE(is_there());
}

TEST_F(DynamoDbFaults, AThrottledWriteThatIsThenLostIsAmbiguous) {
  inject(ProxyFault::throttle, "PutItem");
  inject(ProxyFault::cut_after, "PutItem");
  EXPECT_EQ(error_of(write(put())).code, ErrorCode::ambiguous);
  EXPECT_TRUE(is_there());
}

TEST_F(DynamoDbFaults, ReadsAreRepeatedWhateverHappened) {
  ASSERT_TRUE(write(put()).has_value());
  for (const ProxyFault fault : {ProxyFault::cut_before, ProxyFault::cut_after, ProxyFault::cut_answer,
                                 ProxyFault::error_before, ProxyFault::error_after, ProxyFault::not_http}) {
    inject(fault, "GetItem");
    EXPECT_TRUE(is_there());
  }
  EXPECT_EQ(proxy().counters().pending, 0);
}

TEST_F(DynamoDbFaults, ADamagedAnswerIsNoticedByItsChecksumAndAskedForAgain) {
  ASSERT_TRUE(write(put()).has_value());
  inject(ProxyFault::corrupt, "GetItem");
  const auto found = get();
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  EXPECT_EQ(*found, (Item{key_, {{"n", 1}}}));
  EXPECT_EQ(requests("GetItem"), 2);
}

TEST_F(DynamoDbFaults, AReadThatNeverSucceedsIsUnavailable) {
  inject(ProxyFault::cut_after, "GetItem", 100);
  const Error error = error_of(get());
  EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  EXPECT_EQ(requests("GetItem"), 4);
}

TEST_F(DynamoDbFaults, QueriesAndScansAreRepeated) {
  ASSERT_TRUE(write(put()).has_value());
  inject(ProxyFault::error_before, "Query");
  const auto page = run(table_.query({.pk = key_.pk}));
  ASSERT_TRUE(page.has_value()) << to_string(page.error());
  EXPECT_EQ(page->items.size(), 1U);
  inject(ProxyFault::cut_after, "Scan");
  EXPECT_TRUE(run(table_.scan({})).has_value());
}

TEST_F(DynamoDbFaults, ATransactionWhoseAnswerIsLostIsCommittedExactlyOnce) {
  inject(ProxyFault::cut_after, "TransactWriteItems", 2);
  const auto outcome = transact(increment());
  ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  EXPECT_TRUE(std::holds_alternative<Committed>(*outcome));
  EXPECT_EQ(requests("TransactWriteItems"), 3);
  EXPECT_EQ(forwarded("TransactWriteItems"), 3);
  EXPECT_EQ(count(), 1);
}

TEST_F(DynamoDbFaults, ATransactionThatFailedAfterItsCommitIsCommittedExactlyOnce) {
  inject(ProxyFault::error_after, "TransactWriteItems");
  const auto outcome = transact(increment());
  ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  EXPECT_EQ(count(), 1);
}

TEST_F(DynamoDbFaults, ATransactionIsRepeatedByteForByte) {
  inject(ProxyFault::error_before, "TransactWriteItems", 2);
  ASSERT_TRUE(transact(increment()).has_value());
  std::vector<std::string> bodies;
  for (const ProxyRequest& request : proxy().log()) {
    if (request.operation == "TransactWriteItems") bodies.push_back(request.body);
  }
  ASSERT_EQ(bodies.size(), 3U);
  EXPECT_EQ(bodies[0], bodies[1]);
  EXPECT_EQ(bodies[0], bodies[2]);
  EXPECT_THAT(bodies[0], HasSubstr("ClientRequestToken"));
}

TEST_F(DynamoDbFaults, ATransactionThatIsLostAgainAndAgainIsAmbiguousButHappenedOnce) {
  inject(ProxyFault::cut_after, "TransactWriteItems", 100);
  EXPECT_EQ(error_of(transact(increment())).code, ErrorCode::ambiguous);
  EXPECT_EQ(requests("TransactWriteItems"), 4);
  EXPECT_EQ(count(), 1);
}

TEST_F(DynamoDbFaults, ATransactionLostFirstAndThrottledThenIsAmbiguous) {
  inject(ProxyFault::cut_after, "TransactWriteItems");
  inject(ProxyFault::throttle, "TransactWriteItems", 100);
  EXPECT_EQ(error_of(transact(increment())).code, ErrorCode::ambiguous);
  EXPECT_EQ(count(), 1);
}

TEST_F(DynamoDbFaults, ARepeatedTransactionIsRecognisedByItsToken) {
  const std::string token = uuid_v4(system_random());
  for (int i = 0; i < 3; ++i) {
    const auto outcome = run(table_.transact(increment(), token));
    ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
    EXPECT_TRUE(std::holds_alternative<Committed>(*outcome));
  }
  EXPECT_EQ(count(), 1);
}

TEST_F(DynamoDbFaults, ATokenOfAnotherTransactionIsRefused) {
  const std::string token = uuid_v4(system_random());
  ASSERT_TRUE(run(table_.transact(increment(), token)).has_value());
  const Error error = error_of(run(table_.transact({put()}, token)));
  EXPECT_EQ(error.code, ErrorCode::invalid) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("token"));
  EXPECT_EQ(count(), 1);
}

TEST_F(DynamoDbFaults, SeveralItemsAreReadByOneRequestEachNamedOnce) {
  ASSERT_TRUE(write(put()).has_value());
  std::vector<Key> keys{key_, {key_.pk, "other"}, key_};
  const auto found = run(table_.get_all(std::move(keys), Consistency::strong));
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  EXPECT_EQ(requests("BatchGetItem"), 1);
  EXPECT_EQ(requests("GetItem"), 0);
}

TEST_F(DynamoDbFaults, AThrottledReadOfSeveralItemsIsRepeated) {
  inject(ProxyFault::throttle, "BatchGetItem", 2);
  std::vector<Key> keys{key_, {key_.pk, "other"}};
  const auto found = run(table_.get_all(std::move(keys), Consistency::strong));
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  EXPECT_EQ(requests("BatchGetItem"), 3);
}

TEST_F(DynamoDbFaults, GarbageInAnswerToAReadIsAnErrorThatNamesTheEndpoint) {
  inject(ProxyFault::garbage, "GetItem");
  const Error error = error_of(get());
  EXPECT_EQ(error.code, ErrorCode::internal) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr(proxy().endpoint()), HasSubstr("JSON")));
}

TEST_F(DynamoDbFaults, GarbageInAnswerToAWriteLeavesItAmbiguous) {
  inject(ProxyFault::garbage, "PutItem");
  EXPECT_EQ(error_of(write(put())).code, ErrorCode::ambiguous);
  EXPECT_TRUE(is_there());
  inject(ProxyFault::garbage, "TransactWriteItems");
  EXPECT_EQ(error_of(transact({Delete{key_}})).code, ErrorCode::ambiguous);
}

TEST_F(DynamoDbFaults, EveryRequestIsSignedCorrectly) {
  ASSERT_TRUE(write(put()).has_value());
  EXPECT_TRUE(is_there());
  EXPECT_TRUE(run(table_.scan({})).has_value());
  EXPECT_THAT(proxy().counters().signature_failures, testing::IsEmpty());
}

// Credentials and endpoints.

Environment with(std::map<std::string, std::string, std::less<>> changes) {
  auto variables = aws_variables("dynamodb", proxy().endpoint());
  for (auto& [name, value] : changes)
    variables[name] = value;
  return Environment(std::move(variables));
}

Error refused_read(const Environment& environment) {
  proxy().reset();
  auto table = opened("any-table", environment);
  return error_of(run(table->get({"p", "s"}, Consistency::strong)));
}

TEST(DynamoDbAccess, AWrongSecretIsUnauthorizedAndTheMessageNamesTheVariable) {
  const Error error = refused_read(with({{"AWS_SECRET_ACCESS_KEY", "wrong"}}));
  EXPECT_EQ(error.code, ErrorCode::unauthorized) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr("InvalidSignatureException"), HasSubstr("AWS_SECRET_ACCESS_KEY"),
                                   HasSubstr("clock")));
  EXPECT_EQ(proxy().counters().requests["GetItem"], 1);
}

TEST(DynamoDbAccess, AnUnknownAccessKeyIsUnauthorized) {
  const Error error = refused_read(with({{"AWS_ACCESS_KEY_ID", "AKIDNOBODY"}}));
  EXPECT_EQ(error.code, ErrorCode::unauthorized) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr("UnrecognizedClientException"), HasSubstr("AWS_ACCESS_KEY_ID")));
}

TEST(DynamoDbAccess, AWrongRegionIsUnauthorizedAndTheMessageNamesTheVariable) {
  const Error error = refused_read(with({{"AWS_REGION", "eu-west-1"}}));
  EXPECT_EQ(error.code, ErrorCode::unauthorized) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("AWS_REGION"));
}

TEST(DynamoDbAccess, AnUnauthorizedWriteIsNotAmbiguous) {
  auto table = opened("any-table", with({{"AWS_SECRET_ACCESS_KEY", "wrong"}}));
  const Error error = error_of(run(table->write(Delete{{"p", "s"}}, Durability::machine)));
  EXPECT_EQ(error.code, ErrorCode::unauthorized) << to_string(error);
}

TEST(DynamoDbAccess, AMissingPermissionIsUnauthorizedAndNamesTheOperation) {
  proxy().reset();
  proxy().inject({.kind = ProxyFault::error_before, .status = 400, .code = "AccessDeniedException"});
  auto table = opened("any-table", proxy().environment());
  const Error error = error_of(run(table->get({"p", "s"}, Consistency::strong)));
  EXPECT_EQ(error.code, ErrorCode::unauthorized) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("dynamodb:GetItem"));
}

TEST(DynamoDbAccess, AnExpiredSessionIsUnauthorized) {
  proxy().reset();
  proxy().inject({.kind = ProxyFault::error_before, .status = 400, .code = "ExpiredTokenException"});
  auto table = opened("any-table", proxy().environment());
  const Error error = error_of(run(table->get({"p", "s"}, Consistency::strong)));
  EXPECT_EQ(error.code, ErrorCode::unauthorized) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("session has ended"));
}

// Keys that are left unprocessed: DynamoDB Local never does that.

// {"pk": {"S": "p"}, "sk": {"S": sk}, ...}
std::string row_in_json(std::string_view sk, std::string_view more = "") {
  return R"({"pk":{"S":"p"},"sk":{"S":")" + std::string(sk) + "\"}" + std::string(more) + "}";
}

std::string batch_answer(std::string_view items, std::string_view unprocessed) {
  std::string body = R"({"Responses":{"pages":[)" + std::string(items) + R"(]},"UnprocessedKeys":{)";
  if (!unprocessed.empty()) body += R"("pages":{"Keys":[)" + std::string(unprocessed) + "]}";
  return http_answer(200, body + "}}");
}

Result<std::vector<std::optional<Item>>> read_a_and_b(const ScriptedServer& server) {
  auto table = opened("pages", Environment(aws_variables("dynamodb", server.url())));
  std::vector<Key> keys{{"p", "a"}, {"p", "b"}};
  return run(table->get_all(std::move(keys), Consistency::strong));
}

TEST(DynamoDbBatches, KeysThatAreLeftUnprocessedAreAskedForAgainAndNoOthers) {
  const std::string a = row_in_json("a", R"(,"n":{"N":"1"})");
  const std::string b = row_in_json("b", R"(,"n":{"N":"2"})");
  const ScriptedServer server(answer_in_turn({batch_answer("", row_in_json("a") + "," + row_in_json("b")),
                                              batch_answer(b, row_in_json("a")), batch_answer(a, "")}));
  const auto found = read_a_and_b(server);
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  EXPECT_EQ((*found)[0], (Item{{"p", "a"}, {{"n", 1}}}));
  EXPECT_EQ((*found)[1], (Item{{"p", "b"}, {{"n", 2}}}));
  const std::vector<std::string> requests = server.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_THAT(requests[1], AllOf(HasSubstr(row_in_json("a")), HasSubstr(row_in_json("b"))));
  EXPECT_THAT(requests[2], AllOf(HasSubstr(row_in_json("a")), testing::Not(HasSubstr(row_in_json("b")))));
}

TEST(DynamoDbBatches, KeysThatStayUnprocessedAreUnavailableNotAbsent) {
  const ScriptedServer server(
      answer_in_turn({batch_answer(row_in_json("b"), row_in_json("a")), batch_answer("", row_in_json("a"))}));
  const Error error = error_of(read_a_and_b(server));
  EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr("BatchGetItem"), HasSubstr("unprocessed")));
}

TEST(DynamoDbBatches, AnAnswerToWhatWasNotAskedForIsCorrupt) {
  const ScriptedServer items(answer_in_turn({batch_answer(row_in_json("c"), "")}));
  EXPECT_EQ(error_of(read_a_and_b(items)).code, ErrorCode::corrupt);
  const ScriptedServer left(answer_in_turn({batch_answer("", row_in_json("c"))}));
  EXPECT_EQ(error_of(read_a_and_b(left)).code, ErrorCode::corrupt);
  const ScriptedServer neither(answer_in_turn({http_answer(200, "{}")}));
  EXPECT_EQ(error_of(read_a_and_b(neither)).code, ErrorCode::corrupt);
}

TEST(DynamoDbAccess, AnEndpointNobodyListensOnIsUnavailableAndNamed) {
  const std::string endpoint = "http://127.0.0.1:" + std::to_string(closed_port());
  auto table = opened("any-table", Environment(aws_variables("dynamodb", endpoint)));
  const Error read = error_of(run(table->get({"p", "s"}, Consistency::strong)));
  EXPECT_EQ(read.code, ErrorCode::unavailable) << to_string(read);
  EXPECT_THAT(read.message, AllOf(HasSubstr(endpoint), HasSubstr("AWS_ENDPOINT_URL")));
  const Error write = error_of(run(table->write(Delete{{"p", "s"}}, Durability::machine)));
  EXPECT_EQ(write.code, ErrorCode::unavailable) << to_string(write);
}

TEST(DynamoDbAccess, AMissingTableIsInvalidAndTheMessageNamesTheRemedy) {
  proxy().reset();
  auto table = opened("no-such-table", proxy().environment());
  const std::vector<Error> errors = {error_of(run(table->get({"p", "s"}, Consistency::strong))),
                                     error_of(run(table->write(Delete{{"p", "s"}}, Durability::machine))),
                                     error_of(run(table->transact({Delete{{"p", "s"}}}, "token"))),
                                     error_of(run(table->query({.pk = "p"}))),
                                     error_of(run(table->scan({}))),
                                     error_of(run(table->describe()))};
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, ErrorCode::invalid) << to_string(error);
    EXPECT_THAT(error.message, AllOf(HasSubstr("no-such-table"), HasSubstr(proxy().endpoint()),
                                     HasSubstr("facetheory table create")));
  }
}

TEST(DynamoDbAccess, AnImpossibleTableNameIsRefusedAtOnce) {
  for (const std::string& name :
       {std::string("ab"), std::string("with space"), std::string("slash/"), std::string(256, 'n')}) {
    const Error error = error_of(open_dynamodb_table(name, executor(), platform_of(proxy().environment())));
    EXPECT_EQ(error.code, ErrorCode::invalid) << name;
    EXPECT_THAT(error.message, HasSubstr("3 to 255"));
  }
}

// Making and describing tables.

std::string script(const std::string& table, const std::string& mode) {
  ChildProcess python({"/usr/bin/python3", std::string(FACETHEORY_INTEROP) + "/dynamodb_items.py",
                       shared_dynamodb_local(), table, mode});
  const int status = python.wait(kLongest);
  return status == 0 ? "" : "exit " + std::to_string(status) + ": " + python.output();
}

TEST(DynamoDbCreate, ANewTableIsActiveEmptyAndExpiresRows) {
  const std::string name = fresh_name();
  auto table = made(name);
  const auto description = run(table->describe());
  ASSERT_TRUE(description.has_value()) << to_string(description.error());
  EXPECT_EQ(description->uri, "dynamodb:" + name);
  EXPECT_EQ(description->status, "ACTIVE");
  EXPECT_EQ(description->items, 0U);
  EXPECT_TRUE(description->expires_rows);
}

TEST(DynamoDbCreate, ATableOfAnotherShapeIsRefusedAndLeftAlone) {
  const std::string name = fresh_name();
  ASSERT_EQ(script(name, "shape"), "");
  auto table = opened(name, proxy().environment());
  const Error error = error_of(run(table->create()));
  EXPECT_EQ(error.code, ErrorCode::invalid) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr(name), HasSubstr("id N HASH"), HasSubstr("pk S HASH")));
}

TEST(DynamoDbCreate, ATableThatExpiresRowsByAnotherAttributeIsRefused) {
  const std::string name = fresh_name();
  ASSERT_EQ(script(name, "expire"), "");
  auto table = opened(name, proxy().environment());
  const Error error = error_of(run(table->create()));
  EXPECT_EQ(error.code, ErrorCode::invalid) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr("expires"), HasSubstr("ttl")));
  EXPECT_FALSE(run(table->describe())->expires_rows);
}

TEST(DynamoDbCreate, LostAnswersDoNotKeepATableFromBeingMade) {
  proxy().reset();
  proxy().inject({.kind = ProxyFault::cut_after, .operation = "CreateTable"});
  proxy().inject({.kind = ProxyFault::error_after, .operation = "UpdateTimeToLive"});
  auto table = made(fresh_name());
  EXPECT_TRUE(run(table->describe())->expires_rows);
  EXPECT_EQ(proxy().counters().pending, 0);
}

TEST(DynamoDbCreate, ManyMayMakeTheSameTableAtOnce) {
  proxy().reset();
  const std::string name = fresh_name();
  std::vector<std::unique_ptr<Table>> tables;
  std::vector<Task<Result<void>>> makers;
  for (int i = 0; i < 8; ++i) {
    tables.push_back(opened(name, proxy().environment()));
    makers.push_back(tables.back()->create());
  }
  for (const Result<void>& result : run_all(std::move(makers)))
    EXPECT_TRUE(result.has_value()) << to_string(result.error());
}

// Answers word for word.

std::string with_checksum(int status, const std::string& body) {
  boost::crc_32_type crc;
  crc.process_bytes(body.data(), body.size());
  return http_answer(status, body, "x-amz-crc32: " + std::to_string(crc.checksum()) + "\r\n");
}

class DynamoDbAnswers : public testing::Test {
 protected:
  // A table whose service gives these answers in turn.
  Table& answering(std::vector<std::string> answers) {
    server_ = std::make_unique<ScriptedServer>(answer_in_turn(std::move(answers)));
    table_ = opened("scripted", Environment(aws_variables("dynamodb", server_->url())));
    return *table_;
  }
  static std::string cancelled(const std::string& reasons) {
    return http_answer(400, R"({"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException",)"
                            R"("Message":"Transaction cancelled","CancellationReasons":[)" +
                                reasons + "]}");
  }
  Result<TransactOutcome> transact_two(std::vector<std::string> answers) {
    return run(answering(std::move(answers)).transact({Delete{{"p", "1"}}, Delete{{"p", "2"}}}, "token"));
  }
  std::size_t requests() const { return server_->requests().size(); }

 private:
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<Table> table_;
};

TEST_F(DynamoDbAnswers, AFailedConditionDecidesOverAConflictBesideIt) {
  const auto outcome = transact_two({cancelled(
      R"({"Code":"TransactionConflict","Message":"busy"},)"
      R"({"Code":"ConditionalCheckFailed","Item":{"pk":{"S":"p"},"sk":{"S":"2"},"n":{"N":"7"}}})")});
  ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  const auto* why = std::get_if<Cancelled>(&*outcome);
  ASSERT_NE(why, nullptr);
  ASSERT_EQ(why->reasons.size(), 2U);
  EXPECT_FALSE(why->reasons[0].has_value());
  ASSERT_TRUE(why->reasons[1].has_value());
  EXPECT_EQ(why->reasons[1]->stored, (Item{{"p", "2"}, {{"n", 7}}}));
  EXPECT_EQ(requests(), 1U);
}

TEST_F(DynamoDbAnswers, AThrottledTransactionIsRepeated) {
  const auto outcome = transact_two({cancelled(R"({"Code":"None"},{"Code":"ThrottlingError"})"),
                                     cancelled(R"({"Code":"ProvisionedThroughputExceeded"},{"Code":"None"})"),
                                     http_answer(200, "{}")});
  ASSERT_TRUE(outcome.has_value()) << to_string(outcome.error());
  EXPECT_TRUE(std::holds_alternative<Committed>(*outcome));
  EXPECT_EQ(requests(), 3U);
}

TEST_F(DynamoDbAnswers, AValidationErrorAmongTheReasonsIsInvalidWithItsMessage) {
  const Error error = error_of(transact_two(
      {cancelled(R"({"Code":"ConditionalCheckFailed"},)"
                 R"({"Code":"ValidationError","Message":"Item size to update has exceeded"})")}));
  EXPECT_EQ(error.code, ErrorCode::invalid) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("Item size to update has exceeded"));
  EXPECT_EQ(requests(), 1U);
}

TEST_F(DynamoDbAnswers, ReasonsThatDoNotMatchTheItemsAreCorrupt) {
  const Error error = error_of(transact_two({cancelled(R"({"Code":"ConditionalCheckFailed"})")}));
  EXPECT_EQ(error.code, ErrorCode::corrupt) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("expected 2"));
}

TEST_F(DynamoDbAnswers, AValidationExceptionIsInvalidWithItsMessage) {
  Table& table =
      answering({http_answer(400, R"({"__type":"com.amazon.coral.validate#ValidationException",)"
                                  R"("message":"The number of conditions on the keys is invalid"})")});
  const Error error = error_of(run(table.get({"p", "s"}, Consistency::strong)));
  EXPECT_EQ(error.code, ErrorCode::invalid) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("The number of conditions on the keys is invalid"));
}

TEST_F(DynamoDbAnswers, AStoredItemOfAnUnknownTypeIsCorruptAndNamed) {
  Table& table =
      answering({http_answer(200, R"({"Item":{"pk":{"S":"page"},"sk":{"S":"META"},"etag":{"X":"?"}}})")});
  const Error error = error_of(run(table.get({"page", "META"}, Consistency::strong)));
  EXPECT_EQ(error.code, ErrorCode::corrupt) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr("page"), HasSubstr("META"), HasSubstr("etag")));
}

TEST_F(DynamoDbAnswers, AnotherItemThanTheOneAskedForIsCorrupt) {
  Table& table = answering({http_answer(200, R"({"Item":{"pk":{"S":"other"},"sk":{"S":"META"}}})")});
  EXPECT_EQ(error_of(run(table.get({"page", "META"}, Consistency::strong))).code, ErrorCode::corrupt);
}

TEST_F(DynamoDbAnswers, APageWithoutItemsMayStillHaveANext) {
  Table& table =
      answering({http_answer(200, R"({"Items":[],"LastEvaluatedKey":{"pk":{"S":"p"},"sk":{"S":"k"}}})")});
  const auto page = run(table.query({.pk = "p"}));
  ASSERT_TRUE(page.has_value()) << to_string(page.error());
  EXPECT_TRUE(page->items.empty());
  EXPECT_EQ(page->next, "k");
}

TEST_F(DynamoDbAnswers, APageThatIsNoPageIsCorrupt) {
  EXPECT_EQ(error_of(run(answering({http_answer(200, R"({"Count":0})")}).query({.pk = "p"}))).code,
            ErrorCode::corrupt);
  EXPECT_EQ(
      error_of(
          run(answering({http_answer(200, R"({"Items":[],"LastEvaluatedKey":{"pk":{"S":"p"}}})")}).scan({})))
          .code,
      ErrorCode::corrupt);
}

TEST_F(DynamoDbAnswers, AFailedConditionWhoseItemCannotBeReadIsCorruptAndNamesIt) {
  Table& table = answering({http_answer(
      400,
      R"({"__type":"x#ConditionalCheckFailedException","Item":{"pk":{"S":"page"},"sk":{"S":"LOCK"},"n":{"N":"x"}}})")});
  const Error error =
      error_of(run(table.write(Delete{{"page", "LOCK"}, attr("n") == 1}, Durability::machine)));
  EXPECT_EQ(error.code, ErrorCode::corrupt) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr("page"), HasSubstr("LOCK")));
}

TEST_F(DynamoDbAnswers, AnAnswerWithAGoodChecksumIsTaken) {
  const auto found = run(answering({with_checksum(200, "{}")}).get({"p", "s"}, Consistency::strong));
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  EXPECT_EQ(*found, std::nullopt);
}

TEST_F(DynamoDbAnswers, AWriteWhoseAnswerHasABadChecksumIsAmbiguous) {
  Table& table = answering({http_answer(200, "{}", "x-amz-crc32: 1\r\n")});
  EXPECT_EQ(error_of(run(table.write(Delete{{"p", "s"}}, Durability::machine))).code, ErrorCode::ambiguous);
  EXPECT_EQ(requests(), 1U);
}

TEST_F(DynamoDbAnswers, AnErrorPageOfSomethingElseSaysThatThisIsNotDynamoDb) {
  Table& table = answering({http_answer(404, "<html>not found</html>")});
  const Error error = error_of(run(table.get({"p", "s"}, Consistency::strong)));
  EXPECT_EQ(error.code, ErrorCode::internal) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr("404"), HasSubstr("endpoint")));
}

TEST_F(DynamoDbAnswers, ATableThatStaysInCreationIsGivenUpInTime) {
  ScriptedServer server(answer_in_turn({http_answer(200, R"({"Table":{"TableStatus":"CREATING"}})")}));
  DynamoDbOptions options = quick();
  options.create_timeout = milliseconds(120);
  auto table = opened("scripted", Environment(aws_variables("dynamodb", server.url())), options);
  const Error error = error_of(run(table->create()));
  EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  EXPECT_THAT(error.message, AllOf(HasSubstr("scripted"), HasSubstr("CREATING")));
}

// Other programs on the same table.

// The same values stand in tests/interop/dynamodb_items.py.
Attributes every_type() {
  using std::string_literals::operator""s;
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes.push_back(static_cast<char>(byte));
  return {{"S", "é € 😀 \0 \"\\"s},
          {"S empty", ""},
          {"N", *Number::parse("-12345678901234567890123456789.012345678")},
          {"N large", *Number::parse("1e37")},
          {"N small", *Number::parse("1e-130")},
          {"B", Binary{bytes}},
          {"BOOL", false},
          {"NULL", Null{}},
          {"L", List{"a", 1, List{}, Attributes{}, Null{}, true}},
          {"M", Attributes{{"pk", "inner"}, {"m", Attributes{{"deep", StringSet{"x", "y"}}}}}},
          {"SS", StringSet{"", "a", "é"}},
          {"NS", NumberSet{-1, *Number::parse("0.5"), 10}},
          {"BS", BinarySet{Binary{""}, Binary{"\x00\xff"s}}}};
}

TEST(DynamoDbInterop, Boto3ReadsExactlyWhatWeWrote) {
  const std::string name = fresh_name();
  auto table = made(name);
  ASSERT_TRUE(
      run(table->write(Put{Item{{"items", "from-us"}, every_type()}}, Durability::machine)).has_value());
  EXPECT_EQ(script(name, "check"), "");
}

TEST(DynamoDbInterop, WeReadExactlyWhatBoto3Wrote) {
  const std::string name = fresh_name();
  auto table = made(name);
  ASSERT_EQ(script(name, "write"), "");
  const auto found = run(table->get({"items", "from-boto3"}, Consistency::strong));
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  ASSERT_TRUE(found->has_value());
  const Attributes expected = every_type();
  for (const Attribute& attribute : expected) {
    const Value* value = (*found)->attributes.find(attribute.name);
    ASSERT_NE(value, nullptr) << attribute.name;
    EXPECT_EQ(*value, attribute.value) << attribute.name << ": " << to_string(*value);
  }
  EXPECT_EQ((*found)->attributes.size(), expected.size());
}

TEST(DynamoDbInterop, EightProcessesIncrementOneCounterExactly2000Times) {
  constexpr int kProcesses = 8;
  constexpr int kIncrements = 250;
  const std::string name = fresh_name();
  auto table = made(name);
  std::vector<std::string> command{"/usr/bin/env"};
  for (const auto& [variable, value] : aws_variables("dynamodb", shared_dynamodb_local())) {
    command.push_back(variable + "=" + value);
  }
  for (std::string word : {std::string(COUNTER_WORKER), "dynamodb:" + name, std::to_string(kIncrements)}) {
    command.push_back(std::move(word));
  }
  std::vector<std::unique_ptr<ChildProcess>> workers;
  for (int i = 0; i < kProcesses; ++i)
    workers.push_back(std::make_unique<ChildProcess>(command));
  for (const auto& worker : workers)
    EXPECT_EQ(worker->wait(3 * kLongest), 0) << worker->output();
  const auto found = run(table->get(counter_key(), Consistency::strong));
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->attributes, (Attributes{{"n", kProcesses * kIncrements}}));
}

}  // namespace
}  // namespace facetheory::test
