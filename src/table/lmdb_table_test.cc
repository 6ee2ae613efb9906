#include "facetheory/table/lmdb_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lmdb.h>
#include <sys/stat.h>

#include "facetheory/base/random.h"
#include "facetheory/table/lmdb_keys.h"
#include "facetheory/table/lmdb_leases.h"
#include "facetheory/table/lmdb_rows.h"
#include "facetheory/table/memory_table.h"

#include "tests/support/run.h"
#include "tests/support/servers.h"

namespace facetheory {
namespace {

using test::run;
using ::testing::AllOf;
using ::testing::HasSubstr;

class LmdbTableTest : public ::testing::Test {
 protected:
  std::string directory() const { return (temporary_.path() / "table").string(); }
  std::filesystem::path leases_file() const { return temporary_.path() / "table" / "leases"; }
  std::filesystem::path file() const { return temporary_.path() / "table" / "data.mdb"; }

  Result<std::unique_ptr<Table>> open() { return open_lmdb_table(directory()); }

  static void put(Table& table, Item item) {
    Write write = Put{std::move(item)};
    const Result<WriteOutcome> outcome = run(table.write(std::move(write), Durability::machine));
    ASSERT_TRUE(outcome) << to_string(outcome.error());
  }

  static void lease(Table& table, Write write) {
    const Result<WriteOutcome> outcome = run(table.write(std::move(write), Durability::process));
    ASSERT_TRUE(outcome) << to_string(outcome.error());
    ASSERT_TRUE(std::holds_alternative<Written>(*outcome));
  }

  static bool transact(Table& table, std::vector<TransactItem> items) {
    const Result<TransactOutcome> outcome = run(table.transact(std::move(items), "token"));
    if (!outcome) throw std::runtime_error(to_string(outcome.error()));
    return std::holds_alternative<Committed>(*outcome);
  }

  static std::vector<Item> query(Table& table, Query query) {
    const Result<QueryPage> page = run(table.query(std::move(query)));
    if (!page) throw std::runtime_error(to_string(page.error()));
    return page->items;
  }

  static Result<std::optional<Item>> get(Table& table, const Key& key) {
    return run(table.get(key, Consistency::strong));
  }

