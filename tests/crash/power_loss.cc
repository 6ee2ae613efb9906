// What is left of the embedded table when the machine loses power, at any moment, with anything of what was not flushed
// on its disk and anything not.
//
//   power_loss [--states N] [--minutes M] [--seed S]
//
// Processes write to one folder by turns and at the same time; some are killed right before or right after one of their
// calls that write or flush, some find the disk full or broken at one. All these calls are recorded. Then disks are
// rebuilt as they may have been after losing power: what was flushed, and of the rest each sector or not. A table is
// opened on each of them, now and then after losing power once more while it is opened, and must have
//   - of each caller's transactions those up to one that is not before the last that was acknowledged, and wholly;
//   - nothing of a transaction that was refused;
//   - pages of LMDB that are all in use or free, and none both;
//   - room for more transactions.
// It stops after so many states or minutes, or with the first that is not so, and prints how to come back to that. In
// the folder of POWER_LOSS_KEPT it leaves that disk, and the calls that led to it.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <fcntl.h>
#include <lmdb.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facetheory/base/random.h"
#include "facetheory/table/lmdb_table.h"

#include "tests/crash/disk_recorder.h"
#include "tests/support/run.h"
#include "tests/support/temporary_directory.h"

namespace facetheory::test {
namespace {

constexpr std::uint64_t kRounds = 4;
constexpr std::uint64_t kProcesses = 2;
constexpr std::uint64_t kCallers = 3;
constexpr std::uint64_t kTransactions = 25;
constexpr std::uint64_t kStatesOfATrace = 50;
constexpr std::uint64_t kInterrupted = 10;  // Of these lose power again.
constexpr std::size_t kSpecial = 15;
constexpr std::uint64_t kPadding = 4096;
constexpr std::uint64_t kRows = 12;  // Of each caller.

using Content = std::map<std::string, Item>;  // By sort key.

enum class Said : std::uint64_t { asked, acknowledged, refused };

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void note(std::uint64_t caller, Said said, int n) {
  DiskRecorder::note(caller * 4 + static_cast<std::uint64_t>(said), static_cast<std::uint64_t>(n));
}

std::string partition_of(std::uint64_t caller) {
  return "CALLER#" + std::to_string(caller);
}

// What one caller's transaction of that number does: a pair that always goes together, and some rows.
std::vector<TransactItem> transaction(std::uint64_t caller, int n) {
  SeededRandom random(caller * 1000 + static_cast<std::uint64_t>(n));
  const std::string pk = partition_of(caller);
  std::vector<TransactItem> items{Put{Item{{pk, "PAIR#left"}, {{"n", n}}}},
                                  Put{Item{{pk, "PAIR#right"}, {{"n", n}}}}};
  std::set<std::uint64_t> rows;
  for (std::uint64_t i = 1 + uniform(random, 3); i > 0; --i)
    rows.insert(uniform(random, kRows));
  for (const std::uint64_t row : rows) {
    const Key key{pk, "ROW#" + std::to_string(row)};
    const std::size_t padding = uniform(random, 20) == 0 ? 30000 : uniform(random, 2000);
    if (uniform(random, 4) == 0)
      items.emplace_back(Delete{key});
    else
      items.emplace_back(Put{Item{key, {{"n", n}, {"padding", std::string(padding, 'x')}}}});
  }
  return items;
}

void apply(std::uint64_t caller, int n, Content& content) {
  for (TransactItem& item : transaction(caller, n)) {
    if (auto* put = std::get_if<Put>(&item)) {
      content[put->item.key.sk] = std::move(put->item);
    } else {
      content.erase(std::get<Delete>(item).key.sk);
    }
  }
}

// Some make a checkpoint after each commit, some seldom.
LmdbOptions options(std::uint64_t process) {
  const bool often = process % 2 == 0;
  return {.reader_check_interval = std::chrono::milliseconds(2),  // Pins of the dead help nobody.
          .patience = std::chrono::minutes(1),                    // The machine may be busy.
          .checkpoint_bytes = often ? 32U << 10 : 1U << 20,
          .rest_interval = std::chrono::milliseconds(often ? 5 : 100000)};
}

Task<Result<WriteOutcome>> call(Table& table, std::uint64_t caller) {
  for (int n = 1; n <= static_cast<int>(kTransactions); ++n) {
    note(caller, Said::asked, n);
    std::vector<TransactItem> items = transaction(caller, n);
    const Result<TransactOutcome> outcome = co_await table.transact(std::move(items), "t");
    if (!outcome && outcome.error().code == ErrorCode::ambiguous) break;
    note(caller, outcome ? Said::acknowledged : Said::refused, n);
  }
  co_return WriteOutcome(Written{});
}

// In a process of its own.
[[noreturn]] void write(const std::string& folder, std::uint64_t process, Random& random) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::uint64_t fate = uniform(random, 10);
  const std::uint64_t call_number = 1 + uniform(random, 200);
  if (fate < 4) DiskRecorder::kill_at(call_number, fate < 2);
  if (fate == 4 || fate == 5) DiskRecorder::kill_at_checkpoint(1 + uniform(random, 10));
  if (fate >= 6 && fate < 9) DiskRecorder::fill_disk_at(call_number);
  {
    auto table = open_lmdb_table(folder, options(uniform(random, 2)));
    if (!table) {
      std::cout << "opening: " << to_string(table.error()) << std::endl;
      ::_exit(fate >= 6 && fate < 9 ? 0 : 1);
    }
    std::vector<Task<Result<WriteOutcome>>> calls;
    for (std::uint64_t i = 0; i < kCallers; ++i)
      calls.push_back(call(**table, process * kCallers + i));
    for (const auto& outcome : run_all(std::move(calls)))
      static_cast<void>(outcome.has_value());
  }
  ::_exit(0);
}

// The last words of a child; false: it was killed.
bool wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return false;
  if (status != 0) throw Failure("a process ended with status " + std::to_string(status));
  return true;
}

