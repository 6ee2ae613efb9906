#include "facetheory/bodies/store_checks.h"

#include <optional>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

namespace facetheory {
namespace {

// What a store lists is looked through up to here: a million objects would take S3 a thousand requests.
constexpr int kMostListed = 50;
constexpr std::size_t kListedAtOnce = 1000;

// The checks of one store, as they come.
class StoreChecksMade {
 public:
  explicit StoreChecksMade(std::string store) : store_(std::move(store)) {}

  void ok(std::string what) { add(std::move(what), CheckResult::ok, {}); }
  void warning(std::string what, std::string detail) {
    add(std::move(what), CheckResult::warning, std::move(detail));
  }
  void failed(std::string what, std::string detail) {
    add(std::move(what), CheckResult::failed, std::move(detail));
  }
  // Ok if there is no detail.
  void judge(std::string what, std::string detail) {
    const CheckResult result = detail.empty() ? CheckResult::ok : CheckResult::failed;
    add(std::move(what), result, std::move(detail));
  }

  std::vector<StoreCheck> take() { return std::move(made_); }

 private:
  void add(std::string what, CheckResult result, std::string detail) {
    made_.push_back({store_, std::move(what), result, std::move(detail)});
  }

  const std::string store_;
  std::vector<StoreCheck> made_;
};

// Rows DOCTOR#<mark> / 1, 2, 3. Each question returns what is wrong, or nothing.
class TableExamination {
 public:
  TableExamination(Table& table, std::string mark, std::int64_t ttl)
      : table_(table), mark_(std::move(mark)), ttl_(ttl) {}

  Task<void> examine(StoreChecksMade& checks);
  Task<Result<std::string>> lacks();

 private:
  // False: nothing more can be tried.
  Task<bool> examine_basics(StoreChecksMade& checks);
  void describe(const Result<TableDescription>& description, StoreChecksMade& checks);
  Task<std::string> writes_and_reads();
  Task<std::string> reads_several();
  Task<std::string> honours_conditions();
  Task<std::string> commits_whole_transactions();
  Task<std::string> cancels_whole_transactions();
  Task<std::string> refuses_a_row_twice();
  Task<std::string> removes();

  Task<Result<std::optional<Item>>> read(std::string sk) const {
    Key key{pk(), std::move(sk)};
    co_return co_await table_.get(std::move(key), Consistency::strong);
  }
  // Whether the row is there with that value.
  Task<Result<bool>> holds(std::string sk, std::string value) const;

  std::string pk() const { return "DOCTOR#" + mark_; }
  // Makes the token of a transaction.
  std::string token(int number) const { return mark_.substr(0, 30) + "-" + std::to_string(number); }
  Item row(std::string sk, std::string value) const {
    return {{pk(), std::move(sk)}, Attributes{{"value", std::move(value)}, {"ttl", ttl_}}};
  }
  Put if_absent(std::string sk, std::string value) const {
    return {row(std::move(sk), std::move(value)), attr("pk").not_exists()};
  }