  std::string bytes() const {
    std::ifstream in(file(), std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }

  void overwrite(const std::string& bytes) const { std::ofstream(file(), std::ios::binary) << bytes; }

  // Puts one entry into the directory's LMDB file by hand.
  void put_raw(std::string_view key, std::string_view value) const {
    std::filesystem::create_directories(directory());
    MDB_env* env = nullptr;
    MDB_txn* txn = nullptr;
    MDB_dbi dbi = 0;
    MDB_val key_val{key.size(), const_cast<char*>(key.data())};
    MDB_val value_val{value.size(), const_cast<char*>(value.data())};
    ASSERT_EQ(mdb_env_create(&env), 0);
    ASSERT_EQ(mdb_env_open(env, directory().c_str(), 0, 0660), 0);
    ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
    ASSERT_EQ(mdb_dbi_open(txn, nullptr, 0, &dbi), 0);
    ASSERT_EQ(mdb_put(txn, dbi, &key_val, &value_val, 0), 0);
    ASSERT_EQ(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
  }

  test::TemporaryDirectory temporary_;
};

std::string random_sk(Random& random) {
  static const std::array<std::string, 6> sks = {"LOCK", "META", "A", "Z", "LOCK2", std::string(500, 'k')};
  return sks[uniform(random, sks.size())];
}

std::vector<TransactItem> random_items(const std::string& pk, Random& random) {
  std::vector<TransactItem> items;
  std::set<std::string> named;
  const std::uint64_t count = 1 + (uniform(random, 2) == 0 ? 0 : uniform(random, 3));
  while (items.size() < count) {
    const Key key{pk, random_sk(random)};
    if (!named.insert(key.sk).second) continue;
    const Condition condition = uniform(random, 2) == 0 ? Condition() : attr("n") < 50;
    const auto n = static_cast<std::int64_t>(uniform(random, 100));
    switch (uniform(random, 5)) {
      case 0:
        items.emplace_back(Delete{key, condition});
        break;
      case 1:
        items.emplace_back(Update{key, Changes().set("n", n).set("changed", true), condition});
        break;
      case 2:
        items.emplace_back(Check{key, attr("n").not_exists() || attr("n") < 80});
        break;
      default:
        items.emplace_back(
            Put{Item{key, {{"n", n}, {"text", std::string(uniform(random, 1500), 'x')}}}, condition});
    }
  }
  return items;
}

// A single item as a write where it is one, so that its durability counts.
Task<Result<TransactOutcome>> submit(Table& table, std::vector<TransactItem> items, Durability durability) {
  std::optional<Write> write;
  if (items.size() == 1) {
    if (auto* put = std::get_if<Put>(&items[0])) write = std::move(*put);
    if (auto* update = std::get_if<Update>(&items[0])) write = std::move(*update);
    if (auto* erase = std::get_if<Delete>(&items[0])) write = std::move(*erase);
  }
  if (!write) {
    std::string token = "token";
    co_return co_await table.transact(std::move(items), std::move(token));
  }
  Result<WriteOutcome> outcome = co_await table.write(*std::move(write), durability);
  if (!outcome) co_return outcome.error();
  if (std::holds_alternative<Written>(*outcome)) co_return TransactOutcome(Committed{});
  co_return TransactOutcome(Cancelled{});
}

const Item kPage{{"CACHE#page", "META"},
                 {{"s3_key", "a-body-that-is-easy-to-find"}, {"generated_at", 1700000000}}};

TEST_F(LmdbTableTest, KeepsItsRowsWhenItIsClosedAndOpenedAgain) {
  put(**open(), kPage);
  EXPECT_EQ(*get(**open(), kPage.key), kPage);
}

TEST_F(LmdbTableTest, TwoTablesOfOneProcessMayNameTheSameDirectory) {
  const auto first = open();
  const auto second = open_lmdb_table(directory() + "/../table/.");
  ASSERT_TRUE(first && second);
  put(**first, kPage);
  EXPECT_EQ(*get(**second, kPage.key), kPage);
}

// What was written to a file that nobody else can open would be lost, and nobody would know.
TEST_F(LmdbTableTest, WritesAreRefusedWhileItsFolderIsGoneAndReadsAreNot) {
  const LmdbOptions options{.place_check_interval = std::chrono::milliseconds(0)};
  const auto table = open_lmdb_table(directory(), options);
  ASSERT_TRUE(table);
  put(**table, kPage);
  const std::string away = directory() + "-away";
  std::filesystem::rename(directory(), away);
  const auto refused = [&] {
    Write write = Put{kPage};
    const Result<WriteOutcome> outcome = run((**table).write(std::move(write), Durability::process));
    return outcome ? "written" : outcome.error().message;
  };
  EXPECT_THAT(refused(), HasSubstr("was deleted or replaced while it was open"));
  EXPECT_EQ(*get(**table, kPage.key), kPage);
  {
    const auto another = open_lmdb_table(directory());
    ASSERT_TRUE(another);
    EXPECT_EQ(*get(**another, kPage.key), std::nullopt);
    EXPECT_THAT(refused(), HasSubstr("restart this program to begin with what is there now"));
  }
  std::filesystem::remove_all(directory());
  std::filesystem::rename(away, directory());
  EXPECT_EQ(refused(), "written");
}

TEST_F(LmdbTableTest, ItsVersionIsTheSameUntilSomebodyWrites) {
  const auto ours = open();
  const auto theirs = open();
  put(**theirs, kPage);
  const auto before = (*ours)->version();
  ASSERT_TRUE(before);
  EXPECT_EQ(*get(**ours, kPage.key), kPage);
  EXPECT_EQ((*ours)->version(), before);
  Write page = Put{Item{{"CACHE#page", "META"}, {{"s3_key", "another"}}}};
  ASSERT_TRUE(run((*theirs)->write(std::move(page), Durability::machine)));
  EXPECT_NE((*ours)->version(), before);
}

TEST_F(LmdbTableTest, RowsHaveTheSameStampUntilOneOfThemChanges) {
  const auto ours = open();
  const auto theirs = open();
  const std::vector<Key> keys{{"CACHE#page", "META"}, {"CACHE#other", "META"}};
  put(**theirs, Item{keys[0], {{"a", "1"}}});
  const auto before = (*ours)->stamp(keys);
  ASSERT_TRUE(before);
  put(**theirs, Item{{"CACHE#third", "META"}, {{"a", "1"}}});
  EXPECT_EQ((*ours)->stamp(keys), before);
  put(**theirs, Item{keys[1], {{"a", "1"}}});
  const auto both = (*ours)->stamp(keys);
  EXPECT_NE(both, before);
  put(**theirs, Item{keys[0], {{"a", "2"}}});
  EXPECT_NE((*ours)->stamp(keys), both);
  EXPECT_NE((*ours)->stamp({keys[1], keys[0]}), (*ours)->stamp(keys));
  put(**theirs, Item{keys[0], {{"a", "1"}}});
  EXPECT_EQ((*ours)->stamp(keys), both);
}

TEST_F(LmdbTableTest, VouchesForRowsThatItsCommitsLeftAlone) {
  const auto table = open();
  put(**table, kPage);
  RowSet page;
  page.add(kPage.key);
  const std::uint64_t before = (*table)->version().value();
  const Item other{{"CACHE#other", "META"}, {{"a", "1"}}};
  RowSet others;
  others.add(other.key);
  ASSERT_FALSE(page.meets(others));
  for (int i = 0; i < 3; ++i)
    put(**table, other);
  const std::uint64_t between = (*table)->version().value();
  EXPECT_TRUE((*table)->left_alone(page, before, between));
  EXPECT_FALSE((*table)->left_alone(others, before, between));
  std::vector<TransactItem> both{Put{kPage}, Put{other}};
  ASSERT_TRUE(run((*table)->transact(std::move(both), "t")));
  const std::uint64_t after = (*table)->version().value();
  EXPECT_FALSE((*table)->left_alone(page, before, after));
  EXPECT_FALSE((*table)->left_alone(page, between, after));
  lease(**table, Delete{kPage.key});
  EXPECT_FALSE((*table)->left_alone(page, after, (*table)->version().value()));
}

TEST_F(LmdbTableTest, LeasesComeAndGoWithoutAnotherVersion) {
  const auto table = open();
  put(**table, kPage);
  const auto before = (*table)->version();
  const Key lock{"CACHE#page", "LOCK"};
  for (int i = 0; i < 3; ++i) {
    lease(**table, Put{Item{lock, {{"lease_token", i}}}});
    lease(**table, Update{lock, Changes().set("lease_expires_at", i)});
    EXPECT_EQ(*get(**table, lock), (Item{lock, {{"lease_token", i}, {"lease_expires_at", i}}}));
    lease(**table, Delete{lock, attr("lease_token") == i});
    EXPECT_EQ(*get(**table, lock), std::nullopt);
  }
  EXPECT_EQ((*table)->version(), before);
  // A change of a page's own row changes the version.
  lease(**table, Delete{kPage.key});
  EXPECT_NE((*table)->version(), before);
}

TEST_F(LmdbTableTest, MayBeOpenedWhileAnotherThreadClosesIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 50; ++i) {
        const auto table = open();
        EXPECT_TRUE(table) << to_string(table.error());
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(LmdbTableTest, ReadsAndWritesFromManyThreadsAtOnce) {
  const auto table = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&table, t] {
      for (int i = 0; i < 50; ++i) {
        const Item item{{"THREAD#" + std::to_string(t), std::to_string(i)}, {{"n", i}}};
        put(**table, item);
        EXPECT_EQ(*get(**table, item.key), item);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(run((**table).describe())->items, 400U);
}

TEST_F(LmdbTableTest, ALeaseWriteIsSeenAtOnceAlthoughItNeedNotSurvivePowerLoss) {
  const auto table = open();
  Write write = Put{kPage};
  ASSERT_TRUE(run((**table).write(std::move(write), Durability::process)));
  EXPECT_EQ(*get(**table, kPage.key), kPage);
}

TEST_F(LmdbTableTest, AJobThatCannotBeCarriedOutDoesNotHarmThoseBesideIt) {
  const auto table = open();
  put(**table, Item{{"p", "text"}, {{"a", "not a number"}}});
  std::vector<Task<Result<WriteOutcome>>> writes;
  for (int i = 0; i < 20; ++i) {
    Write good = Put{Item{{"p", "good" + std::to_string(i)}, {}}};
    Write bad = Update{{"p", "text"}, Changes().increment("a", 1)};
    writes.push_back((**table).write(std::move(good), Durability::machine));
    writes.push_back((**table).write(std::move(bad), Durability::machine));
  }
  const auto outcomes = test::run_all(std::move(writes));
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    EXPECT_EQ(outcomes[i].has_value(), i % 2 == 0) << i;
}

TEST_F(LmdbTableTest, ADamagedRowIsNamedAndTheOthersStayReadable) {
  const Item other{{"CACHE#other", "META"}, {{"s3_key", "b"}}};
  {
    const auto table = open();
    put(**table, kPage);
    put(**table, other);
  }
  std::string content = bytes();
  for (std::size_t at = content.find("easy-to-find"); at != std::string::npos;
       at = content.find("easy-to-find", at + 1)) {
    content[at] = 'E';
  }
  overwrite(content);

  const auto table = open();
  ASSERT_TRUE(table) << to_string(table.error());
  const auto damaged = get(**table, kPage.key);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, ErrorCode::corrupt);
  EXPECT_THAT(damaged.error().message, AllOf(HasSubstr("CACHE#page / META"), HasSubstr(directory())));
  const auto all = run((*table)->scan({}));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().message, damaged.error().message);
  const auto others = run((*table)->scan({.pass_over_damaged = true}));
  ASSERT_TRUE(others);
  EXPECT_FALSE(others->items.empty());
  EXPECT_EQ(*get(**table, other.key), other);
  Query query{.pk = kPage.key.pk};
  EXPECT_EQ(run((**table).query(std::move(query))).error().code, ErrorCode::corrupt);
  Write conditional = Update{kPage.key, Changes().set("a", 1), attr("a").not_exists()};
  EXPECT_EQ(run((**table).write(std::move(conditional), Durability::machine)).error().code,
            ErrorCode::corrupt);
}

TEST_F(LmdbTableTest, ARowMovedUnderAnotherKeyIsDamage) {
  put(**open(), kPage);
  std::string content = bytes();
  for (std::size_t at = content.find("CACHE#page"); at != std::string::npos;
       at = content.find("CACHE#page", at + 1)) {
    content.replace(at, 10, "CACHE#egap");
  }
  overwrite(content);
  const auto table = open();
  ASSERT_TRUE(table);
  EXPECT_EQ(get(**table, {"CACHE#egap", "META"}).error().code, ErrorCode::corrupt);
}

TEST_F(LmdbTableTest, AFileThatWasCutOffIsRefusedAndLeftAsItIs) {
  {
    const auto table = open();
    for (int i = 0; i < 300; ++i)
      put(**table, Item{{"p", std::to_string(i)}, {{"a", std::string(3000, 'x')}}});
  }
  const std::uintmax_t whole = std::filesystem::file_size(file());
  for (const std::uintmax_t rest : {whole / 4, std::uintmax_t{3 * 4096}}) {
    std::filesystem::resize_file(file(), rest);
    const auto table = open();
    ASSERT_FALSE(table) << rest;
    EXPECT_EQ(table.error().code, ErrorCode::corrupt);
    EXPECT_THAT(table.error().message, AllOf(HasSubstr(directory()), HasSubstr("cut off")));
    EXPECT_EQ(std::filesystem::file_size(file()), rest);
  }
}

TEST_F(LmdbTableTest, AFileThatWasEmptiedIsNoNewTable) {
  put(**open(), kPage);
  std::filesystem::resize_file(file(), 0);
  const auto table = open();
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::corrupt);
  EXPECT_THAT(table.error().message, AllOf(HasSubstr(directory()), HasSubstr("cut off")));
  EXPECT_EQ(std::filesystem::file_size(file()), 0U);
  std::filesystem::remove(file());
  std::filesystem::remove(directory() + "/leases");
  EXPECT_TRUE(open());
}

TEST_F(LmdbTableTest, AFileThatIsNotLmdbIsRefusedAndLeftAsItIs) {
  std::filesystem::create_directories(directory());
  const std::string text(20000, 'x');
  overwrite(text);
  const auto table = open();
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::corrupt);
  EXPECT_THAT(table.error().message, HasSubstr(directory()));
  EXPECT_EQ(bytes(), text);
}

TEST_F(LmdbTableTest, AnotherProgramsLmdbFileIsRefused) {
  put_raw("some key", "some value");
  const auto table = open();
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::invalid);
  EXPECT_THAT(table.error().message, AllOf(HasSubstr("another program"), HasSubstr(directory())));
}

TEST_F(LmdbTableTest, ANewerFormatIsRefusedWithBothVersions) {
  put(**open(), kPage);
  put_raw(std::string_view("\0format", 7), "facetheory table 3");
  const auto table = open();
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::invalid);
  EXPECT_THAT(table.error().message, AllOf(HasSubstr("format 3"), HasSubstr("knows 2")));
}

