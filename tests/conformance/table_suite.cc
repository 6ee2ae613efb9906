#include "tests/conformance/table_suite.h"

#include <atomic>
#include <map>
#include <ostream>
#include <stdexcept>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/random.h"

#include "tests/support/run.h"

namespace facetheory::test {
namespace {

std::map<std::string, OpenedTable>& shared_tables() {
  static std::map<std::string, OpenedTable> tables;
  return tables;
}

// Tables are closed before the event loop and the servers they use end.
class CloseTables final : public testing::Environment {
 public:
  void TearDown() override { shared_tables().clear(); }
};
const testing::Environment* const close_tables = testing::AddGlobalTestEnvironment(new CloseTables);

Table& shared_table(const TableBackend& backend) {
  auto [entry, is_new] = shared_tables().try_emplace(backend.name);
  if (is_new) entry->second = backend.open();
  return *entry->second.table;
}

template <typename T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return std::move(result).value();
}

template <typename T>
std::string message_of(const Result<T>& result) {
  if (result) {
    ADD_FAILURE() << "was not refused";
    return {};
  }
  EXPECT_EQ(result.error().code, ErrorCode::invalid) << to_string(result.error());
  return result.error().message;
}

}  // namespace

TableSuite::TableSuite() : table_(&shared_table(GetParam())) {
  static std::atomic<int> counter = 0;
  pk_ = std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "#" +
        std::to_string(++counter);
}

std::optional<Attributes> TableSuite::stored(std::string_view sk) {
  std::optional<Item> found = or_throw(run(table().get(key(sk), Consistency::strong)));
  if (!found) return std::nullopt;
  EXPECT_EQ(found->key, key(sk));
  return std::move(found->attributes);
}

WriteOutcome TableSuite::write(Write write) {
  return or_throw(run(table().write(std::move(write), Durability::machine)));
}

TransactOutcome TableSuite::transact(std::vector<TransactItem> items) {
  return or_throw(run(table().transact(std::move(items), token())));
}

void TableSuite::put(Attributes attributes, std::string_view sk) {
  ASSERT_TRUE(std::holds_alternative<Written>(write(Put{item(std::move(attributes), sk)})));
}

void TableSuite::update(Changes changes, std::string_view sk) {
  ASSERT_TRUE(std::holds_alternative<Written>(write(Update{key(sk), std::move(changes)})));
}

QueryPage TableSuite::query(Query query) {
  return or_throw(run(table().query(std::move(query))));
}

std::vector<std::string> TableSuite::sks_of(const QueryPage& page) {
  std::vector<std::string> sks;
  for (const Item& found : page.items)
    sks.push_back(found.key.sk);
  return sks;
}

std::vector<std::string> TableSuite::query_all(Query query) {
  std::vector<std::string> sks;
  for (int pages = 0; pages < 1000; ++pages) {
    const QueryPage page = this->query(query);
    EXPECT_LE(page.items.size(), query.limit);
    for (const Item& found : page.items) {
      EXPECT_EQ(found.key.pk, query.pk);
      sks.push_back(found.key.sk);
    }
    if (!page.next) return sks;
    query.after = page.next;
  }
  ADD_FAILURE() << "the pages have no end";
  return sks;
}

std::string TableSuite::next_sk() {
  return "case-" + std::to_string(++count_);
}

bool TableSuite::holds(const Attributes& attributes, const Condition& condition) {
  const std::string sk = next_sk();
  put(attributes, sk);
  const Attributes replacement{{"replaced", true}};
  const WriteOutcome outcome = write(Put{item(replacement, sk), condition});
  if (const auto* failed = std::get_if<ConditionFailed>(&outcome)) {
    EXPECT_EQ(failed->stored, std::optional<Item>(item(attributes, sk)));
    EXPECT_EQ(stored(sk), attributes);
    return false;
  }
  EXPECT_EQ(stored(sk), replacement);
  return true;
}

bool TableSuite::holds_of_absent(const Condition& condition) {
  const std::string sk = next_sk();
  const WriteOutcome outcome = write(Put{item({{"made", true}}, sk), condition});
  const auto* failed = std::get_if<ConditionFailed>(&outcome);
  EXPECT_FALSE(failed != nullptr && failed->stored.has_value());
  EXPECT_EQ(stored(sk).has_value(), failed == nullptr);
  return failed == nullptr;
}

std::optional<Attributes> TableSuite::updated(Attributes before, Changes changes) {
  const std::string sk = next_sk();
  put(std::move(before), sk);
  update(std::move(changes), sk);
  return stored(sk);
}

std::optional<Attributes> TableSuite::updated_absent(Changes changes) {
  const std::string sk = next_sk();
  update(std::move(changes), sk);
  return stored(sk);
}

std::string TableSuite::refusal(Write write, std::string_view sk) {
  const std::optional<Attributes> before = stored(sk);
  const std::string message = message_of(run(table().write(std::move(write), Durability::machine)));
  EXPECT_EQ(stored(sk), before);
  return message;
}

std::string TableSuite::refusal(std::vector<TransactItem> items, std::string client_token,
                                std::string_view sk) {
  const std::optional<Attributes> before = stored(sk);
  const std::string message = message_of(run(table().transact(std::move(items), std::move(client_token))));
  EXPECT_EQ(stored(sk), before);
  return message;
}

std::string TableSuite::refusal(Query query) {
  return message_of(run(table().query(std::move(query))));
}

std::string TableSuite::refusal(Scan scan) {
  return message_of(run(table().scan(std::move(scan))));
}

std::string TableSuite::refusal_of_get(Key key) {
  return message_of(run(table().get(std::move(key), Consistency::strong)));
}

std::string TableSuite::token() {
  return uuid_v4(system_random());
}

OpenedTable fresh_table(const TableBackend& backend) {
  return backend.open();
}

std::string backend_name(const testing::TestParamInfo<TableBackend>& info) {
  return info.param.name;
}

Number number(std::string_view text) {
  return or_throw(Number::parse(text));
}

}  // namespace facetheory::test

namespace facetheory {
namespace {

std::string cut(std::string text) {
  constexpr std::size_t kLongest = 300;
  if (text.size() > kLongest)
    text = text.substr(0, kLongest) + "... (" + std::to_string(text.size()) + " bytes)";
  return text;
}

}  // namespace

void PrintTo(const Value& value, std::ostream* out) {
  *out << cut(to_string(value));
}
void PrintTo(const Attributes& attributes, std::ostream* out) {
  *out << cut(to_string(attributes));
}
void PrintTo(const Item& item, std::ostream* out) {
  *out << cut(to_string(item));
}

}  // namespace facetheory
