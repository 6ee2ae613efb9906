// What several processes on one LMDB directory do to each other, and what a killed or starved one leaves
// behind.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/random.h"
#include "facetheory/table/lmdb_table.h"

#include "tests/crash/crash_rows.h"
#include "tests/support/run.h"
#include "tests/support/servers.h"

namespace facetheory::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class LmdbProcessesTest : public ::testing::Test {
 protected:
  std::string directory() const { return (temporary_.path() / "table").string(); }

  std::unique_ptr<Table> open(const LmdbOptions& options = {}) {
    Result<std::unique_ptr<Table>> table = open_lmdb_table(directory(), options);
    if (!table) throw std::runtime_error(to_string(table.error()));
    return *std::move(table);
  }

  std::unique_ptr<ChildProcess> start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), LMDB_WORKER);
    return std::make_unique<ChildProcess>(std::move(arguments));
  }

  void eight_count_to_ten_thousand(const std::vector<std::string>& more) {
    std::vector<std::string> command = {COUNTER_WORKER, "lmdb:" + directory(), "1250"};
    command.insert(command.end(), more.begin(), more.end());
    std::vector<std::unique_ptr<ChildProcess>> workers;
    for (int i = 0; i < 8; ++i)
      workers.push_back(std::make_unique<ChildProcess>(command));
    for (const auto& worker : workers)
      EXPECT_EQ(worker->wait(120s), 0) << worker->output();
    const std::unique_ptr<Table> table = open();
    const std::optional<Item> counter = get(*table, counter_key());
    ASSERT_TRUE(counter);
    EXPECT_EQ(counter->attributes, (Attributes{{"n", 10000}}));
  }

  static std::optional<Item> get(Table& table, const Key& key) {
    Result<std::optional<Item>> item = run(table.get(key, Consistency::strong));
    if (!item) throw std::runtime_error(to_string(item.error()));
    return *std::move(item);
  }

  // The highest number the worker said was acknowledged.
  static int last_acknowledged(const ChildProcess& worker, const std::string& word = "wrote ") {
    const std::string output = worker.output();
    const std::size_t position = output.rfind(word);
    if (position == std::string::npos || output.find('\n', position) == std::string::npos) return 0;
    return std::stoi(output.substr(position + word.size()));
  }

  // The number of a page or lease that render wrote; 0: there is none.
  static std::int64_t number_in(const std::optional<Item>& item) {
    return item ? *item->attributes.find("n")->as<Number>()->to_int64() : 0;
  }

  // Page and lease in one look: the lease is the next page's or is not there. How far the worker had come; that can
  // only grow from one look to the next.
  static std::int64_t progress_of(Table& table, const std::string& run_name) {
    Query query{.pk = "RUN#" + run_name};
    const Result<QueryPage> page = run(table.query(std::move(query)));
    if (!page) throw std::runtime_error(to_string(page.error()));
    std::optional<Item> lock;
    std::optional<Item> meta;
    for (const Item& item : page->items)
      (item.key.sk == "LOCK" ? lock : meta) = item;
    const std::int64_t published = 3 * number_in(meta);
    if (!lock) return published;
    EXPECT_EQ(number_in(lock), number_in(meta) + 1);
    if (lock->attributes.find("older") != nullptr) return published + 1;
    EXPECT_EQ(*lock, lease_of(run_name, static_cast<int>(number_in(lock))));
    return published + 2;
  }

  // Every acknowledged row is there and whole, and the pair was never torn.
  static void expect_all_rows(Table& table, const std::string& run_name, int acknowledged) {
    for (int n = 1; n <= acknowledged; ++n) {
      const Item expected = numbered_row(run_name, n);
      ASSERT_EQ(get(table, expected.key), expected)
          << run_name << " lost row " << n << " of " << acknowledged;
    }
    const auto left = get(table, half_of_pair(run_name, 0, "left").key);
    const auto right = get(table, half_of_pair(run_name, 0, "right").key);
    ASSERT_TRUE(left && right) << run_name;
    EXPECT_EQ(left->attributes, right->attributes) << run_name;
    EXPECT_GE(left->attributes.find("n")->as<Number>()->to_int64(), acknowledged) << run_name;
  }

  TemporaryDirectory temporary_;
};