TEST_F(LmdbTableTest, ATableWithoutLeasesInMemoryIsTakenOverWithItsRows) {
  const Item lock{{"CACHE#page", "LOCK"}, {{"lease_token", "t"}}};
  {
    const auto table = open();
    put(**table, kPage);
    put(**table, lock);
  }
  std::filesystem::remove(leases_file());
  put_raw(std::string_view("\0format", 7), "facetheory table 1");
  for (int opened = 0; opened < 2; ++opened) {
    const auto table = open();
    ASSERT_TRUE(table) << to_string(table.error());
    EXPECT_EQ(*get(**table, kPage.key), kPage);
    EXPECT_EQ(*get(**table, lock.key), lock);
    EXPECT_EQ(run((**table).describe())->items, 2U);
  }
  EXPECT_THAT(bytes(), HasSubstr("facetheory table 2"));
}

TEST_F(LmdbTableTest, LeasesSurviveThatTheTableIsClosedAndNotThatTheMachineRestarts) {
  const Item lock{{"CACHE#page", "LOCK"}, {{"lease_token", "new"}}};
  {
    const auto table = open();
    put(**table, Item{lock.key, {{"lease_token", "old"}}});
    put(**table, kPage);
    lease(**table, Put{lock});
    lease(**table, Put{Item{{"CACHE#other", "LOCK"}, {}}});
  }
  EXPECT_EQ(*get(**open(), lock.key), lock);
  {
    std::fstream leases(leases_file(), std::ios::binary | std::ios::in | std::ios::out);
    leases.seekp(32) << "another-boot";
  }
  const auto table = open();
  ASSERT_TRUE(table) << to_string(table.error());
  EXPECT_EQ(*get(**table, lock.key), (Item{lock.key, {{"lease_token", "old"}}}));
  EXPECT_EQ(*get(**table, {"CACHE#other", "LOCK"}), std::nullopt);
  EXPECT_EQ(*get(**table, kPage.key), kPage);
}

