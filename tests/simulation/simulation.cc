#include "tests/simulation/simulation.h"

#include <exception>
#include <memory>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "tests/simulation/engine_checker.h"
#include "tests/simulation/engine_node.h"
#include "tests/simulation/fleet.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenarios.h"

namespace facetheory::simulation {
namespace {

// How much of kReleasedGrace must be left by anybody's clock.
constexpr Millis kBodiesStay = 80'000;

// Whoever has not come to an end after that many decisions in fine weather never will.
constexpr int kPatience = 20'000;

class Run {
 public:
  Run(std::uint64_t seed, bool with_trace)
      : trace_(with_trace),
        scenario_(scenario_of(seed)),
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

  RunResult go() {
    invent_pages();
    endure_the_weather();
    come_to_an_end();
    recover_nodes();
    recover_everything();
    return result();
  }

 private:
  bool step() {
    if (checker_.violation() || !scheduler_.step()) return false;
    engine_checker_.check_waiting({scheduler_.now(), scheduler_.stood_still()});
    return true;
  }
  // Runs until nothing is left to do. False: that moment does not come.
  bool run_out() {
    int patience = kPatience;
    for (; patience > 0 && step(); --patience)
      ++decisions_;
    return patience > 0;
  }
  Party& add(bool foreign);
  void start(Party& party);
  void start_node();
  EngineNode* node_of(const Party& party);
  void spawn(Party& party, Task<void> task);
  Party* somebody();
  void misfortune();
  void crash(Party& victim);
  void pause(Party& sleeper);
  void set_clock(Party& corrected);
  void take_stores_down();
  void invent_pages();
  void endure_the_weather();
  void come_to_an_end();
  void recover_nodes();
  void recover_everything();
  RunResult result();
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
  for (int i = 0; i < scenario_.cast.clients; ++i)
    spawn(party, node.visit());
}

EngineNode* Run::node_of(const Party& party) {
  for (const auto& node : nodes_) {
    if (node->party().id == party.id) return node.get();
  }
  return nullptr;
}

// Null: nobody lives.
Party* Run::somebody() {
  std::vector<Party*> living;
  for (const auto& party : parties_) {
    if (party->alive) living.push_back(party.get());
  }
  return living.empty() ? nullptr : living[scheduler_.pick(living.size())];
}

void Run::misfortune() {
  const Misfortunes& chances = scenario_.misfortunes;
  if (scheduler_.happens(chances.crash)) {
    if (Party* victim = somebody()) crash(*victim);
  }
  if (scheduler_.happens(chances.pause)) {
    if (Party* sleeper = somebody()) pause(*sleeper);
  }
  if (scheduler_.happens(chances.clock_step)) {
    if (Party* corrected = somebody()) set_clock(*corrected);
  }
  if (scheduler_.happens(chances.outage)) take_stores_down();
}

// Somebody new takes the place of whoever crashes.
void Run::crash(Party& victim) {
  say("party " + std::to_string(victim.id) + " crashes");
  victim.alive = false;
  scheduler_.crash(victim.id, scheduler_.happens(300));
  if (node_of(victim) != nullptr) {
    engine_checker_.node_crashed(victim.id);
    start_node();
  } else {
    start(add(victim.foreign));
  }
}

void Run::pause(Party& sleeper) {
  const Millis length = scheduler_.span(scheduler_.happens(700) ? 8'000 : 25'000);
  say("party " + std::to_string(sleeper.id) + " stands still for " + std::to_string(length) + " ms");
  scheduler_.pause(sleeper.id, scheduler_.now() + length);
  if (node_of(sleeper) != nullptr) engine_checker_.node_paused(sleeper.id, length);
}

void Run::set_clock(Party& corrected) {
  say("the clock of party " + std::to_string(corrected.id) + " is set");
  const Millis skew = any_skew();
  corrected.clock.set_skew(skew);
  if (node_of(corrected) != nullptr) engine_checker_.clock_set(corrected.id, skew, scheduler_.now());
}

void Run::take_stores_down() {
  const std::uint64_t which = scheduler_.pick(4);
  const Millis length = scheduler_.span(scheduler_.happens(700) ? 5'000 : 20'000);
  say(std::string(which == 0   ? "the bodies are"
                  : which == 1 ? "table and bodies are"
                               : "the table is") +
      " down for " + std::to_string(length) + " ms");
  network_.take_down(which != 0, which <= 1, scheduler_.now() + length);
}

void Run::invent_pages() {
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
}

void Run::endure_the_weather() {
  network_.set_weather(scenario_.weather);
  scheduler_.set_pace(scenario_.pace);
  const Cast& cast = scenario_.cast;
  for (int i = 0; i < cast.workers + cast.foreigners; ++i)
    start(add(i >= cast.workers));
  for (int i = 0; i < cast.nodes; ++i)
    start_node();
  for (int i = 0; i < scenario_.decisions && step(); ++i) {
    ++decisions_;
    misfortune();
  }
}

// The weather clears. Either everybody stops where they stand, or ends what they have begun.
void Run::come_to_an_end() {
  network_.set_weather({.slow = 0});
  network_.take_down(true, true, 0);
  scheduler_.set_pace({.dawdle = 0, .dawdle_max = 0, .jump = 0});
  for (const auto& party : parties_)
    scheduler_.pause(party->id, 0);
  fleet_.stopping = true;
  if (scheduler_.happens(500)) {
    say("everybody crashes");
    for (const auto& party : parties_) {
      if (node_of(*party) == nullptr) scheduler_.crash(party->id, false);
    }
  } else {
    say("everybody finishes");
  }
  if (!run_out()) checker_.violate("liveness: the workers do not come to an end");
}

// Engines go on as they are: they have not been started anew.
void Run::recover_nodes() {
  say("every node recovers");
  for (const auto& node : nodes_) {
    if (node->party().alive) spawn(node->party(), node->recover());
  }
  if (!run_out()) checker_.violate("liveness: the nodes do not come to an end");
}

void Run::recover_everything() {
  say("one healthy worker recovers");
  Party& healthy = add(false);
  scheduler_.spawn(healthy.id, recover(fleet_, healthy), [this](const std::exception_ptr&) {
    checker_.violate("escaped: the healthy worker threw");
  });
  run_out();
  if (!fleet_.recovered) checker_.violate("liveness: the healthy worker does not come to an end");
}

RunResult Run::result() {
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