TEST_F(LmdbProcessesTest, FiftyKilledWritersLoseNothingThatWasAcknowledgedAndBlockNobody) {
  const std::unique_ptr<Table> table = open();
  SeededRandom random(1);
  for (int i = 0; i < 50; ++i) {
    const std::string run_name = std::to_string(i);
    const auto worker = start({"write", directory(), run_name});
    ASSERT_TRUE(worker->wait_for_output("wrote 1\n", 10s)) << worker->output();
    std::this_thread::sleep_for(std::chrono::microseconds(uniform(random, 15000)));  // Kill it anywhere.
    worker->kill();
    expect_all_rows(*table, run_name, last_acknowledged(*worker));

    Write own = Put{Item{{"SURVIVOR", run_name}, {{"n", i}}}};
    const Result<WriteOutcome> outcome = run(table->write(std::move(own), Durability::machine));
    ASSERT_TRUE(outcome) << to_string(outcome.error());
    EXPECT_TRUE(get(*table, {"SURVIVOR", run_name}));
  }
}

TEST_F(LmdbProcessesTest, EightProcessesIncrementOneCounterTenThousandTimesExactly) {
  eight_count_to_ten_thousand({});
}

TEST_F(LmdbProcessesTest, FiftyKilledRenderersLeaveTheirLeaseOrTheirPageAndNeverBothOrNeither) {
  const std::unique_ptr<Table> table = open();
  SeededRandom random(2);
  for (int i = 0; i < 50; ++i) {
    const std::string run_name = std::to_string(i);
    const auto worker = start({"render", directory(), run_name});
    ASSERT_TRUE(worker->wait_for_output("wrote 1\n", 10s)) << worker->output();
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(uniform(random, 15000));
    std::int64_t progress = 0;
    const auto look = [&] {
      const std::int64_t now = progress_of(*table, run_name);
      EXPECT_GE(now, progress);
      progress = now;
    };
    do {
      look();
    } while (std::chrono::steady_clock::now() < end);
    worker->kill();

    // Others go on. What was killed within LMDB's commit may have happened: that shows with the next write.
    look();
    const auto write_something = [&] {
      Write own = Put{Item{{"SURVIVOR", run_name}, {{"n", i}}}};
      const Result<WriteOutcome> outcome = run(table->write(std::move(own), Durability::machine));
      ASSERT_TRUE(outcome) << to_string(outcome.error());
    };
    write_something();
    look();
    const int taken = last_acknowledged(*worker, "took ");
    const int written = last_acknowledged(*worker);
    const std::int64_t lease = number_in(get(*table, lease_of(run_name, 0).key));
    const std::int64_t page = number_in(get(*table, page_of(run_name, 0).key));
    EXPECT_GE(page, written);
    EXPECT_LE(page, taken + 1);
    EXPECT_GE(std::max(page, lease), taken) << "an acknowledged lease is neither there nor published";
    EXPECT_LE(std::max(page, lease), taken + 1);

    write_something();
    EXPECT_EQ(number_in(get(*table, lease_of(run_name, 0).key)), lease);
    Write next = Put{lease_of(run_name, 1), attr("pk").not_exists()};
    const auto outcome = run(table->write(std::move(next), Durability::process));
    ASSERT_TRUE(outcome) << to_string(outcome.error());
    EXPECT_EQ(std::holds_alternative<Written>(*outcome), lease == 0);
  }
}

TEST_F(LmdbProcessesTest, EightProcessesIncrementALeaseTenThousandTimesExactly) {
  eight_count_to_ten_thousand({"lease"});
}