TEST_F(LmdbTableTest, ACopyOfTheDirectoryHasTheRowsAndNoLeases) {
  {
    const auto table = open();
    put(**table, kPage);
    lease(**table, Put{Item{{"CACHE#page", "LOCK"}, {}}});
  }
  const auto copy = temporary_.path() / "copy";
  std::filesystem::copy(directory(), copy);
  const auto table = open_lmdb_table(copy.string());
  ASSERT_TRUE(table) << to_string(table.error());
  EXPECT_EQ(*get(**table, kPage.key), kPage);
  EXPECT_EQ(*get(**table, {"CACHE#page", "LOCK"}), std::nullopt);
  EXPECT_NE(*get(**open(), {"CACHE#page", "LOCK"}), std::nullopt);
}

TEST_F(LmdbTableTest, ALeaseTakesThePlaceOfARowAndGoesTogetherWithIt) {
  const auto table = open();
  const Key lock{"CACHE#page", "LOCK"};
  put(**table, kPage);
  put(**table, Item{lock, {{"lease_token", "old"}}});
  lease(**table, Update{lock, Changes().set("lease_token", "new")});
  const Item renewed{lock, {{"lease_token", "new"}}};
  EXPECT_EQ(*get(**table, lock), renewed);
  EXPECT_EQ(query(**table, {.pk = lock.pk}), (std::vector<Item>{renewed, kPage}));
  EXPECT_EQ(query(**table, {.pk = lock.pk, .direction = Direction::backward}),
            (std::vector<Item>{kPage, renewed}));
  EXPECT_EQ(run((**table).scan({}))->items, (std::vector<Item>{renewed, kPage}));
  EXPECT_EQ(run((**table).describe())->items, 2U);

  EXPECT_FALSE(transact(**table, {Delete{kPage.key}, Delete{lock, attr("lease_token") == "old"}}));
  EXPECT_EQ(*get(**table, lock), renewed);
  EXPECT_TRUE(transact(**table, {Delete{kPage.key}, Delete{lock, attr("lease_token") == "new"}}));
  EXPECT_EQ(*get(**table, lock), std::nullopt);
  put(**table, kPage);  // Whoever writes next clears up.
  EXPECT_EQ(query(**table, {.pk = lock.pk}), std::vector<Item>{kPage});
}

