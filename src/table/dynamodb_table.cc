#include "facetheory/table/dynamodb_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/crc.hpp>
#include <boost/json.hpp>

#include "facetheory/aws/default_credentials.h"
#include "facetheory/aws/service_client.h"
#include "facetheory/base/retry.h"
#include "facetheory/table/dynamodb_expression.h"
#include "facetheory/table/dynamodb_json.h"

namespace facetheory {
namespace {

namespace json = boost::json;

// What DynamoDB answered when it did not do what it was asked.
struct Failure {
  int status = 0;
  std::string code;  // "ConditionalCheckFailedException", without the namespace.
  std::string message;
  json::value body;
};

constexpr std::size_t kMaxBatchKeys = 100;

using Answer = std::variant<json::object, Failure>;

bool is_one_of(std::string_view code, std::initializer_list<std::string_view> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// Nothing was done; the same request may succeed a moment later.
bool says_try_again(std::string_view code) {
  return is_one_of(code,
                   {"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
                    "TransactionConflictException", "TransactionInProgressException"});
}

bool says_unauthorized(std::string_view code) {
  return is_one_of(code, {"UnrecognizedClientException", "InvalidSignatureException", "AccessDeniedException",
                          "ExpiredTokenException", "ExpiredToken", "MissingAuthenticationToken",
                          "MissingAuthenticationTokenException", "IncompleteSignatureException",
                          "InvalidClientTokenId", "SignatureDoesNotMatch"});
}

std::string text_member(const json::value& value, std::string_view name) {
  const json::object* object = value.if_object();
  if (object == nullptr) return {};
  const json::value* member = object->if_contains(json::string_view(name.data(), name.size()));
  if (member == nullptr || !member->is_string()) return {};
  return std::string(member->get_string().data(), member->get_string().size());
}

// An error answer, read as far as it can be: proxies and load balancers answer in words of their own.
Failure failure_of(const HttpResponse& response) {
  Failure failure{response.status, {}, {}, {}};
  if (Result<json::value> body = parse_json(response.body); body) failure.body = std::move(body).value();
  const std::string type = text_member(failure.body, "__type");
  failure.code = type.substr(type.find('#') + 1);  // npos + 1 is 0: no namespace.
  failure.message = text_member(failure.body, "message");
  if (failure.message.empty()) failure.message = text_member(failure.body, "Message");
  return failure;
}

// One code per item of a cancelled transaction; empty where DynamoDB gave none that can be read.
std::vector<std::string> reason_codes(const Failure& failure) {
  std::vector<std::string> codes;
  const json::object* body = failure.body.if_object();
  const json::value* reasons = body == nullptr ? nullptr : body->if_contains("CancellationReasons");
  if (reasons == nullptr || !reasons->is_array()) return codes;
  for (const json::value& reason : reasons->get_array())
    codes.push_back(text_member(reason, "Code"));
  return codes;
}

bool contains(const std::vector<std::string>& codes, std::string_view code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// A cancelled transaction that would have gone through but for others in its way.
bool was_only_in_the_way(const Failure& failure) {
  const std::vector<std::string> codes = reason_codes(failure);
  if (contains(codes, "ConditionalCheckFailed") || contains(codes, "ValidationError")) return false;
  return std::any_of(codes.begin(), codes.end(), [](const std::string& code) {
    return is_one_of(code, {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"});
  });
}

bool checksum_fits(const HttpResponse& response) {
  const std::optional<std::string_view> expected = response.headers.get("x-amz-crc32");
  if (!expected) return true;
  boost::crc_32_type crc;
  crc.process_bytes(response.body.data(), response.body.size());
  return std::to_string(crc.checksum()) == *expected;
}

Verdict judge(const HttpResponse& response) {
  if (response.status >= 500) return Verdict::unknown;
  if (!checksum_fits(response)) return Verdict::unknown;
  if (response.status == 429) return Verdict::not_done;
  if (response.status < 400) return Verdict::done;
  const Failure failure = failure_of(response);
  if (says_try_again(failure.code)) return Verdict::not_done;
  if (failure.code == "TransactionCanceledException" && was_only_in_the_way(failure))
    return Verdict::not_done;
  return Verdict::done;
}

// Adds the expressions of an operation and what they refer to.
void add_expression(json::object& request, const Expression& expression) {
  if (!expression.condition.empty()) {
    request["ConditionExpression"] = expression.condition;
    request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD";
  }
  if (!expression.update.empty()) request["UpdateExpression"] = expression.update;
  if (!expression.names.empty()) {
    json::object& names = request["ExpressionAttributeNames"].emplace_object();
    for (std::size_t i = 0; i < expression.names.size(); ++i)
      names["#n" + std::to_string(i)] = expression.names[i];
  }
  if (!expression.values.empty()) {
    json::object& values = request["ExpressionAttributeValues"].emplace_object();
    for (std::size_t i = 0; i < expression.values.size(); ++i) {
      values[":v" + std::to_string(i)] = to_json(expression.values[i]);
    }
  }
}

struct Operation {
  std::string_view name;  // "Put" in a transaction, "PutItem" alone.
  json::object request;
};

Operation operation_of(const Put& put) {
  Operation operation{"Put", {}};
  operation.request["Item"] = to_json(put.item);
  add_expression(operation.request, render(put.condition));
  return operation;
}

Operation operation_of(const Update& update) {
  Operation operation{"Update", {}};
  operation.request["Key"] = to_json(update.key);
  add_expression(operation.request, render(update.condition, update.changes));
  return operation;
}

Operation operation_of(const Delete& erase) {
  Operation operation{"Delete", {}};
  operation.request["Key"] = to_json(erase.key);
  add_expression(operation.request, render(erase.condition));
  return operation;
}

Operation operation_of(const Check& check) {
  Operation operation{"ConditionCheck", {}};
  operation.request["Key"] = to_json(check.key);
  add_expression(operation.request, render(check.condition));
  return operation;
}

// The stored item that a failed condition was judged on.
Result<ConditionFailed> condition_failed(const json::value& holder) {
  const json::object* object = holder.if_object();
  const json::value* item = object == nullptr ? nullptr : object->if_contains("Item");
  if (item == nullptr) return ConditionFailed{};
  Result<Item> stored = item_from_json(*item);
  if (!stored) return stored.error();
  return ConditionFailed{std::move(stored).value()};
}

Result<std::vector<Item>> items_of(const json::object& answer, std::string_view member = "Items") {
  const json::value* list = answer.if_contains(json::string_view(member.data(), member.size()));
  if (list == nullptr || !list->is_array())
    return Error{ErrorCode::corrupt, "expected an array \"" + std::string(member) + "\""};
  std::vector<Item> items;
  items.reserve(list->get_array().size());
  for (const json::value& entry : list->get_array()) {
    Result<Item> item = item_from_json(entry);
    if (!item) return item.error();
    items.push_back(std::move(item).value());
  }
  return items;
}

// What a BatchGetItem found in this table.
Result<std::vector<Item>> batch_items_of(const json::object& answer, const std::string& table) {
  const json::value* responses = answer.if_contains("Responses");
  if (responses == nullptr || !responses->is_object())
    return Error{ErrorCode::corrupt, "expected an object \"Responses\""};
  // Some leave out a table in which nothing was found.
  if (!responses->get_object().contains(table)) return std::vector<Item>();
  return items_of(responses->get_object(), table);
}

// The keys that a BatchGetItem did not get to.
Result<std::vector<Key>> unprocessed_of(const json::object& answer, const std::string& table) {
  std::vector<Key> keys;
  const json::value* tables = answer.if_contains("UnprocessedKeys");
  if (tables == nullptr || tables->is_null()) return keys;
  const Error wrong{ErrorCode::corrupt, "expected an object \"UnprocessedKeys\" with \"Keys\" of this table"};
  if (!tables->is_object()) return wrong;
  const json::value* of_table = tables->get_object().if_contains(table);
  if (of_table == nullptr) return keys;
  const json::value* list = of_table->is_object() ? of_table->get_object().if_contains("Keys") : nullptr;
  if (list == nullptr || !list->is_array()) return wrong;
  for (const json::value& entry : list->get_array()) {
    Result<Key> key = key_from_json(entry);
    if (!key) return key.error();
    keys.push_back(std::move(key).value());
  }
  return keys;
}

// Tells where the page ended; empty: it was the last.
Result<std::optional<Key>> last_key_of(const json::object& answer) {
  const json::value* last = answer.if_contains("LastEvaluatedKey");
  if (last == nullptr || last->is_null()) return std::optional<Key>();
  Result<Key> key = key_from_json(*last);
  if (!key) return key.error();
  return std::optional<Key>(std::move(key).value());
}

// It has more than 25 members: the contract's operations, and for each what makes its request and reads its answer.
class DynamoDbTable final : public Table {
 public:
  DynamoDbTable(std::string name, std::unique_ptr<ServiceClient> reading,
                std::unique_ptr<ServiceClient> writing, const Platform& platform, RetryPolicy retry,
                std::chrono::milliseconds create_timeout)
      : name_(std::move(name)),
        reading_(std::move(reading)),
        writing_(std::move(writing)),
        clock_(*platform.clock),
        random_(*platform.random),
        retry_(retry),
        create_timeout_(create_timeout) {}

  Task<Result<void>> create() override;
  Task<Result<TableDescription>> describe() override;

 private:
  enum class Kind { read, write, repeatable_write };

  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override;
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override;
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override;
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override;
  Task<Result<QueryPage>> do_query(Query query) override;
  Task<Result<ScanPage>> do_scan(Scan scan) override;

  // One BatchGetItem of up to 100 different keys, which are removed from `keys` as they are answered. What was found.
  Task<Result<std::vector<Item>>> get_some(std::set<Key>& keys, Consistency consistency);

  // One operation of DynamoDB's, whose name outlives the call; an answer that is neither what was asked for
  // nor a failure it documents is an error.
  Task<Result<Answer>> call(std::string_view operation, json::object request, Kind kind);
  // The same, where any failure is an error.
  Task<Result<json::object>> ask(std::string_view operation, json::object request, Kind kind);

  // The table as DynamoDB describes it; empty: there is none.
  Task<Result<std::optional<json::object>>> describe_table();
  Result<void> check_shape(const json::object& table) const;
  Task<Result<void>> wait_until_active();
  Task<Result<std::string>> expiry_attribute();  // Empty: rows do not expire.
  Task<Result<void>> ensure_expiry();

  // "GetItem on dynamodb:pages at http://127.0.0.1:8000"
  std::string subject(std::string_view operation) const;
  Error in_context(std::string_view operation, const Error& error) const;
  Error to_error(std::string_view operation, const Failure& failure) const;

  // Constant after construction.
  const std::string name_;
  // Each with connections of its own, so that writes that hang leave some for reads.
  const std::unique_ptr<ServiceClient> reading_;
  const std::unique_ptr<ServiceClient> writing_;
  Clock& clock_;
  Random& random_;
  const RetryPolicy retry_;
  const std::chrono::milliseconds create_timeout_;
};

std::string DynamoDbTable::subject(std::string_view operation) const {
  const Origin& origin = reading_->endpoint().origin;
  return std::string(operation) + " on dynamodb:" + name_ + " at " + (origin.tls ? "https://" : "http://") +
         host_field(origin);
}

Error DynamoDbTable::in_context(std::string_view operation, const Error& error) const {
  return {error.code, subject(operation) + ": " + error.message};
}

Error DynamoDbTable::to_error(std::string_view operation, const Failure& failure) const {
  const std::string& code = failure.code;
  std::string said =
      subject(operation) + ": " + (code.empty() ? "HTTP " + std::to_string(failure.status) : code);
  if (!failure.message.empty()) said += ": " + failure.message;

  if (code == "ResourceNotFoundException") {
    return {ErrorCode::invalid, said + "; there is no table \"" + name_ +
                                    "\": make it with `facetheory table create`, or correct the name "
                                    "(FACETHEORY_CACHE_TABLE_NAME), AWS_REGION or the endpoint"};
  }
  if (says_unauthorized(code) || failure.status == 401 || failure.status == 403) {
    std::string remedy =
        "; check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE)";
    if (code == "AccessDeniedException")
      remedy = "; the role or user needs permission for dynamodb:" + std::string(operation);
    if (code == "InvalidSignatureException" || code == "SignatureDoesNotMatch") {
      remedy += ", AWS_REGION, and that this machine's clock is right";
    }
    if (code == "ExpiredTokenException" || code == "ExpiredToken")
      remedy += ": the session has ended, obtain new ones";
    return {ErrorCode::unauthorized, said + remedy};
  }
  if (code == "IdempotentParameterMismatchException") {
    return {ErrorCode::invalid,
            said + "; this client token was used for another transaction: take a fresh one"};
  }
  if (code == "TransactionCanceledException") {
    const json::value* reasons = failure.body.as_object().if_contains("CancellationReasons");
    if (reasons != nullptr && reasons->is_array()) {
      for (const json::value& reason : reasons->get_array()) {
        if (text_member(reason, "Code") != "ValidationError") continue;
        return {ErrorCode::invalid, said + ": " + text_member(reason, "Message")};
      }
    }
    return {was_only_in_the_way(failure) ? ErrorCode::unavailable : ErrorCode::internal, std::move(said)};
  }
  if (is_one_of(code, {"LimitExceededException", "ItemCollectionSizeLimitExceededException"})) {
    return {ErrorCode::exhausted, std::move(said)};
  }
  if (says_try_again(code) || failure.status == 429 || code == "ResourceInUseException") {
    return {ErrorCode::unavailable, std::move(said)};
  }
  if (code == "ValidationException") return {ErrorCode::invalid, std::move(said)};
  if (code.empty()) said += "; is this the endpoint of DynamoDB?";
  return {ErrorCode::internal, std::move(said)};
}

Task<Result<Answer>> DynamoDbTable::call(std::string_view operation, json::object request, Kind kind) {
  HttpRequest message;
  message.method = "POST";
  message.headers.add("Content-Type", "application/x-amz-json-1.0");
  message.headers.add("X-Amz-Target", "DynamoDB_20120810." + std::string(operation));
  message.body = json::serialize(request);

  int unknown = 0;
  ServiceClient::Judge judge_answer = judge;
  ServiceClient& client = kind == Kind::read ? *reading_ : *writing_;
  Result<HttpResponse> response =
      co_await client.call(std::move(message), kind == Kind::write ? Repeatable::no : Repeatable::yes,
                           std::move(judge_answer), &unknown);
  const bool may_have_happened = kind != Kind::read;
  if (!response) {
    Error error = in_context(operation, std::move(response).error());
    // Nothing happens by reading, so there is nothing to be unsure about.
    if (error.code == ErrorCode::ambiguous && !may_have_happened) error.code = ErrorCode::unavailable;
    co_return error;
  }

  if (response->status == 200) {
    Result<json::value> body = parse_json(response->body);
    if (body && body->is_object()) co_return Answer(std::move(body->as_object()));
    co_return Error{may_have_happened ? ErrorCode::ambiguous : ErrorCode::internal,
                    subject(operation) + ": expected a JSON object as the answer, got " +
                        std::to_string(response->body.size()) +
                        " bytes of something else; is this the endpoint of DynamoDB?"};
  }
  Failure failure = failure_of(*response);
  const Verdict verdict = judge(*response);
  if (verdict != Verdict::done) {
    // The repeats are used up. An earlier attempt may have done it all the same.
    Error error = to_error(operation, failure);
    error.code = unknown > 0 && may_have_happened ? ErrorCode::ambiguous : ErrorCode::unavailable;
    co_return error;
  }
  co_return Answer(std::move(failure));
}

Task<Result<json::object>> DynamoDbTable::ask(std::string_view operation, json::object request, Kind kind) {
  Result<Answer> answer = co_await call(operation, std::move(request), kind);
  if (!answer) co_return answer.error();
  if (const auto* failure = std::get_if<Failure>(&*answer)) co_return to_error(operation, *failure);
  co_return std::move(std::get<json::object>(*answer));
}

Task<Result<std::optional<Item>>> DynamoDbTable::do_get(Key key, Consistency consistency) {
  json::object request;
  request["TableName"] = name_;
  request["Key"] = to_json(key);
  request["ConsistentRead"] = consistency == Consistency::strong;
  Result<json::object> answer = co_await ask("GetItem", std::move(request), Kind::read);
  if (!answer) co_return answer.error();
  const json::value* found = answer->if_contains("Item");
  if (found == nullptr) co_return std::optional<Item>();
  Result<Item> item = item_from_json(*found);
  if (!item) co_return in_context("GetItem", item.error());
  if (item->key != key) {
    co_return in_context(
        "GetItem", {ErrorCode::corrupt, "asked for " + to_string(key) + ", got " + to_string(item->key)});
  }
  co_return std::optional<Item>(std::move(item).value());
}

// A key that is neither among the answers nor left unprocessed has no item. DynamoDB leaves keys unprocessed when the
// answer would exceed 16 MB, and when some of its partitions are throttled.
Task<Result<std::vector<Item>>> DynamoDbTable::get_some(std::set<Key>& keys, Consistency consistency) {
  const std::string name = "BatchGetItem";
  std::set<Key> asked;
  json::array wanted;
  for (auto key = keys.begin(); key != keys.end() && asked.size() < kMaxBatchKeys; ++key) {
    wanted.push_back(to_json(*key));
    asked.insert(*key);
  }
  json::object of_table;
  of_table["Keys"] = std::move(wanted);
  of_table["ConsistentRead"] = consistency == Consistency::strong;
  json::object tables;
  tables[name_] = std::move(of_table);
  json::object request;
  request["RequestItems"] = std::move(tables);
  Result<json::object> answer = co_await ask(name, std::move(request), Kind::read);
  if (!answer) co_return answer.error();

  Result<std::vector<Item>> items = batch_items_of(*answer, name_);
  if (!items) co_return in_context(name, items.error());
  Result<std::vector<Key>> left = unprocessed_of(*answer, name_);
  if (!left) co_return in_context(name, left.error());
  for (const Item& item : *items) {
    if (asked.contains(item.key)) continue;
    co_return in_context(name,
                         {ErrorCode::corrupt, "got " + to_string(item.key) + ", which was not asked for"});
  }
  for (const Key& key : *left) {
    if (asked.erase(key) == 1) continue;
    co_return in_context(
        name, {ErrorCode::corrupt, "did not process " + to_string(key) + ", which was not asked for"});
  }
  for (const Key& key : asked)
    keys.erase(key);
  co_return items;
}

Task<Result<std::vector<std::optional<Item>>>> DynamoDbTable::do_get_all(std::vector<Key> keys,
                                                                         Consistency consistency) {
  if (keys.size() == 1) {
    auto item = co_await do_get(std::move(keys[0]), consistency);
    if (!item) co_return std::move(item).error();
    std::vector<std::optional<Item>> alone;
    alone.push_back(*std::move(item));
    co_return alone;
  }
  std::set<Key> wanted(keys.begin(), keys.end());  // BatchGetItem refuses a key that is named twice.
  std::map<Key, Item> found;
  int attempt = 1;  // It counts those in a row that brought nothing.
  while (!wanted.empty()) {
    const std::size_t before = wanted.size();
    Result<std::vector<Item>> some = co_await get_some(wanted, consistency);
    if (!some) co_return some.error();
    for (Item& item : *some) {
      Key key = item.key;
      found.insert_or_assign(std::move(key), std::move(item));
    }
    const std::size_t answered = before - wanted.size();
    if (answered == std::min(before, kMaxBatchKeys)) continue;
    attempt = answered == 0 ? attempt + 1 : 2;
    if (attempt > retry_.max_attempts) {
      co_return Error{ErrorCode::unavailable, subject("BatchGetItem") + ": " + std::to_string(wanted.size()) +
                                                  " keys were left unprocessed, which means throttling"};
    }
    co_await clock_.sleep_for(retry_delay(retry_, attempt, random_));
  }
  std::vector<std::optional<Item>> items;
  items.reserve(keys.size());
  for (const Key& key : keys) {
    const auto one = found.find(key);
    items.push_back(one != found.end() ? std::optional(one->second) : std::nullopt);
  }
  co_return items;
}

Task<Result<WriteOutcome>> DynamoDbTable::do_write(Write write, Durability) {
  Operation operation = std::visit([](const auto& one) { return operation_of(one); }, write);
  const std::string name = std::string(operation.name) + "Item";
  operation.request["TableName"] = name_;
  Result<Answer> answer = co_await call(name, std::move(operation.request), Kind::write);
  if (!answer) co_return answer.error();
  const auto* failure = std::get_if<Failure>(&*answer);
  if (failure == nullptr) co_return WriteOutcome(Written{});
  if (failure->code != "ConditionalCheckFailedException") co_return to_error(name, *failure);
  Result<ConditionFailed> failed = condition_failed(failure->body);
  if (!failed) co_return in_context(name, failed.error());
  co_return WriteOutcome(std::move(failed).value());
}

Task<Result<TransactOutcome>> DynamoDbTable::do_transact(std::vector<TransactItem> items,
                                                         std::string client_token) {
  const std::string name = "TransactWriteItems";
  json::array operations;
  operations.reserve(items.size());
  for (const TransactItem& item : items) {
    Operation operation = std::visit([](const auto& one) { return operation_of(one); }, item);
    operation.request["TableName"] = name_;
    json::object entry;
    entry.emplace(json::string_view(operation.name.data(), operation.name.size()),
                  std::move(operation.request));
    operations.push_back(std::move(entry));
  }
  json::object request;
  request["TransactItems"] = std::move(operations);
  request["ClientRequestToken"] = client_token;

  Result<Answer> answer = co_await call(name, std::move(request), Kind::repeatable_write);
  if (!answer) co_return answer.error();
  const auto* failure = std::get_if<Failure>(&*answer);
  if (failure == nullptr) co_return TransactOutcome(Committed{});
  const std::vector<std::string> codes = reason_codes(*failure);
  if (failure->code != "TransactionCanceledException" || !contains(codes, "ConditionalCheckFailed") ||
      contains(codes, "ValidationError")) {
    co_return to_error(name, *failure);
  }
  if (codes.size() != items.size()) {
    co_return in_context(
        name, {ErrorCode::corrupt, "expected " + std::to_string(items.size()) +
                                       " cancellation reasons, got " + std::to_string(codes.size())});
  }
  Cancelled cancelled;
  cancelled.reasons.resize(items.size());
  const json::array& reasons = failure->body.as_object().at("CancellationReasons").as_array();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (codes[i] != "ConditionalCheckFailed") continue;
    Result<ConditionFailed> failed = condition_failed(reasons[i]);
    if (!failed) co_return in_context(name, failed.error());
    cancelled.reasons[i] = std::move(failed).value();
  }
  co_return TransactOutcome(std::move(cancelled));
}

Task<Result<QueryPage>> DynamoDbTable::do_query(Query query) {
  json::object names;
  names["#p"] = "pk";
  json::object values;
  values[":p"] = to_json(Value(query.pk));
  std::string condition = "#p = :p";
  if (!query.sk_prefix.empty()) {
    condition += " AND begins_with(#s, :s)";
    names["#s"] = "sk";
    values[":s"] = to_json(Value(query.sk_prefix));
  }
  json::object request;
  request["TableName"] = name_;
  request["KeyConditionExpression"] = condition;
  request["ExpressionAttributeNames"] = std::move(names);
  request["ExpressionAttributeValues"] = std::move(values);
  request["ScanIndexForward"] = query.direction == Direction::forward;
  request["ConsistentRead"] = query.consistency == Consistency::strong;
  request["Limit"] = query.limit;
  if (query.after) request["ExclusiveStartKey"] = to_json(Key{query.pk, *query.after});

  Result<json::object> answer = co_await ask("Query", std::move(request), Kind::read);
  if (!answer) co_return answer.error();
  Result<std::vector<Item>> items = items_of(*answer);
  if (!items) co_return in_context("Query", items.error());
  Result<std::optional<Key>> last = last_key_of(*answer);
  if (!last) co_return in_context("Query", last.error());
  QueryPage page;
  page.items = std::move(items).value();
  if (last->has_value()) page.next = std::move((*last)->sk);
  co_return page;
}

Task<Result<ScanPage>> DynamoDbTable::do_scan(Scan scan) {
  json::object request;
  request["TableName"] = name_;
  request["ConsistentRead"] = true;
  request["Limit"] = scan.limit;
  if (scan.after) request["ExclusiveStartKey"] = to_json(*scan.after);

  Result<json::object> answer = co_await ask("Scan", std::move(request), Kind::read);
  if (!answer) co_return answer.error();
  Result<std::vector<Item>> items = items_of(*answer);
  if (!items) co_return in_context("Scan", items.error());
  Result<std::optional<Key>> last = last_key_of(*answer);
  if (!last) co_return in_context("Scan", last.error());
  ScanPage page;
  page.items = std::move(items).value();
  page.next = std::move(last).value();
  co_return page;
}

Task<Result<std::optional<json::object>>> DynamoDbTable::describe_table() {
  json::object request;
  request["TableName"] = name_;
  Result<Answer> answer = co_await call("DescribeTable", std::move(request), Kind::read);
  if (!answer) co_return answer.error();
  if (const auto* failure = std::get_if<Failure>(&*answer)) {
    if (failure->code == "ResourceNotFoundException") co_return std::optional<json::object>();
    co_return to_error("DescribeTable", *failure);
  }
  json::object& body = std::get<json::object>(*answer);
  json::value* table = body.if_contains("Table");
  if (table == nullptr || !table->is_object()) {
    co_return in_context("DescribeTable", {ErrorCode::corrupt, "expected an object \"Table\" in the answer"});
  }
  co_return std::optional<json::object>(std::move(table->as_object()));
}

// pk (HASH) and sk (RANGE), both strings.
Result<void> DynamoDbTable::check_shape(const json::object& table) const {
  std::string found;
  bool fits = true;
  const json::value* schema = table.if_contains("KeySchema");
  const json::value* definitions = table.if_contains("AttributeDefinitions");
  if (schema == nullptr || !schema->is_array() || definitions == nullptr || !definitions->is_array()) {
    return in_context("DescribeTable",
                      {ErrorCode::corrupt, "expected \"KeySchema\" and \"AttributeDefinitions\""});
  }
  for (const json::value& part : schema->get_array()) {
    const std::string name = text_member(part, "AttributeName");
    const std::string role = text_member(part, "KeyType");
    std::string type;
    for (const json::value& definition : definitions->get_array()) {
      if (text_member(definition, "AttributeName") == name) type = text_member(definition, "AttributeType");
    }
    found += (found.empty() ? "" : ", ") + name + " " + type + " " + role;
    fits = fits && type == "S" && name == (role == "HASH" ? "pk" : "sk");
  }
  if (fits && schema->get_array().size() == 2) return {};
  return Error{ErrorCode::invalid, "table \"" + name_ + "\" exists with another key (" + found +
                                       "); expected pk S HASH, sk S RANGE: choose another table name"};
}

Task<Result<void>> DynamoDbTable::wait_until_active() {
  const Duration deadline = clock_.monotonic() + create_timeout_;
  Duration pause = std::chrono::milliseconds(50);
  for (;;) {
    Result<std::optional<json::object>> table = co_await describe_table();
    if (!table) co_return table.error();
    const std::string status =
        table->has_value() ? text_member(json::value(**table), "TableStatus") : "not there yet";
    if (status == "ACTIVE" || status == "UPDATING") {
      Result<void> shape = check_shape(**table);
      co_return shape;
    }
    if (clock_.monotonic() + pause > deadline) {
      co_return Error{ErrorCode::unavailable, "table \"" + name_ + "\" is still " + status + " after " +
                                                  std::to_string(create_timeout_.count()) +
                                                  " ms; try again, or look at it in the AWS console"};
    }
    co_await clock_.sleep_for(pause);
    pause = std::min<Duration>(pause * 2, std::chrono::seconds(2));
  }
}

Task<Result<std::string>> DynamoDbTable::expiry_attribute() {
  json::object request;
  request["TableName"] = name_;
  Result<json::object> answer = co_await ask("DescribeTimeToLive", std::move(request), Kind::read);
  if (!answer) co_return answer.error();
  const json::value* description = answer->if_contains("TimeToLiveDescription");
  if (description == nullptr) {
    co_return in_context("DescribeTimeToLive",
                         {ErrorCode::corrupt, "expected \"TimeToLiveDescription\" in the answer"});
  }
  const std::string status = text_member(*description, "TimeToLiveStatus");
  if (status != "ENABLED" && status != "ENABLING") co_return std::string();
  co_return text_member(*description, "AttributeName");
}

Task<Result<void>> DynamoDbTable::ensure_expiry() {
  for (bool asked = false;; asked = true) {
    Result<std::string> attribute = co_await expiry_attribute();
    if (!attribute) co_return attribute.error();
    if (*attribute == "ttl") co_return Result<void>();
    if (!attribute->empty()) {
      co_return Error{ErrorCode::invalid,
                      "table \"" + name_ + "\" expires rows by \"" + *attribute +
                          "\", not by \"ttl\"; choose another table, or change its time to live"};
    }
    json::object specification;
    specification["Enabled"] = true;
    specification["AttributeName"] = "ttl";
    json::object request;
    request["TableName"] = name_;
    request["TimeToLiveSpecification"] = std::move(specification);
    Result<json::object> answer =
        co_await ask("UpdateTimeToLive", std::move(request), Kind::repeatable_write);
    if (answer) co_return Result<void>();
    // Somebody else, or an earlier attempt of ours, may have been quicker: look once more.
    if (asked || answer.error().code != ErrorCode::invalid) co_return answer.error();
  }
}

json::object key_attribute(std::string_view name, std::string_view property, std::string_view value) {
  json::object object;
  object["AttributeName"] = json::string(name.data(), name.size());
  object[json::string_view(property.data(), property.size())] = json::string(value.data(), value.size());
  return object;
}

Task<Result<void>> DynamoDbTable::create() {
  Result<std::optional<json::object>> existing = co_await describe_table();
  if (!existing) co_return existing.error();
  if (!existing->has_value()) {
    json::array schema;
    schema.push_back(key_attribute("pk", "KeyType", "HASH"));
    schema.push_back(key_attribute("sk", "KeyType", "RANGE"));
    json::array definitions;
    definitions.push_back(key_attribute("pk", "AttributeType", "S"));
    definitions.push_back(key_attribute("sk", "AttributeType", "S"));
    json::object request;
    request["TableName"] = name_;
    request["BillingMode"] = "PAY_PER_REQUEST";
    request["KeySchema"] = std::move(schema);
    request["AttributeDefinitions"] = std::move(definitions);
    Result<Answer> answer = co_await call("CreateTable", std::move(request), Kind::repeatable_write);
    if (!answer) co_return answer.error();
    const auto* failure = std::get_if<Failure>(&*answer);
    // ResourceInUseException means that somebody else, or an earlier attempt of ours, is making it.
    if (failure != nullptr && failure->code != "ResourceInUseException")
      co_return to_error("CreateTable", *failure);
  }
  Result<void> active = co_await wait_until_active();
  if (!active) co_return active;
  Result<void> expiry = co_await ensure_expiry();
  co_return expiry;
}

Task<Result<TableDescription>> DynamoDbTable::describe() {
  Result<std::optional<json::object>> table = co_await describe_table();
  if (!table) co_return table.error();
  if (!table->has_value()) {
    const Failure missing{400, "ResourceNotFoundException", {}, {}};
    co_return to_error("DescribeTable", missing);
  }
  Result<std::string> expiry = co_await expiry_attribute();
  if (!expiry) co_return expiry.error();
  TableDescription description;
  description.uri = "dynamodb:" + name_;
  description.status = text_member(json::value(**table), "TableStatus");
  if (const json::value* count = (*table)->if_contains("ItemCount"); count != nullptr && count->is_int64()) {
    description.items = static_cast<std::uint64_t>(std::max<std::int64_t>(0, count->get_int64()));
  }
  description.expires_rows = *expiry == "ttl";
  if (Result<void> shape = check_shape(**table); !shape) description.wrong_keys = shape.error().message;
  co_return description;
}

bool is_table_name(std::string_view name) {
  return name.size() >= 3 && name.size() <= 255 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                  c == '-' || c == '.';
         });
}

}  // namespace

Result<std::unique_ptr<Table>> open_dynamodb_table(std::string name,
                                                   const boost::asio::any_io_executor& executor,
                                                   const Platform& platform, DynamoDbOptions options) {
  if (!is_table_name(name)) {
    return Error{ErrorCode::invalid,
                 "\"" + name.substr(0, 300) +
                     "\" is no name for a DynamoDB table: 3 to 255 letters, digits, '_', '-' and '.'"};
  }
  Result<ServiceEndpoint> endpoint = resolve_endpoint("dynamodb", platform.environment);
  if (!endpoint) return endpoint.error();
  const auto credentials = default_credentials(executor, platform);
  ReadingOptions patient = for_reading(options.http, options.retry);
  auto reading = std::make_unique<ServiceClient>(executor, *endpoint, credentials, platform,
                                                 std::move(patient.http), patient.retry);
  auto writing = std::make_unique<ServiceClient>(executor, *std::move(endpoint), credentials, platform,
                                                 std::move(options.http), options.retry);
  std::unique_ptr<Table> table =
      std::make_unique<DynamoDbTable>(std::move(name), std::move(reading), std::move(writing), platform,
                                      options.retry, options.create_timeout);
  return table;
}

}  // namespace facetheory