TEST_F(LmdbProcessesTest, AFullDiskRefusesTheRowAndNotTheLeaseBesideIt) {
  open();
  const auto worker = start({"fill-beside-leases", directory(), "8000000"});
  EXPECT_EQ(worker->wait(60s), 1) << worker->output();
  EXPECT_THAT(worker->output(), HasSubstr("exhausted: "));
  EXPECT_THAT(worker->output(), Not(HasSubstr("failed to take")));
  EXPECT_THAT(worker->output(), Not(HasSubstr("never there")));
  const int taken = last_acknowledged(*worker, "took ");
  EXPECT_EQ(taken, last_acknowledged(*worker) + 20);
  const std::unique_ptr<Table> table = open();
  for (int n = 1; n <= taken; ++n) {
    const Item lease = lease_of(std::to_string(n), n);
    EXPECT_EQ(get(*table, lease.key), lease);
  }
}

TEST_F(LmdbProcessesTest, ADiskTooFullForTheLeasesIsNamedWithTheRemedy) {
  const auto worker = start({"fill", directory(), "2000000"});
  EXPECT_EQ(worker->wait(60s), 1) << worker->output();
  EXPECT_THAT(worker->output(), HasSubstr("exhausted: making the file leases"));
  EXPECT_THAT(worker->output(), HasSubstr("free space"));
  EXPECT_FALSE(get(*open(), counter_key()));  // Where there is room it is finished.
}

TEST_F(LmdbProcessesTest, ATableInUseByAnOlderProgramIsNotTakenOver) {
  open();
  const auto older = start({"hold", directory()});
  ASSERT_TRUE(older->wait_for_output("holding", 10s)) << older->output();
  const auto downgrade = start({"format", directory(), "facetheory table 1"});
  ASSERT_EQ(downgrade->wait(10s), 0) << downgrade->output();
  const Result<std::unique_ptr<Table>> refused = open_lmdb_table(directory());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("stop it first"));
  older->kill();
  EXPECT_TRUE(open_lmdb_table(directory()));
}

TEST_F(LmdbProcessesTest, AFullDiskRefusesTheWriteAndLosesNothing) {
  const auto worker = start({"fill", directory(), "8000000"});
  EXPECT_EQ(worker->wait(60s), 1) << worker->output();
  EXPECT_THAT(worker->output(), HasSubstr("exhausted: "));
  EXPECT_THAT(worker->output(), HasSubstr(directory()));
  const int acknowledged = last_acknowledged(*worker);
  EXPECT_GT(acknowledged, 20);

  const std::unique_ptr<Table> table = open();  // This process has no such limit.
  expect_all_rows(*table, "fill", acknowledged);
  std::vector<TransactItem> next = crash_rows("fill", acknowledged + 1);
  const Result<TransactOutcome> outcome = run(table->transact(std::move(next), "t"));
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  expect_all_rows(*table, "fill", acknowledged + 1);
}

TEST_F(LmdbProcessesTest, AnAcknowledgedWriteOfOneProcessIsSeenByTheNextReadOfAnother) {
  const std::unique_ptr<Table> table = open();
  EXPECT_FALSE(get(*table, numbered_row("seen", 1).key));
  const auto worker = start({"write", directory(), "seen"});
  for (int n = 1; n <= 20; ++n) {
    ASSERT_TRUE(worker->wait_for_output("wrote " + std::to_string(n) + "\n", 10s));
    EXPECT_TRUE(get(*table, numbered_row("seen", n).key)) << n;
  }
}

TEST_F(LmdbProcessesTest, NobodyVouchesForWhatAnotherProcessCommits) {
  const std::unique_ptr<Table> table = open();
  const Key written = numbered_row("theirs", 1).key;
  RowSet theirs;
  theirs.add(written);
  Write ours = Put{Item{{"ours", "META"}, {}}};
  ASSERT_TRUE(run(table->write(std::move(ours), Durability::machine)));
  const std::uint64_t before = table->version().value();
  // Finds nothing, and so leaves the number of its transaction to somebody else.
  std::vector<TransactItem> nothing{Delete{{"nobody", "META"}}, Delete{{"nobody", "VER#1"}}};
  ASSERT_TRUE(run(table->transact(std::move(nothing), "t")));
  ASSERT_EQ(table->version(), before);
  const auto worker = start({"write", directory(), "theirs"});
  ASSERT_TRUE(worker->wait_for_output("wrote 1\n", 10s));
  worker->kill();
  const std::uint64_t after = table->version().value();
  EXPECT_TRUE(get(*table, written));
  for (std::uint64_t to = before + 1; to <= after; ++to)
    EXPECT_FALSE(table->left_alone(theirs, before, to)) << to - before;
}