TEST_F(LmdbTableTest, LeasesAreReadAsTheyWereAtOneMomentHoweverOftenTheyChange) {
  constexpr int kRows = 12;
  const auto table = open();
  // Another mapping of the same file, whose owner does not care for LMDB's lock, so that it is quick. It rests now and
  // then, or nobody would ever see a moment.
  struct stat status{};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  const auto leases = LmdbLeases::open(directory(), status.st_ino);
  ASSERT_TRUE(leases);
  const auto write_round = [&leases](int n) {
    for (int row = 0; row < kRows; ++row) {
      const Key key{"p" + std::to_string(row), "LOCK"};
      const LmdbKey where = LmdbKey::of(key);
      ASSERT_TRUE((*leases)->put(where.bytes, LmdbRows::record_of(where, key, {{"n", n}, {"row", row}})));
    }
  };
  write_round(0);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int n = 1; !stop; ++n) {
      write_round(n);
      if (n % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    const auto page = run((**table).scan({}));
    EXPECT_TRUE(page) << to_string(page.error());
    if (!page) break;
    EXPECT_EQ(page->items.size(), std::size_t{kRows});
    std::vector<std::int64_t> rounds(kRows, -1);
    for (const Item& item : page->items) {
      const auto number = [&](const char* name) {
        return item.attributes.find(name)->as<Number>()->to_int64().value();
      };
      rounds[static_cast<std::size_t>(number("row"))] = number("n");
    }
    // Rows are compared in the order in which they are written: each is of its predecessor's round, or of the one
    // before that.
    EXPECT_TRUE(std::is_sorted(rounds.rbegin(), rounds.rend())) << testing::PrintToString(rounds);
    EXPECT_LE(rounds.front() - rounds.back(), 1);
  }
  stop = true;
  writer.join();
}

