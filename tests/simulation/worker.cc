#include <map>
#include <stdexcept>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/isr/evict.h"
#include "facetheory/isr/history.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/partners.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/regenerate.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/isr/requests.h"
#include "facetheory/isr/sweep.h"
#include "facetheory/isr/verdict.h"

#include "tests/simulation/fleet.h"

namespace facetheory::simulation {

std::uint64_t Fleet::begin(Party& party, Operation operation) {
  operation.party = party.id;
  operation.foreign = party.foreign;
  const std::string what = std::string(name(operation.intent)) + " " + operation.pk + " " +
                           operation.request_id + " " + operation.inputs;
  party.operation = checker.begin(std::move(operation), party.clock.own_now());
  scheduler.trace().mix(what);
  if (scheduler.trace().in_words()) {
    scheduler.trace().say("-- party " + std::to_string(party.id) + " begins operation " +
                          std::to_string(party.operation) + ": " + what);
  }
  return party.operation;
}

void Fleet::end(Party& party, const Report& report) {
  scheduler.trace().mix(name(report.kind));
  if (scheduler.trace().in_words()) {
    scheduler.trace().say("-- party " + std::to_string(party.id) + " ends operation " +
                          std::to_string(party.operation) + ": " + std::string(name(report.kind)) + " " +
                          report.s3_key + report.detail);
  }
  checker.end(party.operation, report, party.clock.own_now());
  party.operation = 0;
}

namespace {

using Kind = Report::Kind;

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

Report report_of(const Error& error) {
  Report report;
  report.kind = error.code == ErrorCode::unavailable ? Kind::unavailable
                : error.code == ErrorCode::ambiguous ? Kind::ambiguous
                                                     : Kind::broken;
  report.detail = to_string(error);
  return report;
}

// Done if the outcome is that one; there was nothing to be done otherwise.
template <typename Wanted, typename Outcome>
Report done_if(const Result<Outcome>& outcome) {
  if (!outcome) return report_of(outcome.error());
  return {.kind = std::holds_alternative<Wanted>(*outcome) ? Kind::done : Kind::nothing};
}

std::chrono::seconds seconds_between(Party& me, int shortest, int longest) {
  return std::chrono::seconds(shortest +
                              static_cast<int>(me.pick(static_cast<std::uint64_t>(longest - shortest + 1))));
}

Task<void> sleep_up_to(Party& me, Millis longest) {
  return me.clock.sleep_for(std::chrono::milliseconds(me.pick(static_cast<std::uint64_t>(longest) + 1)));
}

std::string inputs_in_words(int variant) {
  return "variant " + std::to_string(variant);
}
std::map<std::string, std::string> inputs_of(int variant) {
  return {{"policy", "p1"}, {"variant", std::to_string(variant)}};
}

class Worker {
 public:
  Worker(Fleet& fleet, Party& me)
      : fleet_(fleet),
        me_(me),
        isr_{*me.table, *me.bodies, me.clock, me.tokens, fleet.settings, {}, &released_} {}

  Task<void> run();
  Task<void> recover();

 private:
  struct Target {
    Page page;
    int history = 0;
  };

  Task<void> act();
  Task<void> regenerate_page(Target target, std::optional<std::string> id, int variant, bool certainly);
  Task<Result<Rendered>> render(RenderContext context);
  Task<void> lease_steps(Target target);
  // False: the lease is lost, and nothing more is tried with it.
  Task<bool> keep_lease(Lease& lease, std::string pk, Millis length);
  Task<void> publish_once(Lease lease, Target target);
  Task<void> request_steps(Page page);
  Task<void> invalidate_page(Page page);
  Task<void> purge_page(Page page);
  Task<void> mark(Page page);
  Task<void> roll_back(Page page);
  Task<void> pin_page(Page page);
  Task<void> unpin_page(Page page);
  Task<void> read(Page page);
  Task<void> sweep_all(bool dry);
  Task<void> remove_what_was_released();
  Task<void> evict_a_page();

  Target any_page();
  Rendered rendered(const Page& page);
  PublishOptions options_for(const Target& target);
  void begin(Intent intent, const std::string& pk) {
    fleet_.begin(me_, Operation{.intent = intent, .pk = pk});
  }

