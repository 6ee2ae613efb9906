#include "tests/simulation/network.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/table/evaluate.h"

namespace facetheory::simulation {

void Network::say(const Party& party, const std::string& what) {
  Trace& trace = scheduler_.trace();
  trace.mix(static_cast<std::uint64_t>(party.id));
  if (!trace.in_words()) return;
  const Millis now = scheduler_.now() - 1'700'000'000'000;
  trace.say(std::to_string(now) + " ms: party " + std::to_string(party.id) + " (own clock " +
            std::to_string(party.clock.own_now() / 1000) + "), operation " + std::to_string(party.operation) +
            ": " + what);
}

Network::Journey Network::plan(Kind kind) {
  const auto travel = [this] {
    return scheduler_.happens(weather_.slow) ? scheduler_.span(1500) : scheduler_.span(25);
  };
  Journey journey;
  journey.arrives = scheduler_.now() + travel();
  const bool of_bodies = kind == Kind::body_read || kind == Kind::body_write;
  const bool down = scheduler_.now() < (of_bodies ? bodies_down_until_ : table_down_until_);
  if (down || scheduler_.happens(weather_.unavailable)) {
    journey.fate = Journey::Fate::unavailable;
    journey.arrives = kNever;
    journey.answered = scheduler_.now() + travel();
    return journey;
  }
  if (kind == Kind::read || kind == Kind::body_read) return journey;
  const Millis timeout = scheduler_.now() + 200 + scheduler_.span(1500);
  if (scheduler_.happens(weather_.lost_request)) {
    journey = {Journey::Fate::ambiguous, kNever, timeout, kNever};
  } else if (scheduler_.happens(weather_.lost_answer)) {
    journey = {Journey::Fate::ambiguous, journey.arrives, timeout, kNever};
  } else if (scheduler_.happens(weather_.delayed)) {
    const Millis longest = scheduler_.happens(500) ? 4000 : weather_.longest_delay;
    journey = {Journey::Fate::ambiguous, scheduler_.now() + scheduler_.span(longest), timeout, kNever};
  }
  if (kind == Kind::transaction && journey.arrives != kNever && scheduler_.happens(weather_.repeated)) {
    journey.again = journey.arrives + scheduler_.span(weather_.longest_delay / 4);
  }
  return journey;
}

template <typename T>
Task<Result<T>> Network::call(Party& party, Sender sender, Kind kind, std::string what,
                              std::function<Result<T>(const Sender&)> carry_out) {
  const Journey journey = plan(kind);
  const StepId caller = scheduler_.new_step();
  const auto answer = std::make_shared<std::optional<Result<T>>>();
  const bool answered = journey.fate == Journey::Fate::answered;
  say(party, "asks " + what +
                 (answered                                     ? ""
                  : journey.fate == Journey::Fate::unavailable ? " (unavailable)"
                  : journey.arrives == kNever                  ? " (request lost)"
                                                               : " (answer lost)"));

  if (journey.arrives != kNever) {
    const auto arrives = [this, &party, sender, caller, answer, answered, what, carry_out](bool again) {
      say(party, (again ? "(repeated) operation " : "operation ") + std::to_string(sender.operation) + "'s " +
                     what + " arrives");
      Result<T> result = carry_out(sender);
      if (again || !answered) return;
      answer->emplace(std::move(result));
      scheduler_.wake(caller, scheduler_.now() + scheduler_.span(25));
    };
    // The repeat comes after what it repeats: a store that does not recognise it never changes their order.
    scheduler_.arrive(party.id, journey.arrives, [this, arrives, sender, again = journey.again] {
      arrives(false);
      if (again != kNever) scheduler_.arrive(sender.party, again, [arrives] { arrives(true); });
    });
  }
  if (!answered) {
    ++party.failures;
    const bool lost = journey.fate == Journey::Fate::ambiguous;
    answer->emplace(Error{lost ? ErrorCode::ambiguous : ErrorCode::unavailable, "by the weather"});
    if (lost) checker_.answer_lost(party.operation);
  }
  co_await scheduler_.park(caller, party.id, journey.answered);
  co_return **std::move(answer);
}

class SimulatedTable final : public Table {
 public:
  SimulatedTable(Network& network, Party& party) : network_(network), truth_(network.truth_), party_(party) {}

  Task<Result<void>> create() override { co_return Result<void>(); }
  Task<Result<TableDescription>> describe() override {
    std::function<Result<TableDescription>(const Sender&)> carry_out = [this](const Sender&) {
      return truth_.describe();
    };
    return network_.call<TableDescription>(party_, network_.sender_of(party_), Network::Kind::read,
                                           "describe", std::move(carry_out));
  }

 private:
  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override {
    const bool stale =
        consistency == Consistency::eventual && network_.scheduler_.happens(network_.weather_.stale);
    std::string what = "get " + key.sk + (stale ? " (stale)" : "");
    std::function<Result<std::optional<Item>>(const Sender&)> carry_out = [this, key = std::move(key),
                                                                           stale](const Sender&) {
      return stale ? truth_.get_earlier(key, network_.weather_.behind) : truth_.get(key);
    };
    return network_.call<std::optional<Item>>(party_, network_.sender_of(party_), Network::Kind::read,
                                              std::move(what), std::move(carry_out));
  }