TEST_F(LmdbTableTest, ATransactionThatOnlyEndsLeasesIsATransaction) {
  const auto table = open();
  const Item first{{"CACHE#1", "LOCK"}, {{"lease_token", "t"}}};
  const Item second{{"CACHE#2", "LOCK"}, {{"lease_token", "t"}}};
  lease(**table, Put{first});
  lease(**table, Put{second});
  EXPECT_FALSE(transact(**table, {Delete{first.key}, Delete{second.key, attr("lease_token") == "x"}}));
  EXPECT_EQ(*get(**table, first.key), first);
  EXPECT_TRUE(transact(**table, {Delete{first.key}, Delete{second.key, attr("lease_token") == "t"}}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(*get(**table, first.key), std::nullopt);
    EXPECT_EQ(*get(**table, second.key), std::nullopt);
    lease(**table, Put{Item{{"CACHE#3", "LOCK"}, {}}});
  }
}

TEST_F(LmdbTableTest, LeasesForWhichThereIsNoRoomInMemoryAreRowsLikeOthers) {
  const auto table = open();
  const auto version = (*table)->version();
  std::vector<Item> items;
  for (int i = 0; i < 20; ++i)
    items.push_back(Item{{"p", "LEASE#" + std::to_string(100 + i)}, {{"n", i}}});
  items.push_back(Item{{"p", "LEASE#large"}, {{"text", std::string(2000, 'x')}}});
  items.push_back(Item{{"p", "LEASE#long" + std::string(900, 'k')}, {}});
  for (const Item& item : items)
    lease(**table, Put{item});
  EXPECT_NE((*table)->version(), version);
  for (int opened = 0; opened < 2; ++opened) {
    EXPECT_EQ(query(**open(), {.pk = "p"}), items);
  }
  for (const Item& item : items)
    lease(**table, Delete{item.key, attr("pk").exists()});
  EXPECT_EQ(query(**table, {.pk = "p"}), std::vector<Item>());
  EXPECT_EQ(run((**table).describe())->items, 0U);
}

TEST_F(LmdbTableTest, WhateverIsALeaseTheTableIsTheSameAsOneInMemory) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SeededRandom random(seed);
    const auto table = open_lmdb_table(directory() + std::to_string(seed));
    ASSERT_TRUE(table);
    MemoryTable model;
    for (int round = 0; round < 120; ++round) {
      // Many at once, so that leases and other rows share transactions; each in a partition of its own, so that their
      // order does not matter.
      std::vector<Task<Result<TransactOutcome>>> ours;
      std::vector<Task<Result<TransactOutcome>>> theirs;
      for (std::uint64_t partition = 0; partition < 4; ++partition) {
        std::vector<TransactItem> items = random_items("p" + std::to_string(partition), random);
        const Durability durability = uniform(random, 3) == 0 ? Durability::machine : Durability::process;
        ours.push_back(submit(**table, items, durability));
        theirs.push_back(submit(model, std::move(items), durability));
      }
      const auto outcomes = test::run_all(std::move(ours));
      const auto expected = test::run_all(std::move(theirs));
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        ASSERT_TRUE(outcomes[i] && expected[i]);
        ASSERT_EQ(outcomes[i]->index(), expected[i]->index()) << "seed " << seed << " round " << round;
      }
      for (std::uint64_t partition = 0; partition < 4; ++partition) {
        const std::string pk = "p" + std::to_string(partition);
        for (const Direction direction : {Direction::forward, Direction::backward}) {
          Query all{.pk = pk, .direction = direction};
          ASSERT_EQ(query(**table, all), query(model, all)) << "seed " << seed << " round " << round;
        }
        const Key key{pk, random_sk(random)};
        ASSERT_EQ(*get(**table, key), *get(model, key));
      }
    }
    EXPECT_EQ(run((**table).describe())->items, run(model.describe())->items);
    std::set<Key> scanned;
    const auto page = run((**table).scan({}));
    for (const Item& item : page->items)
      EXPECT_TRUE(scanned.insert(item.key).second);
    EXPECT_EQ(scanned.size(), run(model.describe())->items);
  }
}