  Fleet& fleet_;
  Party& me_;
  ReleasedBodies released_;
  const Isr isr_;
  bool healthy_ = false;  // Its renders succeed.
};

Worker::Target Worker::any_page() {
  const std::size_t i = me_.pick(fleet_.pages.size());
  const int history = me_.happens(85) ? fleet_.histories[i] : static_cast<int>(me_.pick(4));
  return {fleet_.pages[i], history};
}

Rendered Worker::rendered(const Page& page) {
  Rendered rendered;
  rendered.body.bytes = "<p>" + page.cache_key;
  // Sometimes the bytes are those of the page before.
  if (me_.happens(65)) rendered.body.bytes += " " + std::to_string(++fleet_.renders);
  rendered.body.metadata.content_type = "text/html";
  rendered.revalidate = seconds_between(me_, 1, me_.happens(50) ? 5 : 20);
  if (me_.happens(60)) rendered.tags.emplace_back("red");
  if (me_.happens(30)) rendered.tags.emplace_back("blue");
  return rendered;
}

PublishOptions Worker::options_for(const Target& target) {
  PublishOptions options;
  options.history = target.history;
  if (me_.happens(40)) options.ttl = seconds_between(me_, 60, 180);
  options.monotonic = me_.happens(10);
  return options;
}

Task<Result<Rendered>> Worker::render(RenderContext context) {
  fleet_.checker.render_began(context.lease.token);
  const Millis lease = std::chrono::milliseconds(context.lease.length).count();
  const bool quick = healthy_ || me_.happens(50);
  co_await sleep_up_to(me_, quick ? 400 : me_.happens(60) ? lease + lease / 2 : 3 * lease);
  const std::uint64_t luck = healthy_ ? 99 : me_.pick(100);
  if (luck < 17) fleet_.checker.render_failed(context.lease.token);
  if (luck < 12) co_return Error{ErrorCode::unavailable, "the origin is down"};
  if (luck < 15) throw std::runtime_error("the renderer broke");
  if (luck < 17) throw boost::system::system_error(boost::asio::error::operation_aborted);
  Rendered page = rendered(context.page);
  if (luck < 19) page.as = RenderedAs::failed;
  if (luck >= 19 && luck < 25) page.as = RenderedAs::transient;
  if (page.as == RenderedAs::failed) fleet_.checker.render_failed(context.lease.token);
  if (page.as == RenderedAs::transient) fleet_.checker.render_is_private(context.lease.token);
  co_return page;
}

Task<void> Worker::regenerate_page(Target target, std::optional<std::string> id, int variant,
                                   bool certainly) {
  RegenerateOptions options;
  options.lease = seconds_between(me_, 2, static_cast<int>(kLongestLease.count()));
  options.publish = options_for(target);
  options.owner = "party " + std::to_string(me_.id);
  options.even_if_fresh = certainly || me_.happens(25);
  if (!certainly && me_.happens(30)) options.wait = seconds_between(me_, 1, 6);
  if (certainly) options.publish.monotonic = false;
  options.fail_in_backoff = !certainly && me_.happens(30);
  if (me_.happens(50)) options.tags = {"blue", "red"};
  Operation operation{.intent = Intent::regenerate, .pk = target.page.pk, .history = target.history};
  if (id) {
    options.request_id = id;
    options.inputs = inputs_of(variant);
    operation.request_id = *id;
    operation.inputs = inputs_in_words(variant);
  }
  fleet_.begin(me_, std::move(operation));
  Renderer renderer = [this](RenderContext context) { return render(std::move(context)); };
  auto outcome = co_await regenerate(isr_, target.page, std::move(renderer), std::move(options));
  Report report;
  if (!outcome) {
    report = report_of(outcome.error());
  } else {
    report = std::visit(
        Overloaded{
            [](const AlreadyFresh&) { return Report{.kind = Kind::done}; },
            [](const Regenerated& done) {
              return Report{.kind = Kind::published, .s3_key = done.published.meta.s3_key};
            },
            [](const Replayed& done) { return Report{.kind = Kind::replayed, .s3_key = done.result_s3_key}; },
            [](const LeaseHeld&) { return Report{.kind = Kind::held}; },
            [](const RequestInProgress&) { return Report{.kind = Kind::in_progress}; },
            [](const RequestMismatch&) { return Report{.kind = Kind::mismatch}; },
            [](const RequestFailed&) { return Report{.kind = Kind::refused}; },
            [](const RenderFailed&) { return Report{.kind = Kind::failed}; },
            [](const NotStored& done) {
              return Report{.kind = done.lease_lost ? Kind::lost : Kind::not_stored};
            },
            [](const CalledStale&) { return Report{.kind = Kind::not_stored}; },
            [](const NoTurn&) { return Report{.kind = Kind::refused}; },
            [](const LeaseLost&) { return Report{.kind = Kind::lost}; },
            [](const PublishRefused& refused) {
              return Report{.kind = Kind::refused, .detail = std::string(name(refused.reason))};
            },
        },
        *outcome);
  }
  fleet_.end(me_, report);
}

Task<void> Worker::lease_steps(Target target) {
  const std::chrono::seconds length = seconds_between(me_, 2, static_cast<int>(kLongestLease.count()));
  begin(Intent::acquire, target.page.pk);
  auto acquired = co_await acquire(isr_, target.page, length, "steps");
  if (!acquired) {
    fleet_.end(me_, report_of(acquired.error()));
    co_return;
  }
  if (std::holds_alternative<LeaseHeld>(*acquired)) {
    fleet_.end(me_, Report{.kind = Kind::held});
    co_return;
  }
  Lease lease = std::get<Lease>(*std::move(acquired));
  fleet_.end(me_, Report{.kind = Kind::acquired, .token = lease.token});

  const Millis millis = std::chrono::milliseconds(length).count();
  if (!co_await keep_lease(lease, target.page.pk, millis)) co_return;
  co_await sleep_up_to(me_, millis);

  const std::uint64_t choice = me_.pick(100);
  if (choice < 70) {
    co_await publish_once(std::move(lease), std::move(target));
  } else if (choice < 80) {
    begin(Intent::release, target.page.pk);
    auto released = co_await release(isr_, std::move(lease));
    fleet_.end(me_, released ? Report{.kind = Kind::done} : report_of(released.error()));
  } else if (choice < 90) {
    fleet_.checker.render_failed(lease.token);
    begin(Intent::back_off, target.page.pk);
    auto backed_off = co_await back_off(isr_, std::move(lease), "no luck");
    fleet_.end(me_, backed_off ? Report{.kind = Kind::done} : report_of(backed_off.error()));
  }
}

Task<bool> Worker::keep_lease(Lease& lease, std::string pk, Millis length) {
  const std::uint64_t refreshes = me_.pick(3);
  for (std::uint64_t i = 0; i < refreshes; ++i) {
    co_await sleep_up_to(me_, length * 3 / 4);
    begin(Intent::refresh, pk);
    auto refreshed = co_await refresh(isr_, lease);
    if (!refreshed) {
      fleet_.end(me_, report_of(refreshed.error()));
    } else if (auto* kept = std::get_if<Lease>(&*refreshed)) {
      lease = std::move(*kept);
      fleet_.end(me_, Report{.kind = Kind::done});
    } else {
      fleet_.end(me_, Report{.kind = Kind::lost});
      if (me_.happens(50)) co_return false;  // Or a publish is tried all the same.
    }
  }
  co_return true;
}

Task<void> Worker::publish_once(Lease lease, Target target) {
  fleet_.begin(
      me_,
      Operation{
          .intent = Intent::publish, .pk = target.page.pk, .token = lease.token, .history = target.history});
  PublishOptions options = options_for(target);
  if (me_.happens(10)) options.if_version = static_cast<std::int64_t>(me_.pick(4));
  if (me_.happens(20)) lease.acquired_at = 0;  // As if the token were all that is known of it.
  Rendered content = rendered(target.page);
  auto outcome = co_await publish(isr_, std::move(lease), std::move(content), std::move(options));
  Report report;
  if (!outcome) {
    report = report_of(outcome.error());
  } else if (const auto* done = std::get_if<Published>(&*outcome)) {
    report = Report{.kind = Kind::published, .s3_key = done->meta.s3_key};
  } else {
    report.kind = std::holds_alternative<LeaseLost>(*outcome) ? Kind::lost : Kind::refused;
  }
  fleet_.end(me_, report);
}

Task<void> Worker::request_steps(Page page) {
  const std::string id = "id-" + std::to_string(me_.pick(kRequestIds));
  const int variant = me_.happens(85) ? 0 : 1;
  fleet_.begin(
      me_, Operation{
               .intent = Intent::claim, .pk = page.pk, .request_id = id, .inputs = inputs_in_words(variant)});
  std::string hash = request_hash(inputs_of(variant));
  const std::chrono::seconds in_progress = seconds_between(me_, 2, 8);
  auto outcome = co_await claim(isr_, page, id, std::move(hash), in_progress);
  if (!outcome) {
    fleet_.end(me_, report_of(outcome.error()));
    co_return;
  }
  if (auto* completed = std::get_if<RequestCompleted>(&*outcome)) {
    fleet_.end(me_, Report{.kind = Kind::replayed, .s3_key = completed->row.result_s3_key.value_or("")});
    co_return;
  }
  auto* ours = std::get_if<RequestClaim>(&*outcome);
  if (ours == nullptr) {
    const bool mismatch = std::holds_alternative<RequestMismatch>(*outcome);
    fleet_.end(me_, Report{.kind = mismatch ? Kind::mismatch : Kind::in_progress});
    co_return;
  }
  RequestClaim claimed = std::move(*ours);
  fleet_.end(me_, Report{.kind = Kind::claimed, .token = claimed.owner_token});
  co_await sleep_up_to(me_, 3000);
  if (me_.happens(40)) {
    begin(Intent::extend, page.pk);
    auto extended = co_await extend(isr_, claimed, in_progress);
    fleet_.end(me_, extended ? Report{.kind = Kind::done} : report_of(extended.error()));
    co_await sleep_up_to(me_, 6000);
  }
  if (me_.happens(15)) co_return;  // It forgets about it.
  begin(me_.happens(60) ? Intent::complete : Intent::fail, page.pk);
  auto meta = co_await get_meta(isr_, page, Consistency::strong);
  Result<RequestOutcome> changed = Error{};
  if (meta && *meta) {
    std::string result = (*meta)->s3_key;
    changed = co_await complete(isr_, std::move(claimed), std::move(result));
  } else {
    changed = co_await fail(isr_, std::move(claimed), "nothing to show");
  }
  fleet_.end(me_, changed ? Report{.kind = Kind::done} : report_of(changed.error()));
}

Task<void> Worker::invalidate_page(Page page) {
  begin(Intent::invalidate, page.pk);
  auto outcome = co_await invalidate(isr_, page);
  Report report;
  if (!outcome) {
    report = report_of(outcome.error());
  } else {
    report.kind = std::holds_alternative<Invalidated>(*outcome) ? Kind::done : Kind::refused;
  }
  fleet_.end(me_, report);
}

Task<void> Worker::purge_page(Page page) {
  begin(Intent::purge, page.pk);
  auto outcome = co_await purge(isr_, page);
  fleet_.end(me_, outcome ? Report{.kind = Kind::done} : report_of(outcome.error()));
}

Task<void> Worker::mark(Page page) {
  const std::uint64_t which = me_.pick(5);
  const std::string tag = which < 2 ? "red" : which < 4 ? "blue" : "";
  const MarkKind kind = me_.happens(75) ? MarkKind::invalidate : MarkKind::purge;
  begin(Intent::mark, tag_pk(page.tenant, tag));
  auto outcome = co_await mark_tag(isr_, page.tenant, tag, kind);
  fleet_.end(me_, outcome ? Report{.kind = Kind::done} : report_of(outcome.error()));
}

Task<void> Worker::roll_back(Page page) {
  begin(Intent::rollback, page.pk);
  auto found = co_await versions(isr_, page);
  if (!found || found->empty()) {
    fleet_.end(me_, found ? Report{.kind = Kind::nothing} : report_of(found.error()));
    co_return;
  }
  std::string sk = (*found)[me_.pick(found->size())].sk;
  auto outcome = co_await rollback(isr_, page, std::move(sk));
  fleet_.end(me_, done_if<Pinned>(outcome));
}

Task<void> Worker::pin_page(Page page) {
  begin(Intent::pin, page.pk);
  auto outcome = co_await pin(isr_, page);
  fleet_.end(me_, done_if<Pinned>(outcome));
}

Task<void> Worker::unpin_page(Page page) {
  begin(Intent::unpin, page.pk);
  auto outcome = co_await unpin(isr_, page);
  fleet_.end(me_, done_if<Unpinned>(outcome));
}

Task<void> Worker::read(Page page) {
  const Consistency consistency = me_.happens(60) ? Consistency::strong : Consistency::eventual;
  fleet_.begin(
      me_, Operation{.intent = Intent::read, .pk = page.pk, .strong = consistency == Consistency::strong});
  auto seen = co_await view(isr_, page, consistency);
  if (!seen) {
    fleet_.end(me_, report_of(seen.error()));
    co_return;
  }
  const PageView found = *std::move(seen);
  const PageState state = found.freshness.state;
  fleet_.end(me_, Report{.kind = state == PageState::fresh   ? Kind::fresh
                                 : state == PageState::stale ? Kind::stale
                                                             : Kind::missing});
  begin(Intent::read, page.pk);
  auto body = co_await read_body(isr_, found);
  // A reader that slept may come too late for a body that was replaced long ago.
  const bool gone = !body && body.error().code == ErrorCode::corrupt;
  const bool by_a_mark = state == PageState::stale && judge(found.meta, isr_.now()).state == PageState::fresh;
  if (by_a_mark && found.meta) {
    auto closed = co_await close_window(isr_, page, *found.meta);
    if (!closed) {
      fleet_.end(me_, report_of(closed.error()));
      co_return;
    }
  }
  fleet_.end(me_, body || gone ? Report{.kind = Kind::done} : report_of(body.error()));
}

Task<void> Worker::sweep_all(bool dry) {
  begin(Intent::sweep, {});
  // A fleet of one or two pages may well have none for a while.
  SweepOptions options{.dry_run = dry, .vouched = true, .grace = kGrace};
  auto outcome = co_await sweep(isr_, options);
  fleet_.end(me_, outcome ? Report{.kind = Kind::done} : report_of(outcome.error()));
}

Task<void> Worker::remove_what_was_released() {
  begin(Intent::sweep, {});
  PartnerReport partners{.partnership = Partnership::partners};
  auto outcome = co_await remove_released(isr_, std::move(partners), kReleasedGrace, 100);
  fleet_.end(me_, outcome ? Report{.kind = Kind::done} : report_of(outcome.error()));
}

Task<void> Worker::evict_a_page() {
  begin(Intent::evict, {});
  EvictOptions options{.most = 1};
  options.partners.partnership = Partnership::partners;
  auto outcome = co_await evict_some(isr_, std::nullopt, std::move(options));
  const bool some = outcome && outcome->pages > 0;
  fleet_.end(me_, !outcome ? report_of(outcome.error()) : Report{.kind = some ? Kind::done : Kind::nothing});
}

Task<void> Worker::act() {
  const Habits& habits = fleet_.habits;
  const int all = habits.regenerate + habits.regenerate_request + habits.lease_steps + habits.request_steps +
                  habits.invalidate + habits.purge + habits.mark + habits.rollback + habits.pin +
                  habits.unpin + habits.read + habits.sweep + habits.evict;
  int rest = static_cast<int>(me_.pick(static_cast<std::uint64_t>(all)));
  const auto chosen = [&rest](int habit) {
    rest -= habit;
    return rest < 0;
  };
  Target target = any_page();
  Page page = target.page;
  if (chosen(habits.regenerate)) return regenerate_page(std::move(target), std::nullopt, 0, false);
  if (chosen(habits.regenerate_request)) {
    const std::string id = "id-" + std::to_string(me_.pick(kRequestIds));
    return regenerate_page(std::move(target), id, me_.happens(88) ? 0 : 1, false);
  }
  if (chosen(habits.lease_steps)) return lease_steps(std::move(target));
  if (chosen(habits.request_steps)) return request_steps(std::move(page));
  if (chosen(habits.invalidate)) return invalidate_page(std::move(page));
  if (chosen(habits.purge)) return purge_page(std::move(page));
  if (chosen(habits.mark)) return mark(std::move(page));
  if (chosen(habits.rollback)) return roll_back(std::move(page));
  if (chosen(habits.pin)) return pin_page(std::move(page));
  if (chosen(habits.unpin)) return unpin_page(std::move(page));
  if (chosen(habits.read)) return read(std::move(page));
  if (chosen(habits.evict)) return evict_a_page();
  return sweep_all(me_.happens(10));
}

Task<void> Worker::run() {
  begin(Intent::sweep, {});
  co_await introduce(fleet_, me_);
  fleet_.end(me_, Report{.kind = Kind::done});
  while (!fleet_.stopping) {
    co_await sleep_up_to(me_, me_.happens(80) ? 1500 : 6000);
    if (fleet_.stopping) break;
    co_await act();
    if (me_.happens(20) && !fleet_.stopping) co_await remove_what_was_released();
  }
}

Task<void> Worker::recover() {
  healthy_ = true;
  begin(Intent::sweep, {});
  co_await introduce(fleet_, me_);
  fleet_.end(me_, Report{.kind = Kind::done});
  constexpr int kTries = 12;
  const auto while_waiting = std::chrono::seconds(5);
  for (std::size_t i = 0; i < fleet_.pages.size(); ++i) {
    const Page page = fleet_.pages[i];
    co_await unpin_page(page);
    bool done = false;
    for (int tries = 0; tries < kTries && !done; ++tries) {
      Target target{page, fleet_.histories[i]};
      RegenerateOptions options;
      options.publish.history = target.history;
      options.even_if_fresh = true;
      options.lease = kLongestLease;
      fleet_.begin(me_, Operation{.intent = Intent::regenerate, .pk = page.pk, .history = target.history});
      Renderer renderer = [this](RenderContext context) { return render(std::move(context)); };
      auto outcome = co_await regenerate(isr_, page, std::move(renderer), std::move(options));
      const auto* regenerated = outcome ? std::get_if<Regenerated>(&*outcome) : nullptr;
      done = regenerated != nullptr;
      Report report{.kind = Kind::done};
      if (!outcome) report = report_of(outcome.error());
      if (done) report = Report{.kind = Kind::published, .s3_key = regenerated->published.meta.s3_key};
      fleet_.end(me_, report);
      if (!done) co_await me_.clock.sleep_for(while_waiting);
    }
    if (!done) fleet_.checker.violate("liveness: " + page.pk + " could not be regenerated in the end");

    for (int id = 0; id < kRequestIds; ++id) {
      const std::string key = "id-" + std::to_string(id);
      for (int tries = 0; tries < kTries; ++tries) {
        // Whoever made the record decided which inputs are the right ones.
        auto row = co_await get_request(isr_, page, key);
        if (row && *row && (*row)->status == RequestStatus::completed) break;
        const bool other = row && *row && (*row)->request_hash == request_hash(inputs_of(1));
        Target target{page, fleet_.histories[i]};
        co_await regenerate_page(std::move(target), key, other ? 1 : 0, true);
        co_await me_.clock.sleep_for(while_waiting);
      }
      fleet_.checker.check_completed(page.pk, request_sk(key));
    }
  }
  for (const Page& page : fleet_.pages)
    fleet_.checker.check_healthy(page.pk, fleet_.scheduler.now());
  if (fleet_.sweeps_in_the_end) {
    // Rows go first, then what they named is found unreferenced, then it goes. A row may have been given a ttl of
    // thirteen minutes.
    for (int round = 0; round < 9; ++round) {
      co_await me_.clock.sleep_for(kGrace + std::chrono::seconds(5));
      co_await sweep_all(false);
    }
    fleet_.checker.check_no_orphans();
  }
  fleet_.recovered = true;
}

}  // namespace

Task<void> introduce(Fleet& fleet, Party& me) {
  const Isr isr{*me.table, *me.bodies, me.clock, me.tokens, fleet.settings};
  for (;;) {
    const PartnerReport report = co_await settle_partners(isr);
    if (report.may_delete() && !report.own_since) co_return;
    if (report.partnership != Partnership::unknown) {
      fleet.checker.violate("partners: to party " + std::to_string(me.id) + " they are " +
                            std::string(name(report.partnership)) + (report.own_since ? " of late" : ""));
      co_return;
    }
    if (fleet.stopping) co_return;
    co_await sleep_up_to(me, 3000);
  }
}

Task<void> work(Fleet& fleet, Party& me) {
  Worker worker(fleet, me);
  co_await worker.run();
}

Task<void> recover(Fleet& fleet, Party& me) {
  Worker worker(fleet, me);
  co_await worker.recover();
}

}  // namespace facetheory::simulation