FileImages files_of(const std::string& folder) {
  FileImages images;
  for (const char* name : {"data.mdb", "log"}) {
    std::ifstream file(folder + "/" + name, std::ios::binary);
    images[name] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return images;
}

// Children do all of it: a process with threads must not fork. What the disk had before.
FileImages record(const std::string& folder, Random& random) {
  if (const pid_t child = ::fork(); child == 0) {
    ::_exit(open_lmdb_table(folder, options(1)) ? 0 : 1);
  } else {
    wait_for(child);
  }
  FileImages images = files_of(folder);
  DiskRecorder::watch(folder);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    std::vector<pid_t> children;
    for (std::uint64_t i = 0; i < kProcesses; ++i) {
      SeededRandom own(random.next());
      const pid_t child = ::fork();
      if (child < 0) throw Failure("fork");
      if (child == 0) write(folder, round * kProcesses + i, own);
      children.push_back(child);
    }
    for (const pid_t child : children)
      wait_for(child);
  }
  DiskRecorder::stop();
  return images;
}

// What callers asked for and were told by the end of so many events.
struct Told {
  int asked = 0;
  int acknowledged = 0;
  std::set<int> refused;
};

std::map<std::uint64_t, Told> told_until(std::uint64_t events) {
  std::map<std::uint64_t, Told> told;
  for (std::uint64_t i = 0; i < events; ++i) {
    const DiskRecorder::Event event = DiskRecorder::event(i);
    if (event.kind != DiskRecorder::Event::Kind::note) continue;
    Told& one = told[event.at / 4];
    const int n = static_cast<int>(event.bytes);
    switch (static_cast<Said>(event.at % 4)) {
      case Said::asked:
        one.asked = n;
        break;
      case Said::acknowledged:
        one.acknowledged = n;
        break;
      case Said::refused:
        one.refused.insert(n);
        break;
    }
  }
  return told;
}

Content content_of(Table& table, std::uint64_t caller) {
  const std::string pk = partition_of(caller);
  Query query{.pk = pk};
  const Result<QueryPage> page = run(table.query(std::move(query)));
  if (!page) throw Failure(to_string(page.error()));
  Content content;
  for (const Item& item : page->items)
    content.emplace(item.key.sk, item);
  return content;
}

std::string number_of(const Item& item) {
  return std::to_string(*item.attributes.find("n")->as<Number>()->to_int64());
}