  Table& table_;
  const std::string mark_;
  const std::int64_t ttl_;
  bool remote_ = false;  // Somebody else's program judges what is sent.
};

constexpr const char* kIgnoresConditions =
    "the server wrote a row although its condition does not hold, so that two workers would hold one lease; "
    "use a server that honours ConditionExpression";
constexpr const char* kCommitsNevertheless = "the server wrote it nevertheless; ";
constexpr const char* kHasNoTransactions =
    "pages with history, tags and idempotent requests are written in transactions; use a server that has "
    "TransactWriteItems, with conditions";

Task<Result<bool>> TableExamination::holds(std::string sk, std::string value) const {
  const Item expected = row(sk, std::move(value));
  const auto stored = co_await read(std::move(sk));
  if (!stored) co_return stored.error();
  co_return *stored == expected;
}

Task<void> TableExamination::examine(StoreChecksMade& checks) {
  if (!co_await examine_basics(checks)) co_return;
  std::string wrong = co_await writes_and_reads();
  const bool writes = wrong.empty();
  checks.judge("a row is read as it was written", std::move(wrong));
  if (writes) {
    wrong = co_await reads_several();
    checks.judge("several rows are read at once", std::move(wrong));
    wrong = co_await honours_conditions();
    checks.judge("a row is written only if its condition holds", std::move(wrong));
    wrong = co_await commits_whole_transactions();
    checks.judge("a transaction is written as a whole", std::move(wrong));
    wrong = co_await cancels_whole_transactions();
    checks.judge("a transaction with a condition that does not hold writes nothing", std::move(wrong));
    wrong = co_await refuses_a_row_twice();
    checks.judge("a transaction that names a row twice is refused", std::move(wrong));
  }
  wrong = co_await removes();
  checks.judge("rows are removed", std::move(wrong));
}

// Its partition is empty, so that no condition holds which asks for a row of it.
Task<Result<std::string>> TableExamination::lacks() {
  Write write = Put{row("1", "never"), attr("pk").exists()};
  const auto written = co_await table_.write(std::move(write), Durability::machine);
  if (!written) co_return written.error();
  if (std::holds_alternative<Written>(*written)) {
    [[maybe_unused]] const std::string removed = co_await removes();
    co_return std::string(kIgnoresConditions);
  }
  std::vector<TransactItem> items{if_absent("2", "never"), Put{row("3", "never"), attr("pk").exists()}};
  std::string once = token(3);
  const auto outcome = co_await table_.transact(std::move(items), std::move(once));
  if (!outcome) {
    // It answers, and has just judged a row: what it does not understand is the transaction.
    const ErrorCode code = outcome.error().code;
    const bool not_understood = code == ErrorCode::invalid || code == ErrorCode::internal;
    if (not_understood) co_return to_string(outcome.error()) + "; " + kHasNoTransactions;
    co_return outcome.error();
  }
  if (std::holds_alternative<Cancelled>(*outcome)) co_return std::string();
  [[maybe_unused]] const std::string removed = co_await removes();
  co_return std::string(kCommitsNevertheless) + kHasNoTransactions;
}

Task<bool> TableExamination::examine_basics(StoreChecksMade& checks) {
  const std::string reached = "the table can be reached";
  const auto description = co_await table_.describe();
  if (!description || description->wrong_keys.empty()) {
    const auto row = co_await read("1");
    checks.judge(reached, row ? "" : to_string(row.error()));
    if (!row) co_return false;
  } else {
    checks.ok(reached);
  }
  describe(description, checks);
  co_return !description || description->wrong_keys.empty();
}

void TableExamination::describe(const Result<TableDescription>& description, StoreChecksMade& checks) {
  if (!description) {
    remote_ = true;
    checks.warning("the table describes itself",
                   to_string(description.error()) + "; `facetheory gc` cannot work without");
    return;
  }
  remote_ = description->uri.starts_with("dynamodb:");
  if (!remote_) return;
  checks.judge("its keys are pk and sk, both text", description->wrong_keys);
  const std::string expires = "rows go away after their `ttl`";
  if (description->expires_rows) {
    checks.ok(expires);
  } else {
    checks.warning(expires,
                   "time to live is not switched on for the attribute `ttl`, so that old rows stay until "
                   "`facetheory gc` finds them; `facetheory table create` switches it on");
  }
}

Task<std::string> TableExamination::writes_and_reads() {
  Write write = if_absent("1", "first");
  const auto written = co_await table_.write(std::move(write), Durability::machine);
  if (!written) co_return to_string(written.error());
  if (!std::holds_alternative<Written>(*written))
    co_return "the server says that a row with a fresh key is there already";
  const auto found = co_await holds("1", "first");
  if (!found) co_return to_string(found.error());
  co_return *found ? ""
                   : "a consistent read does not give what was written just now; use a server that has "
                     "ConsistentRead";
}

// Every page is read together with the marks of its tags.
Task<std::string> TableExamination::reads_several() {
  std::vector<Key> keys{{pk(), "absent"}, {pk(), "1"}};
  const auto found = co_await table_.get_all(std::move(keys), Consistency::strong);
  const std::string remedy = "; use a server that has BatchGetItem, with ConsistentRead";
  if (!found) co_return to_string(found.error()) + (remote_ ? remedy : "");
  const bool right = !(*found)[0] && (*found)[1] == row("1", "first");
  co_return right ? "" : "the server does not give what it gives of each row alone" + remedy;
}

Task<std::string> TableExamination::honours_conditions() {
  Write write = if_absent("1", "second");
  const auto written = co_await table_.write(std::move(write), Durability::machine);
  if (!written) co_return to_string(written.error());
  if (std::holds_alternative<Written>(*written)) co_return kIgnoresConditions;
  const auto found = co_await holds("1", "first");
  if (!found) co_return to_string(found.error());
  co_return *found ? "" : kIgnoresConditions;
}

Task<std::string> TableExamination::commits_whole_transactions() {
  std::vector<TransactItem> items{if_absent("2", "both"), if_absent("3", "both")};
  std::string once = token(2);
  const auto outcome = co_await table_.transact(std::move(items), std::move(once));
  if (!outcome) co_return to_string(outcome.error()) + "; " + kHasNoTransactions;
  if (!std::holds_alternative<Committed>(*outcome))
    co_return std::string("the server cancels a transaction whose conditions hold; ") + kHasNoTransactions;
  for (const char* sk : {"2", "3"}) {
    const auto found = co_await holds(sk, "both");
    if (!found) co_return to_string(found.error());
    if (!*found) co_return std::string("half of a transaction was written; ") + kHasNoTransactions;
  }
  co_return "";
}

Task<std::string> TableExamination::cancels_whole_transactions() {
  // The first could be written; the second, which is there if any row is, forbids it.
  std::vector<TransactItem> items{if_absent("4", "never"), if_absent("1", "never")};
  std::string once = token(4);
  const auto outcome = co_await table_.transact(std::move(items), std::move(once));
  if (!outcome) co_return to_string(outcome.error()) + "; " + kHasNoTransactions;
  const auto first = co_await holds("4", "never");
  if (!first) co_return to_string(first.error());
  const auto second = co_await holds("1", "never");
  if (!second) co_return to_string(second.error());
  if (std::holds_alternative<Committed>(*outcome) || *first || *second)
    co_return std::string(kCommitsNevertheless) + kHasNoTransactions;
  co_return "";
}

Task<std::string> TableExamination::refuses_a_row_twice() {
  std::vector<TransactItem> items{if_absent("5", "once"), if_absent("5", "twice")};
  std::string once = token(5);
  // transact() refuses it before a server sees it, but other programs that write to the table may not.
  auto asked = remote_ ? table_.transact_unchecked(std::move(items), std::move(once))
                       : table_.transact(std::move(items), std::move(once));
  const auto outcome = co_await std::move(asked);
  if (!outcome && outcome.error().code == ErrorCode::invalid) co_return "";
  if (!outcome) co_return to_string(outcome.error()) + "; " + kHasNoTransactions;
  if (std::holds_alternative<Cancelled>(*outcome)) co_return "";
  co_return std::string("the server wrote it; ") + kHasNoTransactions;
}

Task<std::string> TableExamination::removes() {
  std::string wrong;
  for (const char* sk : {"1", "2", "3", "4", "5"}) {
    Write write = Delete{{pk(), sk}};
    const auto removed = co_await table_.write(std::move(write), Durability::machine);
    if (!removed) {
      wrong = to_string(removed.error());
      continue;
    }
    const auto row = co_await read(sk);
    if (!row) wrong = to_string(row.error());
    if (row && *row) wrong = "a row that was removed is still there";
  }
  if (!wrong.empty()) wrong += "; rows of " + pk() + " may remain, until their `ttl`";
  co_return wrong;
}

// The body doctor/<mark>.
class BodiesExamination {
 public:
  BodiesExamination(BodyStore& bodies, const std::string& mark) : bodies_(bodies), key_("doctor/" + mark) {}