  // Each item may be of another age, as DynamoDB's are.
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override {
    using Items = std::vector<std::optional<Item>>;
    std::vector<bool> stale;
    std::string what = "get all";
    for (const Key& key : keys) {
      stale.push_back(consistency == Consistency::eventual &&
                      network_.scheduler_.happens(network_.weather_.stale));
      what += " " + key.sk + (stale.back() ? " (stale)" : "");
    }
    std::function<Result<Items>(const Sender&)> carry_out =
        [this, keys = std::move(keys), stale = std::move(stale)](const Sender&) -> Result<Items> {
      Items items;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        auto item = stale[i] ? truth_.get_earlier(keys[i], network_.weather_.behind) : truth_.get(keys[i]);
        if (!item) return item.error();
        items.push_back(*std::move(item));
      }
      return items;
    };
    return network_.call<Items>(party_, network_.sender_of(party_), Network::Kind::read, std::move(what),
                                std::move(carry_out));
  }

  Task<Result<WriteOutcome>> do_write(Write write, Durability) override {
    const std::vector<TransactItem> items = {as_transact_item(write)};
    const Sender sender = truth_.first_asked(network_.sender_of(party_), items, {});
    std::string what = "write " + key_of(items.front()).sk;
    std::function<Result<WriteOutcome>(const Sender&)> carry_out =
        [this, write = std::move(write)](const Sender& from) { return truth_.write(from, write); };
    return network_.call<WriteOutcome>(party_, sender, Network::Kind::write, std::move(what),
                                       std::move(carry_out));
  }

  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override {
    const Sender sender = truth_.first_asked(network_.sender_of(party_), items, client_token);
    std::string what = "transact";
    for (const TransactItem& item : items)
      what += " " + key_of(item).sk;
    std::function<Result<TransactOutcome>(const Sender&)> carry_out =
        [this, items = std::move(items), token = std::move(client_token)](const Sender& from) {
          return truth_.transact(from, items, token);
        };
    return network_.call<TransactOutcome>(party_, sender, Network::Kind::transaction, std::move(what),
                                          std::move(carry_out));
  }

  Task<Result<QueryPage>> do_query(Query query) override {
    std::function<Result<QueryPage>(const Sender&)> carry_out =
        [this, query = std::move(query)](const Sender&) { return truth_.query(query); };
    return network_.call<QueryPage>(party_, network_.sender_of(party_), Network::Kind::read, "query",
                                    std::move(carry_out));
  }

  Task<Result<ScanPage>> do_scan(Scan scan) override {
    std::function<Result<ScanPage>(const Sender&)> carry_out = [this, scan = std::move(scan)](const Sender&) {
      return truth_.scan(scan);
    };
    return network_.call<ScanPage>(party_, network_.sender_of(party_), Network::Kind::read, "scan",
                                   std::move(carry_out));
  }

  Network& network_;
  Truth& truth_;
  Party& party_;
};

class SimulatedBodies final : public BodyStore {
 public:
  SimulatedBodies(Network& network, Party& party)
      : network_(network), truth_(network.truth_), party_(party) {}

  std::string reference(std::string_view key) const override { return truth_.reference(key); }

 private:
  struct Nothing {};

  Task<Result<void>> do_write(std::string key, Body body) override {
    std::string what = "write body " + key;
    std::function<Result<Nothing>(const Sender&)> carry_out = [this, key = std::move(key),
                                                               body = std::move(body)](const Sender& from) {
      return as_nothing(truth_.write_body(from, key, body));
    };
    return done(network_.call<Nothing>(party_, network_.sender_of(party_), Network::Kind::body_write,
                                       std::move(what), std::move(carry_out)));
  }

  Task<Result<std::optional<Body>>> do_read(std::string key) override {
    std::string what = "read body " + key;
    std::function<Result<std::optional<Body>>(const Sender&)> carry_out =
        [this, key = std::move(key)](const Sender&) { return truth_.read_body(key); };
    return network_.call<std::optional<Body>>(party_, network_.sender_of(party_), Network::Kind::body_read,
                                              std::move(what), std::move(carry_out));
  }

  Task<Result<void>> do_remove(std::string key) override {
    std::string what = "remove body " + key;
    std::function<Result<Nothing>(const Sender&)> carry_out = [this,
                                                               key = std::move(key)](const Sender& from) {
      return as_nothing(truth_.remove_body(from, key));
    };
    return done(network_.call<Nothing>(party_, network_.sender_of(party_), Network::Kind::body_write,
                                       std::move(what), std::move(carry_out)));
  }

  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override {
    std::function<Result<BodyPage>(const Sender&)> carry_out =
        [this, after = std::move(after), limit](const Sender&) { return truth_.list_bodies(after, limit); };
    return network_.call<BodyPage>(party_, network_.sender_of(party_), Network::Kind::body_read,
                                   "list bodies", std::move(carry_out));
  }

  static Result<Nothing> as_nothing(const Result<void>& result) {
    if (!result) return result.error();
    return Nothing{};
  }
  static Task<Result<void>> done(Task<Result<Nothing>> task) {
    auto result = co_await std::move(task);
    if (!result) co_return result.error();
    co_return Result<void>();
  }

  Network& network_;
  Truth& truth_;
  Party& party_;
};

std::unique_ptr<Table> Network::table_of(Party& party) {
  return std::make_unique<SimulatedTable>(*this, party);
}

std::unique_ptr<BodyStore> Network::bodies_of(Party& party) {
  return std::make_unique<SimulatedBodies>(*this, party);
}

}  // namespace facetheory::simulation