void check_caller(Table& table, std::uint64_t caller, const Told& told) {
  const Content content = content_of(table, caller);
  const auto left = content.find("PAIR#left");
  const int last = left == content.end()
                       ? 0
                       : static_cast<int>(*left->second.attributes.find("n")->as<Number>()->to_int64());
  const std::string who = "caller " + std::to_string(caller) + " has its transactions up to " +
                          std::to_string(last) + " of " + std::to_string(told.acknowledged) +
                          " acknowledged and " + std::to_string(told.asked) + " asked for";
  if (last < told.acknowledged || last > told.asked || told.refused.contains(last)) throw Failure(who);
  Content expected;
  for (int n = 1; n <= last; ++n) {
    if (!told.refused.contains(n)) apply(caller, n, expected);
  }
  if (content == expected) return;
  std::string rows;
  for (const auto& [key, item] : expected) {
    if (content.contains(key) && content.at(key) == item) continue;
    rows += " " + key + " of " + number_of(item) + " is " +
            (content.contains(key) ? "of " + number_of(content.at(key)) : "not there");
  }
  for (const auto& [key, item] : content) {
    if (!expected.contains(key)) rows += " " + key + " of " + number_of(item) + " should be gone";
  }
  std::string refused;
  for (const int n : told.refused)
    refused += " " + std::to_string(n);
  throw Failure(who + ", but" + rows + "; refused:" + refused);
}

// LMDB copies what is in use, and fails if pages are neither that nor free, or both.
void check_pages(const std::string& folder) {
  MDB_env* env = nullptr;
  int code = mdb_env_create(&env);
  if (code == 0) code = mdb_env_set_maxdbs(env, 1);
  if (code == 0) code = mdb_env_open(env, folder.c_str(), MDB_RDONLY, 0600);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (code == 0) code = mdb_env_copyfd2(env, nowhere, MDB_CP_COMPACT);
  ::close(nowhere);
  mdb_env_close(env);
  if (code != 0) throw Failure(std::string("LMDB's pages: ") + mdb_strerror(code));
}

void lay_out(const FileImages& images, const std::string& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : images)
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
}

void check(const FileImages& images, const std::map<std::uint64_t, Told>& told, const std::string& folder) {
  lay_out(images, folder);
  constexpr std::uint64_t kNewcomer = 900;
  {
    const auto table = open_lmdb_table(folder, options(1));
    if (!table) throw Failure(to_string(table.error()));
    for (const auto& [caller, one] : told)
      check_caller(**table, caller, one);
    for (int n = 1; n <= 10; ++n) {
      std::vector<TransactItem> items = transaction(kNewcomer, n);
      const auto outcome = run((*table)->transact(std::move(items), "t"));
      if (!outcome) throw Failure(to_string(outcome.error()));
    }
  }
  check_pages(folder);
  std::filesystem::remove(folder + "/log");  // It was closed: the rows are in data.mdb alone.
  const auto table = open_lmdb_table(folder, options(1));
  if (!table) throw Failure(to_string(table.error()));
  for (const auto& [caller, one] : told)
    check_caller(**table, caller, one);
  check_caller(**table, kNewcomer, Told{.asked = 10, .acknowledged = 10, .refused = {}});
}

// The same, when power is lost again while the table is opened and closed.
FileImages interrupted(const FileImages& images, const std::string& folder, std::uint64_t chance,
                       Random& random) {
  lay_out(images, folder);
  DiskRecorder::watch(folder);
  static_cast<void>(open_lmdb_table(folder, options(1)).has_value());
  DiskRecorder::stop();
  Disk disk(images);
  disk.go_to(uniform(random, DiskRecorder::size() + 1));
  return disk.after_power_loss(random, chance);
}

// Moments that are rare and matter: two parts of the log are on their way to the disk at once, a record was taken back,
// somebody was refused. Some of them are always among those that are looked at.
std::vector<std::uint64_t> special_moments(std::uint64_t events) {
  using Kind = DiskRecorder::Event::Kind;
  constexpr std::uint32_t kLog = 1;
  constexpr std::uint64_t kHead = 48;  // So much of a record is wiped to take it back.
  std::vector<std::uint64_t> moments;
  std::size_t pending = 0;
  for (std::uint64_t i = 0; i < events; ++i) {
    const DiskRecorder::Event event = DiskRecorder::event(i);
    if (event.kind == Kind::note && event.at % 4 == static_cast<std::uint64_t>(Said::refused))
      moments.push_back(i + 1);
    if (event.kind == Kind::note || event.file != kLog) continue;
    if (event.kind == Kind::write) ++pending;
    if (event.kind == Kind::sync) pending = 0;
    // Zeros ahead of the first record are no part of anything.
    if (event.kind == Kind::write && pending > 1 && event.bytes < kPadding) moments.push_back(i + 1);
    if (event.kind == Kind::write && event.bytes == kHead) moments.insert(moments.end(), {i + 2, i + 8});
  }
  std::erase_if(moments, [events](std::uint64_t moment) { return moment > events; });
  return moments;
}

