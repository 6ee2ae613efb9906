#include "tests/simulation/truth.h"

#include <stdexcept>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "facetheory/table/dynamodb_expression.h"
#include "facetheory/table/evaluate.h"

namespace facetheory::simulation {
namespace {

// A transaction in words, to tell whether a repeat is the same.
std::uint64_t content_of(const std::vector<TransactItem>& items) {
  Trace content(false);
  const auto add = [&content](const Expression& expression) {
    content.mix(expression.condition);
    content.mix(expression.update);
    for (const std::string& aliased : expression.names)
      content.mix(aliased);
    for (const Value& value : expression.values)
      content.mix(to_string(value));
  };
  for (const TransactItem& item : items) {
    content.mix(item.index());
    content.mix(to_string(key_of(item)));
    if (const auto* put = std::get_if<Put>(&item)) content.mix(to_string(put->item.attributes));
    const auto* update = std::get_if<Update>(&item);
    add(render(condition_of(item), update == nullptr ? Changes() : update->changes));
  }
  return content.hash();
}

template <typename T>
Task<void> keep_result(Task<T> task, std::optional<T>& result) {
  result.emplace(co_await std::move(task));
}

}  // namespace

struct Truth::Loop {
  boost::asio::io_context context{1};
};

Truth::Truth(Scheduler& scheduler, Checker& checker, bool remembers_tokens, bool expires_rows,
             std::string prefix)
    : scheduler_(scheduler),
      checker_(checker),
      remembers_tokens_(remembers_tokens),
      expires_rows_(expires_rows),
      prefix_(std::move(prefix)),
      loop_(std::make_unique<Loop>()),
      clock_(scheduler, 0, 0),
      bodies_(clock_) {}

Truth::~Truth() = default;

template <typename T>
T Truth::now(Task<T> task) {
  std::optional<T> result;
  std::exception_ptr thrown;
  boost::asio::co_spawn(loop_->context, keep_result(std::move(task), result),
                        [&thrown](std::exception_ptr error) { thrown = std::move(error); });
  loop_->context.restart();
  loop_->context.poll();
  if (thrown) std::rethrow_exception(thrown);
  if (!result) throw std::logic_error("the table in memory waited for something");
  return *std::move(result);
}

Result<std::optional<Item>> Truth::get(const Key& key) {
  return now(table_.get(key, Consistency::strong));
}

Result<std::optional<Item>> Truth::get_earlier(const Key& key, Millis behind) {
  const auto history = earlier_.find(key);
  if (history == earlier_.end()) return get(key);
  const auto& values = history->second;
  std::size_t candidates = 0;
  while (candidates < values.size() &&
         values[values.size() - 1 - candidates].first >= scheduler_.now() - behind)
    ++candidates;
  const std::size_t back = scheduler_.pick(candidates + 1);
  if (back == 0) return get(key);
  const std::optional<Attributes>& value = values[values.size() - back].second;
  if (!value) return std::optional<Item>();
  return std::optional(Item{key, *value});
}

std::vector<std::optional<Attributes>> Truth::images(const std::vector<Key>& keys) {
  std::vector<std::optional<Attributes>> images;
  for (const Key& key : keys) {
    auto item = now(table_.get(key, Consistency::strong));
    images.push_back(*item ? std::optional((*item)->attributes) : std::nullopt);
  }
  return images;
}

void Truth::tell(const Sender& sender, const std::vector<Key>& keys,
                 std::vector<std::optional<Attributes>> before) {
  Commit commit{sender.operation, sender.built_at, sender.own_clock, {}};
  std::vector<std::optional<Attributes>> after = images(keys);
  Trace& trace = scheduler_.trace();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    trace.mix(keys[i].sk);
    if (after[i]) {
      for (const Attribute& attribute : *after[i]) {
        if (const auto* text = attribute.value.as<std::string>()) trace.mix(*text);
        if (const auto* number = attribute.value.as<Number>()) trace.mix(number->text());
      }
    }
    if (before[i] != after[i]) {
      earlier_[keys[i]].emplace_back(scheduler_.now(), before[i]);
      if (trace.in_words()) {
        trace.say("      " + to_string(keys[i]) + "\n        was " +
                  (before[i] ? to_string(*before[i]) : "nothing") + "\n        is  " +
                  (after[i] ? to_string(*after[i]) : "nothing"));
      }
    }
    commit.changes.push_back(Change{keys[i], std::move(before[i]), std::move(after[i])});
  }
  checker_.committed(commit, scheduler_.now());
  if (witness_ != nullptr) witness_->committed(commit, scheduler_.now());
}

Result<WriteOutcome> Truth::write(const Sender& sender, const Write& write) {
  const std::vector<Key> keys = {key_of(as_transact_item(write))};
  auto before = images(keys);
  auto outcome = now(table_.write(write, Durability::machine));
  if (outcome && std::holds_alternative<Written>(*outcome)) tell(sender, keys, std::move(before));
  return outcome;
}

Sender Truth::first_asked(Sender sender, const std::vector<TransactItem>& items,
                          const std::string& client_token) {
  const std::uint64_t content = content_of(items);
  if (!client_token.empty() && contents_.emplace(client_token, content).first->second != content) {
    checker_.violate("transaction: a repeat under the client token " + client_token + " has other items");
  }
  const Asked first{sender.built_at, sender.own_clock};
  const Asked& asked = asked_.emplace(std::pair(sender.operation, content), first).first->second;
  sender.built_at = asked.built_at;
  sender.own_clock = asked.own_clock;
  return sender;
}

Result<TransactOutcome> Truth::transact(const Sender& sender, const std::vector<TransactItem>& items,
                                        const std::string& client_token) {
  if (remembers_tokens_ && committed_.contains(client_token)) return TransactOutcome(Committed{});
  std::vector<Key> keys;
  for (const TransactItem& item : items)
    keys.push_back(key_of(item));
  auto before = images(keys);
  auto outcome = now(table_.transact(items, client_token));
  if (outcome && std::holds_alternative<Committed>(*outcome)) {
    committed_.insert(client_token);
    tell(sender, keys, std::move(before));
  }
  return outcome;
}

Result<QueryPage> Truth::query(const Query& query) {
  return now(table_.query(query));
}

Result<ScanPage> Truth::scan(const Scan& scan) {
  return now(table_.scan(scan));
}

Result<TableDescription> Truth::describe() {
  auto description = now(table_.describe());
  if (description) description->expires_rows = expires_rows_;
  return description;
}

Result<void> Truth::write_body(const Sender& sender, const std::string& key, const Body& body) {
  auto written = now(bodies_.write(key, body));
  if (!written) return written;
  checker_.body_written(reference(key), sender.foreign);
  if (witness_ != nullptr) witness_->body_written(reference(key), body.bytes, sender.foreign);
  return written;
}

Result<std::optional<Body>> Truth::read_body(const std::string& key) {
  const bool complete = !prefix_.empty() && key.starts_with(prefix_);
  return now(bodies_.read(complete ? key.substr(prefix_.size()) : key));
}

Result<void> Truth::remove_body(const Sender&, const std::string& key) {
  auto removed = now(bodies_.remove(key));
  if (!removed) return removed;
  checker_.body_removed(reference(key), scheduler_.now());
  if (witness_ != nullptr) witness_->body_removed(reference(key));
  return removed;
}

Result<BodyPage> Truth::list_bodies(const std::optional<std::string>& after, std::size_t limit) {
  return now(bodies_.list(after, limit));
}

}  // namespace facetheory::simulation