TEST_F(LmdbProcessesTest, AReaderFollowsATableThatAnotherProcessMadeManyTimesLarger) {
  const std::unique_ptr<Table> table = open();
  EXPECT_FALSE(get(*table, counter_key()));
  const auto worker = start({"fill", directory(), "40000000"});
  EXPECT_EQ(worker->wait(120s), 1) << worker->output();
  expect_all_rows(*table, "fill", last_acknowledged(*worker));
}

TEST_F(LmdbProcessesTest, OpeningTheTableClearsReadersOfDeadProcesses) {
  open();
  const auto holder = start({"hold", directory()});
  ASSERT_TRUE(holder->wait_for_output("holding", 10s)) << holder->output();
  holder->kill();
  open();
  const auto counter = start({"dead-readers", directory()});
  EXPECT_EQ(counter->wait(10s), 0);
  EXPECT_EQ(counter->output(), "dead readers: 0\n");
}

TEST_F(LmdbProcessesTest, AnOpenTableClearsReadersOfDeadProcessesFromTimeToTime) {
  const std::unique_ptr<Table> table = open({.reader_check_interval = 20ms});
  const auto holder = start({"hold", directory()});
  ASSERT_TRUE(holder->wait_for_output("holding", 10s)) << holder->output();
  holder->kill();
  std::this_thread::sleep_for(500ms);  // Many intervals; nothing else makes the check happen.
  const auto counter = start({"dead-readers", directory()});
  EXPECT_EQ(counter->wait(10s), 0);
  EXPECT_EQ(counter->output(), "dead readers: 0\n");
}

TEST_F(LmdbProcessesTest, WithoutSuchACheckADeadReaderWouldStay) {
  const std::unique_ptr<Table> table = open();
  const auto holder = start({"hold", directory()});
  ASSERT_TRUE(holder->wait_for_output("holding", 10s)) << holder->output();
  holder->kill();
  const auto counter = start({"dead-readers", directory()});
  EXPECT_EQ(counter->wait(10s), 0);
  EXPECT_EQ(counter->output(), "dead readers: 1\n");
}

TEST_F(LmdbProcessesTest, ADirectoryThatCannotBeWrittenIsNamedWithTheRemedy) {
  std::filesystem::create_directory(directory());
  std::filesystem::permissions(temporary_.path(), std::filesystem::perms::all);
  std::filesystem::permissions(directory(), std::filesystem::perms{0555});
  const auto worker = start({"open-unprivileged", directory()});
  EXPECT_EQ(worker->wait(10s), 1);
  EXPECT_THAT(worker->output(), HasSubstr("invalid: "));
  EXPECT_THAT(worker->output(), HasSubstr(directory()));
  EXPECT_THAT(worker->output(), HasSubstr("make the directory and its files writable"));
}

TEST_F(LmdbProcessesTest, FilesThatCannotBeWrittenAreNamedWithTheRemedy) {
  open();
  std::filesystem::permissions(temporary_.path(), std::filesystem::perms::all);
  std::filesystem::permissions(directory(), std::filesystem::perms{0555});
  for (const auto& file : std::filesystem::directory_iterator(directory())) {
    std::filesystem::permissions(file.path(), std::filesystem::perms{0444});
  }
  const auto worker = start({"open-unprivileged", directory()});
  EXPECT_EQ(worker->wait(10s), 1);
  EXPECT_THAT(worker->output(), HasSubstr("writable"));
}

}  // namespace
}  // namespace facetheory::test
