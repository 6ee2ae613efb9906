// table_bench: our table beside Redis and SQLite, on the same disk, in the same run.
//
// Workloads
//   cycle  Durable acquire + publish of a random page, with 1 and with 32 callers. Acquire: a conditional put of LOCK
//          {lease_token, lease_expires_at, ttl}, which for us need not survive power loss. Publish: one transaction
//          that puts META {s3_key, generated_at, revalidate_seconds, etag, ttl} and deletes LOCK if the lease is still
//          held.
//            ours    Table::write, then Table::transact; callers are coroutines on one event loop
//            redis   SET NX PX, then a script; appendfsync always; a connection per caller, all on one epoll loop
//            sqlite  one thread writes whatever is queued in one transaction; WAL, synchronous=FULL
//   read   META of a random page, decoded into values of the caller's own. One caller.
//            ours    Table::get
//            redis   HGETALL, for information: a round trip to another process
//            sqlite  a prepared SELECT in the calling thread
//   Each at 10,000 and at 1,000,000 pages.
//
// Method: all stores are filled first. Then each workload is measured in rounds; in every round every peer at every
// size has one short window, so that good and bad minutes of the machine fall on all of them alike. The first round
// warms up and is not counted. See measure.h for what is counted, --help for the options.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "bench/pages.h"
#include "bench/peers/peer.h"
#include "bench/report.h"

namespace facetheory::bench {
namespace {

using Clock = std::chrono::steady_clock;

// No peer reads more than this in a window; one that is quicker just ends it earlier.
constexpr double kMaxReadsPerSecond = 2e6;

std::atomic<bool> interrupted = false;

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// One peer, filled with one number of pages.
struct Subject {
  std::unique_ptr<Peer> peer;
  const KeyList* pages;
};

struct Workload {
  std::string name;
  int callers;
};

Result<std::unique_ptr<Peer>> open_peer(const std::string& name, const std::filesystem::path& directory,
                                        const Options& options) {
  std::filesystem::create_directories(directory);
  if (name == "redis") return open_redis_peer(directory);
  if (name == "sqlite") return open_sqlite_peer(directory);
  return open_table_peer(options.table, directory);
}

Result<void> populate(Subject& subject) {
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  double next_line = 5;
  const auto progress = [&](std::size_t stored) {
    if (interrupted) throw Interrupted();
    if (seconds() < next_line) return;
    next_line += 5;
    std::fprintf(stderr, "  %s: %zu of %zu pages\n", subject.peer->name().c_str(), stored,
                 subject.pages->size());
  };
  if (Result<void> populated = subject.peer->populate(*subject.pages, progress); !populated) return populated;
  std::fprintf(stderr, "%s: %zu pages stored in %.1f s\n", subject.peer->name().c_str(),
               subject.pages->size(), seconds());
  return {};
}

Result<Window> measure(Subject& subject, const Workload& workload, const Options& options,
                       const std::filesystem::path& directory, Random& random) {
  if (interrupted) throw Interrupted();
  const auto length =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.window_seconds));
  const bool reading = workload.name == "read";
  const KeyList keys =
      reading ? draw(*subject.pages, static_cast<std::size_t>(options.window_seconds * kMaxReadsPerSecond),
                     random)
              : KeyList();
  settle_disk(directory);

  const Stopwatch stopwatch(subject.peer->server());
  const Deadline until = Clock::now() + length;
  auto tally = reading ? subject.peer->reads(keys, until)
                       : subject.peer->cycles(*subject.pages, workload.callers, until);
  if (!tally) return tally.error();
  if (tally->operations == 0) {
    return Error{ErrorCode::unavailable,
                 subject.peer->name() + " finished nothing in a window: take a longer --window"};
  }
  return stopwatch.finish(*tally);
}

std::size_t enough_clean(const Options& options) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(options.rounds + 1) / 2);
}

bool all_have_clean(const std::vector<std::vector<Window>>& windows, std::size_t wanted) {
  for (const std::vector<Window>& of_subject : windows) {
    std::size_t clean = 0;
    for (const Window& window : of_subject)
      clean += static_cast<std::size_t>(window.clean());
    if (clean < wanted) return false;
  }
  return true;
}

