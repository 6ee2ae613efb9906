// A writer in another language, as TableTheory's are: acquires with a PutItem, publishes with one transaction that
// replaces META as a whole, releases by a conditional delete or by an update. It knows neither our attributes nor
// our backoff, pins and versions.
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/requests.h"

#include "tests/simulation/fleet.h"

namespace facetheory::simulation {
namespace {

class Foreigner {
 public:
  Foreigner(Fleet& fleet, Party& me) : fleet_(fleet), me_(me), dates_by_publishing_(me.happens(50)) {}

  Task<void> run();

 private:
  Task<Report> regenerate_once(Page page);
  Task<Report> give_back(std::string pk, std::string token);
  Task<void> nap(Millis longest) {
    return me_.clock.sleep_for(std::chrono::milliseconds(me_.pick(static_cast<std::uint64_t>(longest) + 1)));
  }
  std::int64_t now() const { return me_.clock.own_now() / 1000; }

  static Report failed(const Error& error) {
    return Report{.kind = error.code == ErrorCode::unavailable ? Report::Kind::unavailable
                                                               : Report::Kind::ambiguous};
  }

  Fleet& fleet_;
  Party& me_;
  const bool dates_by_publishing_;  // generated_at: when it was published, not when its render began.
};

Task<Report> Foreigner::give_back(std::string pk, std::string token) {
  Write write = Delete{{pk, "LOCK"}, attr("lease_token") == token};
  if (me_.happens(50))
    write = Update{{pk, "LOCK"}, Changes().remove("lease_expires_at"), attr("lease_token") == token};
  auto released = co_await me_.table->write(std::move(write), Durability::process);
  co_return released ? Report{.kind = Report::Kind::failed} : failed(released.error());
}

Task<Report> Foreigner::regenerate_once(Page page) {
  const std::string& pk = page.pk;
  Key meta_key{pk, "META"};
  auto meta = co_await me_.table->get(std::move(meta_key),
                                      me_.happens(50) ? Consistency::strong : Consistency::eventual);
  if (!meta) co_return failed(meta.error());
  if (*meta && me_.happens(80)) {
    const Value* generated_at = (*meta)->attributes.find("generated_at");
    const Value* window = (*meta)->attributes.find("revalidate_seconds");
    const std::int64_t ends =
        generated_at->as<Number>()->to_int64().value_or(0) + window->as<Number>()->to_int64().value_or(0);
    if (now() < ends) co_return Report{.kind = Report::Kind::done};
  }

  std::string request_sk_used;
  const std::string hash = request_hash({{"policy", "p1"}, {"variant", "0"}});
  if (me_.happens(25)) {
    request_sk_used = "REQ#id-" + std::to_string(me_.pick(kRequestIds));
    Write start = Put{Item{{pk, request_sk_used},
                           Attributes{{"request_hash", hash}, {"status", "STARTED"}, {"ttl", now() + 150}}},
                      attr("pk").not_exists()};
    auto started = co_await me_.table->write(std::move(start), Durability::machine);
    if (!started) co_return failed(started.error());
    if (std::holds_alternative<ConditionFailed>(*started))
      co_return Report{.kind = Report::Kind::in_progress};
  }

  const std::string token = uuid_v4(me_.tokens);
  const std::int64_t began = now();
  const std::int64_t length = 2 + static_cast<std::int64_t>(me_.pick(8));
  Write take = Put{
      Item{{pk, "LOCK"},
           Attributes{
               {"lease_token", token}, {"lease_expires_at", began + length}, {"ttl", began + length + 3600}}},
      attr("pk").not_exists() || attr("lease_expires_at") <= began};
  auto taken = co_await me_.table->write(std::move(take), Durability::process);
  if (!taken) co_return failed(taken.error());
  if (std::holds_alternative<ConditionFailed>(*taken)) co_return Report{.kind = Report::Kind::held};

  co_await nap(me_.happens(60) ? 1500 : length * 1500);
  if (me_.happens(30)) {
    Write extend = Update{{pk, "LOCK"},
                          Changes().set("lease_expires_at", now() + length).set("ttl", now() + length + 3600),
                          attr("lease_token") == token && attr("lease_expires_at") > now()};
    auto extended = co_await me_.table->write(std::move(extend), Durability::process);
    if (!extended) co_return failed(extended.error());
    if (std::holds_alternative<ConditionFailed>(*extended)) co_return Report{.kind = Report::Kind::lost};
    co_await nap(1500);
  }
  if (me_.happens(12)) {
    fleet_.checker.render_failed(token);
    co_return co_await give_back(pk, token);
  }

  const std::string key =
      body_folder(page) + "/" + std::to_string(me_.clock.own_now()) + "-" + uuid_v4(me_.tokens) + ".html";
  Body body{"<p>foreign " + std::to_string(++fleet_.renders), {}};
  auto stored = co_await me_.bodies->write(key, std::move(body));
  if (!stored) co_return failed(stored.error());

  const std::int64_t generated_at = dates_by_publishing_ ? now() : began;
  const std::int64_t window = 1 + static_cast<std::int64_t>(me_.pick(10));
  const std::string s3_key = me_.bodies->reference(key);
  Attributes row{{"s3_key", s3_key},
                 {"generated_at", generated_at},
                 {"revalidate_seconds", window},
                 {"etag", "\"foreign\""}};
  if (me_.happens(50)) row.set("ttl", generated_at + window + 60);
  std::vector<TransactItem> items;
  items.emplace_back(Put{Item{{pk, "META"}, std::move(row)}, {}});
  items.emplace_back(Delete{{pk, "LOCK"}, attr("lease_token") == token && attr("lease_expires_at") > now()});
  if (!request_sk_used.empty()) {
    items.emplace_back(Update{{pk, request_sk_used},
                              Changes().set("status", "COMPLETED").set("result_s3_key", s3_key),
                              attr("status") == "STARTED" && attr("owner_token").not_exists()});
  }
  const std::string client_token = uuid_v4(me_.tokens);
  for (int attempt = 0;; ++attempt) {
    auto published = co_await me_.table->transact(items, client_token);
    if (published) {
      const bool committed = std::holds_alternative<Committed>(*published);
      co_return committed ? Report{.kind = Report::Kind::published, .s3_key = s3_key}
                          : Report{.kind = Report::Kind::lost};
    }
    if (attempt == 1) co_return failed(published.error());
  }
}

Task<void> Foreigner::run() {
  while (!fleet_.stopping) {
    co_await nap(3000);
    if (fleet_.stopping) break;
    Page page = fleet_.pages[me_.pick(fleet_.pages.size())];
    fleet_.begin(me_, Operation{.intent = Intent::regenerate, .pk = page.pk});
    const Report report = co_await regenerate_once(std::move(page));
    fleet_.end(me_, report);
  }
}

}  // namespace

Task<void> work_as_foreigner(Fleet& fleet, Party& me) {
  Foreigner foreigner(fleet, me);
  co_await foreigner.run();
}

}  // namespace facetheory::simulation