  Task<void> examine(StoreChecksMade& checks);
  Task<Result<std::string>> lacks();

 private:
  Task<std::string> is_reached();
  Task<std::string> writes_and_reads();
  Task<std::string> writes_once();
  Task<void> lists(StoreChecksMade& checks);
  Task<std::string> removes();

  static Body body(std::string bytes) {
    return {std::move(bytes),
            {.status = 203,
             .content_type = "text/plain; charset=utf-8",
             .headers = {{"link", "</a.css>; rel=preload"}, {"x-doctor", "\xC3\xA4 \"quoted\""}},
             .sha256 = {}}};
  }

  BodyStore& bodies_;
  const std::string key_;
};

constexpr const char* kOverwrites =
    "the server overwrites: it ignores `If-None-Match: *`. Keys are fresh, so that it takes two writers with "
    "one "
    "key to lose a body, but nothing guards against it; use a server that honours conditional writes";

Task<void> BodiesExamination::examine(StoreChecksMade& checks) {
  std::string wrong = co_await is_reached();
  const bool reached = wrong.empty();
  checks.judge("the body store can be reached", std::move(wrong));
  if (!reached) co_return;
  wrong = co_await writes_and_reads();
  const bool writes = wrong.empty();
  checks.judge("a body is read as it was written, with its metadata", std::move(wrong));
  if (writes) {
    wrong = co_await writes_once();
    checks.judge("a key that exists is not written again", std::move(wrong));
    co_await lists(checks);
  }
  wrong = co_await removes();
  checks.judge("bodies are removed", std::move(wrong));
}

Task<Result<std::string>> BodiesExamination::lacks() {
  Body first = body("the first body");
  const auto written = co_await bodies_.write(key_, std::move(first));
  if (!written) co_return written.error();
  Body second = body("the second body");
  const auto again = co_await bodies_.write(key_, std::move(second));
  [[maybe_unused]] const auto removed = co_await bodies_.remove(key_);
  if (again) co_return std::string(kOverwrites);
  if (again.error().code == ErrorCode::invalid) co_return std::string();
  co_return again.error();
}

Task<std::string> BodiesExamination::is_reached() {
  const auto body = co_await bodies_.read(key_);
  if (!body) co_return to_string(body.error());
  co_return *body ? "there is a body under a fresh key: what answers is no body store" : "";
}

Task<std::string> BodiesExamination::writes_and_reads() {
  Body given = body("the first body");
  const auto written = co_await bodies_.write(key_, given);
  if (!written) co_return to_string(written.error());
  const auto stored = co_await bodies_.read(key_);
  if (!stored) co_return to_string(stored.error());
  if (!*stored)
    co_return "a body that was written just now is not there; use a server that reads what it wrote";
  given.metadata.sha256 = (*stored)->metadata.sha256;
  if (!given.metadata.sha256)
    co_return "its SHA-256 was dropped; use a server that keeps x-amz-meta-* fields";
  if ((*stored)->bytes != given.bytes) co_return "other bytes came back; what stands in between?";
  if (**stored != given) co_return "its metadata was changed; use a server that keeps x-amz-meta-* fields";
  co_return "";
}

Task<std::string> BodiesExamination::writes_once() {
  Body other = body("the second body");
  const auto written = co_await bodies_.write(key_, std::move(other));
  if (!written && written.error().code == ErrorCode::invalid) co_return "";
  if (!written) co_return to_string(written.error());
  co_return kOverwrites;
}

Task<void> BodiesExamination::lists(StoreChecksMade& checks) {
  const std::string what = "a body is found in the list";
  std::optional<std::string> after;
  for (int pages = 0; pages < kMostListed; ++pages) {
    auto page = co_await bodies_.list(after, kListedAtOnce);
    if (!page) {
      checks.failed(what, to_string(page.error()) + "; `facetheory gc` cannot work without");
      co_return;
    }
    for (const BodyEntry& entry : page->entries) {
      if (entry.key != key_) continue;
      checks.ok(what);
      co_return;
    }
    if (!page->next) {
      checks.failed(what, "it is not in the list; `facetheory gc` would not find old bodies");
      co_return;
    }
    after = std::move(page->next);
  }
  checks.warning(what, "it is not among the first " + std::to_string(kMostListed * kListedAtOnce) +
                           " bodies of the list; the others were not looked at");
}

Task<std::string> BodiesExamination::removes() {
  const auto removed = co_await bodies_.remove(key_);
  if (!removed) co_return to_string(removed.error()) + "; the body " + key_ + " may remain";
  const auto body = co_await bodies_.read(key_);
  if (!body) co_return to_string(body.error());
  co_return *body ? "the body " + key_ + " was removed and is still there; remove it" : "";
}

}  // namespace

std::string_view name(CheckResult result) {
  switch (result) {
    case CheckResult::ok:
      return "ok";
    case CheckResult::warning:
      return "warning";
    case CheckResult::failed:
      return "failed";
  }
  return "";
}

Task<std::vector<StoreCheck>> check_table(Table& table, std::string mark, std::int64_t ttl) {
  StoreChecksMade checks("table");
  TableExamination examination(table, std::move(mark), ttl);
  co_await examination.examine(checks);
  co_return checks.take();
}

Task<std::vector<StoreCheck>> check_bodies(BodyStore& bodies, std::string mark) {
  StoreChecksMade checks("bodies");
  BodiesExamination examination(bodies, mark);
  co_await examination.examine(checks);
  co_return checks.take();
}

Task<Result<std::string>> lacks_of_table(Table& table, std::string mark, std::int64_t ttl) {
  TableExamination examination(table, std::move(mark), ttl);
  co_return co_await examination.lacks();
}

Task<Result<std::string>> lacks_of_bodies(BodyStore& bodies, std::string mark) {
  BodiesExamination examination(bodies, mark);
  co_return co_await examination.lacks();
}

}  // namespace facetheory