Result<std::vector<Figure>> measure_all(std::vector<Subject>& subjects, const Workload& workload,
                                        const Options& options, const std::filesystem::path& directory) {
  SeededRandom random(7);
  std::vector<std::vector<Window>> windows(subjects.size());
  const auto wanted = static_cast<std::size_t>(options.rounds);
  // Round 0 warms up. After the rounds that were asked for, as many again wait for the host to leave us
  // alone.
  for (int round = 0; round <= 2 * options.rounds; ++round) {
    if (round > options.rounds && all_have_clean(windows, wanted)) break;
    std::fprintf(stderr, "%s, %d caller%s, round %d:", workload.name.c_str(), workload.callers,
                 workload.callers == 1 ? "" : "s", round);
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      auto window = measure(subjects[i], workload, options, directory, random);
      if (!window) return window.error();
      std::fprintf(stderr, " %s@%zu %.0f/s%s", subjects[i].peer->name().c_str(), subjects[i].pages->size(),
                   window->rate(), window->clean() ? "" : " (disturbed)");
      if (round > 0) windows[i].push_back(*window);
    }
    std::fprintf(stderr, "\n");
  }
  std::vector<Figure> figures;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    figures.push_back(Figure{.workload = workload.name,
                             .pages = subjects[i].pages->size(),
                             .callers = workload.callers,
                             .peer = subjects[i].peer->name(),
                             .summary = summarise(windows[i], enough_clean(options)),
                             .windows = std::move(windows[i])});
  }
  return figures;
}

std::vector<Workload> workloads(const Options& options) {
  std::vector<Workload> all;
  for (const std::string& name : options.workloads) {
    if (name == "read") {
      all.push_back({name, 1});
    } else {
      for (int callers : options.callers)
        all.push_back({name, callers});
    }
  }
  return all;
}

Result<Report> run(const Options& options) {
  auto scratch = ScratchFolder::make(options.directory, options.keep);
  if (!scratch) return scratch.error();
  if (in_memory(scratch->path()) && !options.allow_tmpfs) {
    return Error{ErrorCode::invalid,
                 options.directory.string() +
                     " is in memory, where nothing is durable: name a directory on a disk with "
                     "--dir, or allow it with --allow-tmpfs"};
  }
  Report report;
  report.machine = describe_machine(scratch->path());
  report.smoke = options.smoke;
  report.window_seconds = options.window_seconds;

  std::vector<std::unique_ptr<KeyList>> lists;
  std::vector<Subject> subjects;
  for (const std::size_t count : options.pages) {
    lists.push_back(std::make_unique<KeyList>(page_keys(count)));
    for (const std::string& name : options.peers) {
      auto peer = open_peer(name, scratch->path() / (name + "-" + std::to_string(count)), options);
      if (!peer) return peer.error();
      subjects.push_back({std::move(*peer), lists.back().get()});
      if (Result<void> populated = populate(subjects.back()); !populated) return populated.error();
    }
  }
  for (std::size_t i = 0; i < options.peers.size(); ++i) {
    report.versions.push_back(subjects[i].peer->name() + ": " + subjects[i].peer->version());
  }
  for (const Workload& workload : workloads(options)) {
    auto figures = measure_all(subjects, workload, options, scratch->path());
    if (!figures) return figures.error();
    for (Figure& figure : *figures)
      report.figures.push_back(std::move(figure));
  }
  return report;
}

int main_with(const std::vector<std::string>& arguments) {
  auto options = parse_options(arguments);
  if (!options) {
    std::fprintf(stderr, "table_bench: %s\n", options.error().message.c_str());
    return 2;
  }
  if (options->help) {
    std::fputs(usage().c_str(), stdout);
    return 0;
  }
  auto report = run(*options);
  if (!report) {
    std::fprintf(stderr, "table_bench: could not measure: %s\n", to_string(report.error()).c_str());
    return 1;
  }
  report->command = "table_bench";
  for (const std::string& argument : arguments)
    report->command += " " + argument;
  if (options->json) {
    print_json(*report);
  } else {
    print_table(*report);
  }
  return 0;
}

}  // namespace
}  // namespace facetheory::bench

int main(int argc, char** argv) {
  std::signal(SIGINT, [](int) { facetheory::bench::interrupted = true; });
  std::signal(SIGTERM, [](int) { facetheory::bench::interrupted = true; });
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return facetheory::bench::main_with({argv + 1, argv + argc});
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "table_bench: could not measure: %s\n", failure.what());
    return 1;
  }
}