TEST_F(LmdbTableTest, AFileInThePlaceOfTheDirectoryIsNamed) {
  std::ofstream(directory()) << "not a directory";
  const auto table = open();
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::invalid);
  EXPECT_THAT(table.error().message, AllOf(HasSubstr(directory()), HasSubstr("name a directory")));
}

TEST_F(LmdbTableTest, LeasesStandAmongTheOtherRowsAlthoughTheyHaveATreeOfTheirOwn) {
  const auto table = open();
  const std::vector<std::string> sort_keys = {"A", "LOCK", "LOCKED", "META", "REQ#1", "VER#1"};
  for (const char* pk : {"one", "three", "two"}) {
    for (const std::string& sk : sort_keys)
      put(**table, Item{{pk, sk}, {{"of", pk}}});
  }
  put(**table, Item{{"zero", "LOCK"}, {}});

  const auto sks_of = [](const std::vector<Item>& items) {
    std::vector<std::string> sks;
    for (const Item& item : items)
      sks.push_back(item.key.sk);
    return sks;
  };
  for (const std::size_t limit : {1U, 2U, 100U}) {
    std::vector<Item> forward;
    std::vector<Item> backward;
    std::vector<Item> scanned;
    for (auto [direction, seen] :
         {std::pair(Direction::forward, &forward), std::pair(Direction::backward, &backward)}) {
      Query query{.pk = "three", .direction = direction, .limit = limit};
      do {
        const auto page = run((**table).query(query));
        ASSERT_TRUE(page) << to_string(page.error());
        seen->insert(seen->end(), page->items.begin(), page->items.end());
        query.after = page->next;
      } while (query.after);
    }
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(sks_of(forward), sort_keys);
    EXPECT_EQ(backward, forward);

    Scan scan{.limit = limit};
    do {
      const auto page = run((**table).scan(scan));
      ASSERT_TRUE(page) << to_string(page.error());
      scanned.insert(scanned.end(), page->items.begin(), page->items.end());
      scan.after = page->next;
    } while (scan.after);
    EXPECT_EQ(scanned.size(), 19U);
    std::set<Key> keys;
    for (const Item& item : scanned)
      keys.insert(item.key);
    EXPECT_EQ(keys.size(), 19U);
  }
  Query leases{.pk = "two", .sk_prefix = "LOCK"};
  EXPECT_EQ(sks_of(run((**table).query(leases))->items), (std::vector<std::string>{"LOCK", "LOCKED"}));
  EXPECT_EQ(run((**table).describe())->items, 19U);
}