// For whoever has to find out how it came to that.
void dump_events(const std::string& path) {
  std::ofstream out(path);
  for (std::uint64_t i = 0; i < DiskRecorder::size(); ++i) {
    const DiskRecorder::Event event = DiskRecorder::event(i);
    out << i << " process " << event.process << " kind " << static_cast<int>(event.kind) << " file "
        << event.file << " at " << event.at << " bytes " << event.bytes << "\n";
  }
}

struct State {
  FileImages images;
  std::map<std::uint64_t, Told> told;
  std::string name;
};

void check(const State& state, const std::string& folder) {
  try {
    check(state.images, state.told, folder);
  } catch (const Failure& failure) {
    if (const char* const kept = std::getenv("POWER_LOSS_KEPT"); kept != nullptr) {
      lay_out(state.images, std::string(kept) + "/disk");
      dump_events(std::string(kept) + "/events");
    }
    throw Failure(state.name + ": " + failure.what());
  }
}

// One recorded run, and so many states after it.
void run_trace(std::uint64_t seed) {
  static constexpr std::array<std::uint64_t, 7> kChances = {0, 3, 20, 50, 80, 97, 100};
  const TemporaryDirectory temporary;
  const std::string folder = (temporary.path() / "table").string();
  SeededRandom random(seed);
  Disk disk(record(folder, random));
  const std::uint64_t events = DiskRecorder::size();
  std::set<std::uint64_t> moments;
  while (moments.size() < std::min(kStatesOfATrace - kInterrupted, events / 2))
    moments.insert(uniform(random, events + 1));
  const std::vector<std::uint64_t> special = special_moments(events);
  for (std::size_t i = 0; i < kSpecial && !special.empty(); ++i)
    moments.insert(special[uniform(random, special.size())]);
  std::vector<State> again;
  for (const std::uint64_t moment : moments) {
    disk.go_to(moment);
    const std::uint64_t chance = kChances[uniform(random, kChances.size())];
    const std::string name = "seed " + std::to_string(seed) + ", event " + std::to_string(moment) + " of " +
                             std::to_string(events) + ", chance " + std::to_string(chance);
    State state{disk.after_power_loss(random, chance), told_until(moment), name};
    check(state, folder);
    if (uniform(random, 3) == 0 && again.size() < kInterrupted) again.push_back(std::move(state));
  }
  // These need the recorder for themselves.
  for (State& state : again) {
    state.images = interrupted(state.images, folder, kChances[uniform(random, kChances.size())], random);
    state.name += ", and again while it was opened";
    check(state, folder);
  }
}

std::uint64_t number_after(const std::vector<std::string>& words, const std::string& option,
                           std::uint64_t otherwise) {
  const auto at = std::find(words.begin(), words.end(), option);
  if (at == words.end()) return otherwise;
  if (at + 1 == words.end()) throw Failure(option + " needs a number");
  return std::stoull(*(at + 1));
}

int main_with(const std::vector<std::string>& words) {
  // What is flushed is recorded, and that it was. So no disk is needed, if there is memory.
  if (std::filesystem::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 1);
  const std::uint64_t states = number_after(words, "--states", 300);
  const std::uint64_t minutes = number_after(words, "--minutes", 4);
  const std::uint64_t first = number_after(words, "--seed", 1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(minutes);
  std::uint64_t done = 0;
  for (std::uint64_t seed = first; done < states && std::chrono::steady_clock::now() < end; ++seed) {
    std::cout.flush();
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        run_trace(seed);
      } catch (const std::exception& failure) {
        std::cout << failure.what() << std::endl;
        std::_Exit(1);
      }
      std::_Exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) {
      std::cout << "failed with status " << status << "; again with --seed " << seed
                << " --states 1 (the processes' race may take another turn)\n";
      return 1;
    }
    done += kStatesOfATrace;
  }
  std::cout << "about " << done << " states, all whole\n";
  return 0;
}

}  // namespace
}  // namespace facetheory::test

int main(int argc, char** argv) {
  return facetheory::test::main_with({argv + 1, argv + argc});
}
