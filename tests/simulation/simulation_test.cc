// The simulation, 2,000 seeds of it; and that a seed is a whole run, down to the last step.
#include "tests/simulation/simulation.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "facetheory/base/log.h"

namespace facetheory::simulation {
namespace {

constexpr std::uint64_t kSeeds = 2000;

// A simulation in which nothing happens holds everything. So each of these must happen.
constexpr std::string_view kMustHappen[] = {"published",
                                            "published by a foreign writer",
                                            "lease taken over",
                                            "lease refreshed",
                                            "backed off",
                                            "invalidated",
                                            "purged",
                                            "rolled back",
                                            "pinned",
                                            "unpinned",
                                            "marked",
                                            "marks compared",
                                            "births compared",
                                            "window closed",
                                            "verdicts compared",
                                            "VER# made",
                                            "VER# swept",
                                            "META swept",
                                            "LOCK swept",
                                            "REQ# swept",
                                            "REQ# completed",
                                            "REQ# taken over",
                                            "REQ# attached to the winner",
                                            "body removed",
                                            "publish: lost",
                                            "publish: refused",
                                            "acquire: held",
                                            "regenerate: lost",
                                            "regenerate: failed",
                                            "regenerate: not stored",
                                            "regenerate: replayed",
                                            "regenerate: mismatch",
                                            "regenerate: in progress",
                                            "purged pin removed",
                                            "answers compared with META",
                                            "served as hit",
                                            "served as miss",
                                            "served as wait-hit",
                                            "served as stale",
                                            "served as stale-metadata-error",
                                            "served as uncached",
                                            "served as pass",
                                            "served as other",
                                            "served as absent",
                                            "served as apology",
                                            "served as failed",
                                            "served as refused",
                                            "rendered under a lease",
                                            "rendered without a lease",
                                            "render failed",
                                            "render not to be stored",
                                            "private pages served",
                                            "reviews compared",
                                            "withdrawn",
                                            "evicted",
                                            "engine: lease contended",
                                            "engine: lease lost"};

class Simulation : public testing::Test {
 protected:
  // Workers that the weather is hard on complain of it, seed after seed.
  void SetUp() override {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  void TearDown() override { set_log_sink({}); }
};

TEST_F(Simulation, WhatAlwaysHoldsAlwaysHolds) {
  std::map<std::string, std::uint64_t> counters;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RunResult result = run(seed);
    ASSERT_FALSE(result.violation) << "seed " << seed << " (" << result.scenario << "): " << *result.violation
                                   << "\nreplay: " << replay_command(seed);
    for (const auto& [what, times] : result.counters)
      counters[what] += times;
  }
  for (const std::string_view what : kMustHappen)
    EXPECT_GE(counters[std::string(what)], 3U) << what;
}

TEST_F(Simulation, TheSameSeedGivesTheSameRun) {
  for (std::uint64_t seed = 0; seed < 5 * kScenarios; ++seed) {
    const RunResult once = run(seed);
    const RunResult again = run(seed);
    EXPECT_EQ(once.trace_hash, again.trace_hash) << "seed " << seed;
    EXPECT_EQ(once.decisions, again.decisions) << "seed " << seed;
    EXPECT_EQ(once.counters, again.counters) << "seed " << seed;
  }
}

TEST_F(Simulation, ATraceTellsTheSameRunInWords) {
  for (std::uint64_t seed = 0; seed < kScenarios; ++seed) {
    const RunResult silent = run(seed);
    const RunResult told = run(seed, true);
    const RunResult told_again = run(seed, true);
    EXPECT_EQ(silent.trace_hash, told.trace_hash) << "seed " << seed;
    EXPECT_TRUE(silent.trace.empty());
    EXPECT_GT(told.trace.size(), 100U);
    EXPECT_EQ(told.trace, told_again.trace) << "seed " << seed;
  }
}

TEST_F(Simulation, DifferentSeedsGiveDifferentRuns) {
  EXPECT_NE(run(1).trace_hash, run(1 + kScenarios).trace_hash);
}

TEST_F(Simulation, TheReplayCommandNamesTheSeed) {
  EXPECT_EQ(replay_command(42), "build/release/tests/simulate --first 42 --seeds 1 --trace");
}

}  // namespace
}  // namespace facetheory::simulation
