// A writer in another language, as TableTheory's are: acquires with a PutItem, publishes with one transaction that
// replaces META as a whole, releases by a conditional delete or by an update. It knows neither our attributes nor
// our backoff, pins and versions.
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  // A regeneration under way. Each of its steps either leads to the next one or ends it with a report.
  struct Render {
    Page page;
    std::string token = {};
    std::int64_t length = 0;  // Of the lease, in seconds.
    std::int64_t began = 0;
    std::string request_sk = {};  // Empty: it has no request id.
  };
  using Step = Task<std::optional<Report>>;

  Task<Report> regenerate_once(Page page);
  Step look(Render& render);
  Step start_request(Render& render);
  Step take_lease(Render& render);
  Step extend_lease(Render& render);
  Task<Report> publish(Render& render);
  std::vector<TransactItem> publication(const Render& render, const std::string& s3_key);
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
  Render render{.page = std::move(page)};
  auto ended = co_await look(render);
  if (ended) co_return *std::move(ended);
  if (me_.happens(25)) ended = co_await start_request(render);
  if (ended) co_return *std::move(ended);
  ended = co_await take_lease(render);
  if (ended) co_return *std::move(ended);

  co_await nap(me_.happens(60) ? 1500 : render.length * 1500);
  if (me_.happens(30)) ended = co_await extend_lease(render);
  if (ended) co_return *std::move(ended);
  if (me_.happens(12)) {
    fleet_.checker.render_failed(render.token);
    co_return co_await give_back(render.page.pk, render.token);
  }
  co_return co_await publish(render);
}

// A page that is fresh is mostly left as it is.
Foreigner::Step Foreigner::look(Render& render) {
  Key key{render.page.pk, "META"};
  auto meta =
      co_await me_.table->get(std::move(key), me_.happens(50) ? Consistency::strong : Consistency::eventual);
  if (!meta) co_return failed(meta.error());
  if (!*meta || !me_.happens(80)) co_return std::nullopt;
  const Value* generated_at = (*meta)->attributes.find("generated_at");
  const Value* window = (*meta)->attributes.find("revalidate_seconds");
  const std::int64_t ends =
      generated_at->as<Number>()->to_int64().value_or(0) + window->as<Number>()->to_int64().value_or(0);
  if (now() < ends) co_return Report{.kind = Report::Kind::done};
  co_return std::nullopt;
}

Foreigner::Step Foreigner::start_request(Render& render) {
  const std::string hash = request_hash({{"policy", "p1"}, {"variant", "0"}});
  render.request_sk = "REQ#id-" + std::to_string(me_.pick(kRequestIds));
  Write start = Put{Item{{render.page.pk, render.request_sk},
                         Attributes{{"request_hash", hash}, {"status", "STARTED"}, {"ttl", now() + 150}}},
                    attr("pk").not_exists()};
  auto started = co_await me_.table->write(std::move(start), Durability::machine);
  if (!started) co_return failed(started.error());
  if (std::holds_alternative<ConditionFailed>(*started)) co_return Report{.kind = Report::Kind::in_progress};
  co_return std::nullopt;
}

Foreigner::Step Foreigner::take_lease(Render& render) {
  render.token = uuid_v4(me_.tokens);
  render.began = now();
  render.length = 2 + static_cast<std::int64_t>(me_.pick(8));
  const std::int64_t ends = render.began + render.length;
  Write take =
      Put{Item{{render.page.pk, "LOCK"},
               Attributes{{"lease_token", render.token}, {"lease_expires_at", ends}, {"ttl", ends + 3600}}},
          attr("pk").not_exists() || attr("lease_expires_at") <= render.began};
  auto taken = co_await me_.table->write(std::move(take), Durability::process);
  if (!taken) co_return failed(taken.error());
  if (std::holds_alternative<ConditionFailed>(*taken)) co_return Report{.kind = Report::Kind::held};
  co_return std::nullopt;
}

Foreigner::Step Foreigner::extend_lease(Render& render) {
  const std::int64_t ends = now() + render.length;
  Write extend = Update{{render.page.pk, "LOCK"},
                        Changes().set("lease_expires_at", ends).set("ttl", ends + 3600),
                        attr("lease_token") == render.token && attr("lease_expires_at") > now()};
  auto extended = co_await me_.table->write(std::move(extend), Durability::process);
  if (!extended) co_return failed(extended.error());
  if (std::holds_alternative<ConditionFailed>(*extended)) co_return Report{.kind = Report::Kind::lost};
  co_await nap(1500);
  co_return std::nullopt;
}

Task<Report> Foreigner::publish(Render& render) {
  const std::string key = body_folder(render.page) + "/" + std::to_string(me_.clock.own_now()) + "-" +
                          uuid_v4(me_.tokens) + ".html";
  Body body{"<p>foreign " + std::to_string(++fleet_.renders), {}};
  auto stored = co_await me_.bodies->write(key, std::move(body));
  if (!stored) co_return failed(stored.error());

  const std::string s3_key = me_.bodies->reference(key);
  const std::vector<TransactItem> items = publication(render, s3_key);
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

std::vector<TransactItem> Foreigner::publication(const Render& render, const std::string& s3_key) {
  const std::string& pk = render.page.pk;
  const std::int64_t generated_at = dates_by_publishing_ ? now() : render.began;
  const std::int64_t window = 1 + static_cast<std::int64_t>(me_.pick(10));
  Attributes row{{"s3_key", s3_key},
                 {"generated_at", generated_at},
                 {"revalidate_seconds", window},
                 {"etag", "\"foreign\""}};
  if (me_.happens(50)) row.set("ttl", generated_at + window + 60);
  std::vector<TransactItem> items;
  items.emplace_back(Put{Item{{pk, "META"}, std::move(row)}, {}});
  items.emplace_back(
      Delete{{pk, "LOCK"}, attr("lease_token") == render.token && attr("lease_expires_at") > now()});
  if (!render.request_sk.empty()) {
    items.emplace_back(Update{{pk, render.request_sk},
                              Changes().set("status", "COMPLETED").set("result_s3_key", s3_key),
                              attr("status") == "STARTED" && attr("owner_token").not_exists()});
  }
  return items;
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