TEST_F(LmdbTableTest, LongKeysWithACommonBeginningStayInOrderInBothDirections) {
  const auto table = open();
  std::vector<std::string> sort_keys = {"a", std::string(379, 'k'), std::string(380, 'k'), "z"};
  for (const char* tail : {"0", "1", "10", "2", "\x01", "zz"})
    sort_keys.push_back(std::string(380, 'k') + tail);
  sort_keys.push_back(std::string(1024, 'k'));
  std::sort(sort_keys.begin(), sort_keys.end());
  for (const std::string& pk : {std::string("short"), std::string(2048, 'p')}) {
    for (const std::string& sk : sort_keys)
      put(**table, Item{{pk, sk}, {{"sk_size", sk.size()}}});
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      std::vector<std::string> expected = sort_keys;
      if (direction == Direction::backward) std::reverse(expected.begin(), expected.end());
      for (const std::size_t limit : {1U, 2U, 3U, 100U}) {
        std::vector<std::string> seen;
        std::optional<std::string> after;
        do {
          Query query{.pk = pk, .direction = direction, .after = after, .limit = limit};
          const auto page = run((**table).query(std::move(query)));
          ASSERT_TRUE(page) << to_string(page.error());
          for (const Item& item : page->items)
            seen.push_back(item.key.sk);
          after = page->next;
        } while (after);
        EXPECT_EQ(seen, expected) << "limit " << limit;
      }
    }
    // Removing the overlong ones again leaves nothing behind.
    for (const std::string& sk : sort_keys) {
      Write erase = Delete{{pk, sk}};
      ASSERT_TRUE(run((**table).write(std::move(erase), Durability::machine)));
      EXPECT_EQ(*get(**table, {pk, sk}), std::nullopt);
    }
  }
  EXPECT_EQ(run((**table).describe())->items, 0U);
}

}  // namespace
}  // namespace facetheory
