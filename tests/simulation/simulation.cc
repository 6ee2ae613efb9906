#include "tests/simulation/simulation.h"

#include <array>
#include <exception>
#include <memory>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "tests/simulation/engine_checker.h"
#include "tests/simulation/engine_node.h"
#include "tests/simulation/fleet.h"
#include "tests/simulation/network.h"

namespace facetheory::simulation {
namespace {

// Of kReleasedGrace, what must be left of it by anybody's clock.
constexpr Millis kBodiesStay = 80'000;

struct Scenario {
  std::string_view name;
  int workers;
  int foreigners;
  int decisions;  // While the weather lasts.
  int crash;      // Chances per thousand decisions.
  int pause;
  int clock_steps;
  int nodes = 0;           // With an engine each.
  int clients = 0;         // Of each node.
  int outage = 0;          // Chance per thousand decisions: table, bodies or both are down for a while.
  Millis skew = kMaxSkew;  // Of clocks, to either side.
  Habits habits;
  Weather weather;
  Pace pace;
};

const std::array<Scenario, kScenarios>& scenarios() {
  static const std::array<Scenario, kScenarios> all = {{
      {.name = "fine weather",
       .workers = 3,
       .foreigners = 1,
       .decisions = 400,
       .crash = 0,
       .pause = 0,
       .clock_steps = 0,
       .habits = {.regenerate = 4,
                  .regenerate_request = 2,
                  .lease_steps = 2,
                  .request_steps = 1,
                  .invalidate = 1,
                  .mark = 1,
                  .rollback = 1,
                  .unpin = 1,
                  .read = 3,
                  .sweep = 1},
       .weather = {},
       .pace = {}},
      {.name = "leases",
       .workers = 4,
       .foreigners = 0,
       .decisions = 500,
       .crash = 6,
       .pause = 15,
       .clock_steps = 2,
       .habits = {.regenerate = 4, .lease_steps = 6, .invalidate = 1, .read = 1},
       .weather = {.unavailable = 30,
                   .lost_request = 30,
                   .lost_answer = 60,
                   .delayed = 80,
                   .repeated = 60,
                   .stale = 300},
       .pace = {}},
      {.name = "requests",
       .workers = 4,
       .foreigners = 1,
       .decisions = 600,
       .crash = 8,
       .pause = 12,
       .clock_steps = 2,
       .habits = {.regenerate = 1, .regenerate_request = 8, .request_steps = 3, .invalidate = 1},
       .weather = {.unavailable = 20,
                   .lost_request = 20,
                   .lost_answer = 50,
                   .delayed = 60,
                   .repeated = 60,
                   .stale = 300},
       .pace = {.jump = 8, .jump_max = 30'000}},
      {.name = "invalidations",
       .workers = 4,
       .foreigners = 1,
       .decisions = 600,
       .crash = 4,
       .pause = 12,
       .clock_steps = 2,
       .habits = {.regenerate = 6, .lease_steps = 3, .invalidate = 4, .purge = 2, .mark = 4, .read = 3},
       .weather = {.unavailable = 20,
                   .lost_request = 20,
                   .lost_answer = 60,
                   .delayed = 80,
                   .repeated = 80,
                   .stale = 400},
       .pace = {}},
      {.name = "history",
       .workers = 4,
       .foreigners = 1,
       .decisions = 600,
       .crash = 4,
       .pause = 12,
       .clock_steps = 2,
       .habits = {.regenerate = 6,
                  .lease_steps = 3,
                  .invalidate = 1,
                  .purge = 1,
                  .rollback = 4,
                  .pin = 1,
                  .unpin = 4,
                  .read = 1},
       .weather = {.unavailable = 20,
                   .lost_request = 20,
                   .lost_answer = 60,
                   .delayed = 80,
                   .repeated = 80,
                   .stale = 300},
       .pace = {}},
      {.name = "foreign writers",
       .workers = 3,
       .foreigners = 3,
       .decisions = 600,
       .crash = 5,
       .pause = 15,
       .clock_steps = 2,
       .habits = {.regenerate = 5,
                  .regenerate_request = 3,
                  .lease_steps = 3,
                  .invalidate = 2,
                  .purge = 1,
                  .mark = 1,
                  .read = 1},
       .weather = {.unavailable = 20,
                   .lost_request = 20,
                   .lost_answer = 60,
                   .delayed = 80,
                   .repeated = 60,
                   .stale = 300},
       .pace = {}},
      {.name = "sweeper",
       .workers = 4,
       .foreigners = 1,
       .decisions = 700,
       .crash = 4,
       .pause = 12,
       .clock_steps = 2,
       .habits = {.regenerate = 6,
                  .regenerate_request = 3,
                  .lease_steps = 3,
                  .invalidate = 1,
                  .purge = 1,
                  .rollback = 1,
                  .unpin = 1,
                  .sweep = 4,
                  .evict = 2},
       .weather = {.unavailable = 15,
                   .lost_request = 20,
                   .lost_answer = 50,
                   .delayed = 80,
                   .repeated = 60,
                   .stale = 300},
       .pace = {.jump = 25, .jump_max = 150'000}},
      {.name = "storm",
       .workers = 5,
       .foreigners = 2,
       .decisions = 800,
       .crash = 10,
       .pause = 20,
       .clock_steps = 5,
       .habits = {.regenerate = 5,
                  .regenerate_request = 4,
                  .lease_steps = 4,
                  .request_steps = 2,
                  .invalidate = 2,
                  .purge = 1,
                  .mark = 2,
                  .rollback = 2,
                  .pin = 1,
                  .unpin = 2,
                  .read = 2,
                  .sweep = 1,
                  .evict = 1},
       .weather = {.unavailable = 60,
                   .lost_request = 60,
                   .lost_answer = 90,
                   .delayed = 140,
                   .repeated = 120,
                   .stale = 500},
       .pace = {.jump = 10, .jump_max = 60'000}},
      // Reads are exact here, as they are on one machine.
      {.name = "engines",
       .workers = 1,
       .foreigners = 0,
       .decisions = 600,
       .crash = 0,
       .pause = 0,
       .clock_steps = 0,
       .nodes = 3,
       .clients = 3,
       .habits = {.regenerate = 1,
                  .invalidate = 2,
                  .purge = 1,
                  .mark = 2,
                  .rollback = 1,
                  .unpin = 2,
                  .read = 6,
                  .evict = 1},
       .weather = {.slow = 30},
       .pace = {}},
      {.name = "engines and invalidations",
       .workers = 2,
       .foreigners = 1,
       .decisions = 700,
       .crash = 3,
       .pause = 8,
       .clock_steps = 2,
       .nodes = 2,
       .clients = 3,
       .habits = {.regenerate = 1, .invalidate = 4, .purge = 3, .mark = 4, .rollback = 2, .unpin = 3},
       .weather = {.unavailable = 10, .lost_answer = 40, .delayed = 40, .repeated = 40},
       .pace = {}},
      {.name = "engines and outages",
       .workers = 1,
       .foreigners = 0,
       .decisions = 800,
       .crash = 3,
       .pause = 4,
       .clock_steps = 1,
       .nodes = 2,
       .clients = 4,
       .outage = 8,
       .habits = {.regenerate = 1, .invalidate = 2, .purge = 1, .mark = 1, .read = 6},
       .weather = {.unavailable = 10, .stale = 200},
       .pace = {}},
      {.name = "engines in a storm",
       .workers = 2,
       .foreigners = 1,
       .decisions = 900,
       .crash = 8,
       .pause = 15,
       .clock_steps = 4,
       .nodes = 3,
       .clients = 3,
       .outage = 6,
       .habits = {.regenerate = 2,
                  .regenerate_request = 2,
                  .lease_steps = 2,
                  .invalidate = 2,
                  .purge = 1,
                  .mark = 2,
                  .rollback = 1,
                  .pin = 1,
                  .unpin = 3,
                  .read = 1,
                  .sweep = 1,
                  .evict = 1},
       .weather = {.unavailable = 40,
                   .lost_request = 40,
                   .lost_answer = 60,
                   .delayed = 100,
                   .repeated = 80,
                   .stale = 300},
       .pace = {.jump = 8, .jump_max = 30'000}},
      // Far beyond what is allowed for. Leases are still safe, by their tokens; and marks, by their counts.
      {.name = "clocks far apart",
       .workers = 4,
       .foreigners = 0,
       .decisions = 600,
       .crash = 4,
       .pause = 8,
       .clock_steps = 8,
       .skew = 10'000,
       .habits = {.regenerate = 8, .invalidate = 1, .mark = 5, .rollback = 1, .unpin = 2, .read = 3},
       .weather = {.unavailable = 20,
                   .lost_request = 20,
                   .lost_answer = 60,
                   .delayed = 80,
                   .repeated = 80,
                   .stale = 400},
       .pace = {}},
      // The same of nodes, whose memories of pages and marks have times of their own.
      {.name = "engines and clocks far apart",
       .workers = 2,
       .foreigners = 0,
       .decisions = 700,
       .crash = 3,
       .pause = 6,
       .clock_steps = 6,
       .nodes = 3,
       .clients = 3,
       .skew = 10'000,
       .habits = {.regenerate = 2, .invalidate = 2, .purge = 1, .mark = 6, .rollback = 1, .unpin = 2},
       .weather = {.unavailable = 10,
                   .lost_request = 10,
                   .lost_answer = 40,
                   .delayed = 40,
                   .repeated = 40,
                   .stale = 200},
       .pace = {}},
  }};
  return all;
}

class Run {
 public:
  Run(std::uint64_t seed, bool with_trace)
      : trace_(with_trace),
        scenario_(scenarios()[seed % scenarios().size()]),
        seeds_(seed * 0x9E3779B97F4A7C15U + 1),
        checker_({.longest_lease = kLongestLease.count(),
                  .clocks_are_close = scenario_.skew <= kMaxSkew,
                  .bodies_stay = kBodiesStay}),
        engine_checker_(checker_),
        scheduler_(seeds_.next(), trace_),
        truth_(scheduler_, checker_, scheduler_.happens(500), scheduler_.happens(250),
               scheduler_.happens(500) ? "pages/" : ""),
        network_(scheduler_, checker_, truth_),
        fleet_{.scheduler = scheduler_,
               .checker = checker_,
               .pages = {},
               .histories = {},
               .habits = scenario_.habits} {
    truth_.set_witness(engine_checker_);
  }

  ~Run() {
    // No coroutine may outlive what it refers to.
    for (const auto& party : parties_)
      scheduler_.crash(party->id, true);
  }

  RunResult go();

 private:
  bool step() {
    if (checker_.violation() || !scheduler_.step()) return false;
    engine_checker_.check_waiting({scheduler_.now(), scheduler_.stood_still()});
    return true;
  }
  Party& add(bool foreign);
  void start(Party& party);
  void start_node();
  EngineNode* node_of(const Party& party);
  void spawn(Party& party, Task<void> task);
  void misfortune();
  void say(const std::string& what) {
    if (trace_.in_words()) trace_.say("== " + what);
  }
  Millis any_skew() { return scheduler_.span(2 * scenario_.skew) - scenario_.skew; }

  Trace trace_;
  const Scenario& scenario_;
  SeededRandom seeds_;
  Checker checker_;
  EngineChecker engine_checker_;
  Scheduler scheduler_;
  Truth truth_;
  Network network_;
  Fleet fleet_;
  std::vector<std::unique_ptr<Party>> parties_;
  std::vector<std::unique_ptr<EngineNode>> nodes_;  // Also the crashed ones.
  std::uint64_t decisions_ = 0;
};

Party& Run::add(bool foreign) {
  const auto id = static_cast<PartyId>(parties_.size() + 1);
  Party& party =
      *parties_.emplace_back(std::make_unique<Party>(scheduler_, id, any_skew(), seeds_.next(), foreign));
  party.table = network_.table_of(party);
  party.bodies = network_.bodies_of(party);
  return party;
}

void Run::spawn(Party& party, Task<void> task) {
  scheduler_.spawn(party.id, std::move(task), [this, &party](const std::exception_ptr& error) {
    party.alive = false;
    if (!error) return;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
      checker_.violate("escaped: party " + std::to_string(party.id) + " threw " + thrown.what());
    }
  });
}

void Run::start(Party& party) {
  spawn(party, party.foreign ? work_as_foreigner(fleet_, party) : work(fleet_, party));
}

void Run::start_node() {
  const Millis behind = scenario_.weather.stale > 0 ? scenario_.weather.behind : 0;
  Party& party = add(false);
  EngineNode& node =
      *nodes_.emplace_back(std::make_unique<EngineNode>(fleet_, engine_checker_, party, behind));
  for (int i = 0; i < scenario_.clients; ++i)
    spawn(party, node.visit());
}

EngineNode* Run::node_of(const Party& party) {
  for (const auto& node : nodes_) {
    if (node->party().id == party.id) return node.get();
  }
  return nullptr;
}

// A crash, a pause, a clock that is set.
void Run::misfortune() {
  const auto somebody = [this]() -> Party* {
    std::vector<Party*> living;
    for (const auto& party : parties_) {
      if (party->alive) living.push_back(party.get());
    }
    return living.empty() ? nullptr : living[scheduler_.pick(living.size())];
  };
  if (scheduler_.happens(scenario_.crash)) {
    if (Party* victim = somebody()) {
      say("party " + std::to_string(victim->id) + " crashes");
      victim->alive = false;
      scheduler_.crash(victim->id, scheduler_.happens(300));
      if (node_of(*victim) != nullptr) {
        engine_checker_.node_crashed(victim->id);
        start_node();
      } else {
        start(add(victim->foreign));
      }
    }
  }
  if (scheduler_.happens(scenario_.pause)) {
    if (Party* sleeper = somebody()) {
      const Millis length = scheduler_.span(scheduler_.happens(700) ? 8'000 : 25'000);
      say("party " + std::to_string(sleeper->id) + " stands still for " + std::to_string(length) + " ms");
      scheduler_.pause(sleeper->id, scheduler_.now() + length);
      if (node_of(*sleeper) != nullptr) engine_checker_.node_paused(sleeper->id, length);
    }
  }
  if (scheduler_.happens(scenario_.clock_steps)) {
    if (Party* corrected = somebody()) {
      say("the clock of party " + std::to_string(corrected->id) + " is set");
      const Millis skew = any_skew();
      corrected->clock.set_skew(skew);
      if (node_of(*corrected) != nullptr) engine_checker_.clock_set(corrected->id, skew, scheduler_.now());
    }
  }
  if (scheduler_.happens(scenario_.outage)) {
    const std::uint64_t which = scheduler_.pick(4);
    const Millis length = scheduler_.span(scheduler_.happens(700) ? 5'000 : 20'000);
    say(std::string(which == 0   ? "the bodies are"
                    : which == 1 ? "table and bodies are"
                                 : "the table is") +
        " down for " + std::to_string(length) + " ms");
    network_.take_down(which != 0, which <= 1, scheduler_.now() + length);
  }
}

RunResult Run::go() {
  const std::size_t pages = 1 + scheduler_.pick(2);
  for (std::size_t i = 0; i < pages; ++i) {
    auto page = page_of("/page/" + std::to_string(i), scheduler_.happens(500) ? "acme" : "");
    fleet_.pages.push_back(*std::move(page));
    fleet_.histories.push_back(scheduler_.happens(400) ? 0 : 1 + static_cast<int>(scheduler_.pick(3)));
    fleet_.route_tags.emplace_back();
    if (scheduler_.happens(500)) fleet_.route_tags.back() = {"blue", "red"};
    engine_checker_.route_gives(fleet_.pages.back().pk, fleet_.route_tags.back());
  }
  fleet_.sweeps_in_the_end = scheduler_.happens(250);
  network_.set_weather(scenario_.weather);
  scheduler_.set_pace(scenario_.pace);
  for (int i = 0; i < scenario_.workers + scenario_.foreigners; ++i)
    start(add(i >= scenario_.workers));
  for (int i = 0; i < scenario_.nodes; ++i)
    start_node();
  for (int i = 0; i < scenario_.decisions && step(); ++i) {
    ++decisions_;
    misfortune();
  }

  // The weather clears. Either everybody stops where they stand, or ends what they have begun.
  network_.set_weather({.slow = 0});
  network_.take_down(true, true, 0);
  scheduler_.set_pace({.dawdle = 0, .dawdle_max = 0, .jump = 0});
  for (const auto& party : parties_)
    scheduler_.pause(party->id, 0);
  fleet_.stopping = true;
  constexpr int kPatience = 20'000;
  if (scheduler_.happens(500)) {
    say("everybody crashes");
    for (const auto& party : parties_) {
      if (node_of(*party) == nullptr) scheduler_.crash(party->id, false);
    }
  } else {
    say("everybody finishes");
  }
  int patience = kPatience;
  for (; patience > 0 && step(); --patience)
    ++decisions_;
  if (patience == 0) checker_.violate("liveness: the workers do not come to an end");

  // Engines go on as they are: they have not been started anew.
  std::vector<EngineNode*> living;
  for (const auto& node : nodes_) {
    if (node->party().alive) living.push_back(node.get());
  }
  say("every node recovers");
  for (EngineNode* node : living)
    spawn(node->party(), node->recover());
  patience = kPatience;
  for (; patience > 0 && step(); --patience)
    ++decisions_;
  if (patience == 0) checker_.violate("liveness: the nodes do not come to an end");

  say("one healthy worker recovers");
  Party& healthy = add(false);
  scheduler_.spawn(healthy.id, recover(fleet_, healthy), [this](const std::exception_ptr&) {
    checker_.violate("escaped: the healthy worker threw");
  });
  patience = kPatience;
  for (; patience > 0 && step(); --patience)
    ++decisions_;
  if (!fleet_.recovered) checker_.violate("liveness: the healthy worker does not come to an end");

  if (checker_.violation()) say("VIOLATION: " + *checker_.violation());
  std::map<std::string, std::uint64_t> counters = checker_.counters();
  counters.insert(engine_checker_.counters().begin(), engine_checker_.counters().end());
  for (const auto& node : nodes_) {
    for (const auto& [what, times] : node->counters())
      counters[what] += times;
  }
  return RunResult{checker_.violation(), scenario_.name,      trace_.hash(),
                   decisions_,           trace_.take_lines(), std::move(counters)};
}

}  // namespace

RunResult run(std::uint64_t seed, bool with_trace) {
  Run simulated(seed, with_trace);
  return simulated.go();
}

std::string replay_command(std::uint64_t seed) {
  return "build/release/tests/simulate --first " + std::to_string(seed) + " --seeds 1 --trace";
}

}  // namespace facetheory::simulation
