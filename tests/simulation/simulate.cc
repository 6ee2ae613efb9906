// Runs the simulation over many seeds: simulate --seeds 1000000 [--first N] [--jobs J] [--trace] [--minutes M].
// Ends at the first violation, with its seed and the command that shows it again, or when the minutes are over.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "facetheory/base/log.h"

#include "tests/simulation/simulation.h"

namespace facetheory::simulation {
namespace {

struct Options {
  std::uint64_t first = 0;
  std::uint64_t seeds = 1000;
  unsigned jobs = 1;
  std::uint64_t minutes = 24 * 60;
  bool trace = false;
  bool keep_going = false;
};

int usage() {
  std::cerr
      << "simulate --seeds COUNT [--first SEED] [--jobs THREADS] [--minutes LIMIT] [--trace] [--keep-going]\n"
         "  --trace       prints what happened, step by step; for one seed\n"
         "  --keep-going  counts violations instead of ending at the first\n";
  return 2;
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--trace") {
      options.trace = true;
      continue;
    }
    if (argument == "--keep-going") {
      options.keep_going = true;
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(argv[++i], &end, 10);
    if (end == argv[i] || *end != '\0') return std::nullopt;
    if (argument == "--seeds") {
      options.seeds = number;
    } else if (argument == "--first") {
      options.first = number;
    } else if (argument == "--jobs" && number >= 1 && number <= 256) {
      options.jobs = static_cast<unsigned>(number);
    } else if (argument == "--minutes") {
      options.minutes = number;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

class Campaign {
 public:
  explicit Campaign(Options options) : options_(options) {}

  int go() {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < options_.jobs; ++i)
      threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads)
      thread.join();
    report(std::cout, done_.load());
    for (const auto& [what, times] : counters_)
      std::cout << "  " << times << "  " << what << '\n';
    std::cout << failures_ << " of " << done_ << " seeds failed\n";
    if (done_ < options_.seeds && failures_ == 0)
      std::cout << "the minutes were over before all seeds had run\n";
    return failures_ == 0 ? 0 : 1;
  }

 private:
  void work() {
    std::map<std::string, std::uint64_t> counters;
    while (!stop_) {
      const std::uint64_t index = next_.fetch_add(1);
      if (index >= options_.seeds ||
          std::chrono::steady_clock::now() - began_ > std::chrono::minutes(options_.minutes))
        break;
      const std::uint64_t seed = options_.first + index;
      const RunResult result = run(seed, options_.trace);
      for (const auto& [what, times] : result.counters)
        counters[what] += times;
      const std::uint64_t done = done_.fetch_add(1) + 1;
      const std::lock_guard lock(mutex_);
      decisions_ += result.decisions;
      for (const std::string& line : result.trace)
        std::cout << line << '\n';
      if (result.violation) {
        ++failures_;
        if (!options_.keep_going) stop_ = true;
        std::cout << "seed " << seed << " (" << result.scenario << "): " << *result.violation << "\n  "
                  << replay_command(seed) << std::endl;
      }
      const auto now = std::chrono::steady_clock::now();
      if (now - reported_ > std::chrono::seconds(5)) {
        reported_ = now;
        report(std::cerr, done);
      }
    }
    const std::lock_guard lock(mutex_);
    for (const auto& [what, times] : counters)
      counters_[what] += times;
  }

  void report(std::ostream& out, std::uint64_t done) const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
    const double rate = static_cast<double>(done) / passed.count();
    out << done << " of " << options_.seeds << " seeds, " << decisions_ << " decisions, " << failures_
        << " failed, " << static_cast<std::uint64_t>(rate) << " seeds/s, "
        << static_cast<std::uint64_t>(static_cast<double>(options_.seeds - std::min(options_.seeds, done)) /
                                      (rate + 0.001))
        << " s to go" << std::endl;
  }

  const Options options_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  // Guarded by mutex_ while threads run.
  std::uint64_t failures_ = 0;
  std::uint64_t decisions_ = 0;
  std::chrono::steady_clock::time_point reported_ = began_;
  std::map<std::string, std::uint64_t> counters_;
};

}  // namespace
}  // namespace facetheory::simulation

int main(int argc, char** argv) {
  const auto options = facetheory::simulation::parse(argc, argv);
  if (!options) return facetheory::simulation::usage();
  // Workers that the weather is hard on complain of it, seed after seed.
  facetheory::set_log_sink([](facetheory::LogLevel, std::string_view) {});
  return facetheory::simulation::Campaign(*options).go();
}
