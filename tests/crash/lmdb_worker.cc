// A process of its own on an LMDB table, for tests that kill it or limit it.
//
//   lmdb_worker open DIR               opens the table, prints "opened" or the error, exits
//   lmdb_worker open-unprivileged DIR  the same as a user without any rights (when started by root)
//   lmdb_worker hold DIR               begins a read transaction, prints "holding", waits to be killed
//   lmdb_worker dead-readers DIR       prints how many readers in LMDB's table belong to dead processes
//   lmdb_worker format DIR TEXT        writes the table's own record of its format
//   lmdb_worker write DIR RUN          writes rows and pairs of rows for ever; prints each number once acknowledged
//   lmdb_worker render DIR RUN         takes a lease and publishes its page for ever; prints "took <n>" and "wrote <n>"
//   once
//                                      acknowledged
//   lmdb_worker fill-beside-leases DIR BYTES   as fill, until many rows were refused, with leases beside each row and
//   upon it lmdb_worker fill DIR BYTES         writes large rows until files of more than BYTES are refused; prints
//   each
//                                      number, then the error
#include <csignal>
#include <iostream>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <lmdb.h>
#include <sys/resource.h>
#include <unistd.h>

#include "facetheory/table/lmdb_environment.h"
#include "facetheory/table/lmdb_table.h"

#include "tests/crash/crash_rows.h"
#include "tests/support/run.h"

namespace facetheory::test {
namespace {

int fail(const Error& error) {
  std::cout << to_string(error) << std::endl;
  return 1;
}

int open(const std::string& directory) {
  Result<std::unique_ptr<Table>> table = open_lmdb_table(directory);
  if (!table) return fail(table.error());
  std::cout << "opened" << std::endl;
  return 0;
}

int hold(const std::string& directory) {
  Result<std::shared_ptr<LmdbEnvironment>> environment = LmdbEnvironment::open(directory, {});
  if (!environment) return fail(environment.error());
  const LmdbEnvironment::Reader reader(**environment);
  std::cout << "holding" << std::endl;
  ::pause();
  return 0;
}

int count_dead_readers(const std::string& directory) {
  MDB_env* env = nullptr;
  int dead = 0;
  int code = mdb_env_create(&env);
  if (code == 0) code = mdb_env_open(env, directory.c_str(), 0, 0660);
  if (code == 0) code = mdb_reader_check(env, &dead);
  if (code != 0) std::cout << mdb_strerror(code) << std::endl;
  std::cout << "dead readers: " << dead << std::endl;
  mdb_env_close(env);
  return code;
}

int write_format(const std::string& directory, const std::string& text) {
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  std::string name("\0format", 7);
  std::string content = text;
  MDB_val key{name.size(), name.data()};
  MDB_val value{content.size(), content.data()};
  int code = mdb_env_create(&env);
  if (code == 0) code = mdb_env_open(env, directory.c_str(), 0, 0660);
  if (code == 0) code = mdb_txn_begin(env, nullptr, 0, &txn);
  if (code == 0) code = mdb_dbi_open(txn, nullptr, 0, &dbi);
  if (code == 0) code = mdb_put(txn, dbi, &key, &value, 0);
  if (code == 0) code = mdb_txn_commit(txn);
  if (code != 0) std::cout << mdb_strerror(code) << std::endl;
  mdb_env_close(env);
  return code;
}

// Acknowledged rows end as "wrote <n>" lines; stops at the first error.
Task<Error> write_rows(Table& table, std::string run) {
  for (int n = 1;; ++n) {
    std::vector<TransactItem> rows = crash_rows(run, n);
    Result<TransactOutcome> outcome = co_await table.transact(std::move(rows), "t");
    if (!outcome) co_return outcome.error();
    std::cout << "wrote " << n << std::endl;
  }
}

int write(const std::string& directory, const std::string& run_name) {
  Result<std::unique_ptr<Table>> table = open_lmdb_table(directory);
  if (!table) return fail(table.error());
  return fail(run(write_rows(**table, run_name)));
}

Task<Error> render_pages(Table& table, std::string run) {
  for (int n = 1;; ++n) {
    const Condition free = attr("pk").not_exists();
    // Now and then the lease lies in LMDB as well, under the one in memory.
    if (n % 4 == 0) {
      Item older = lease_of(run, n);
      older.attributes.set("older", true);
      Write below = Put{std::move(older), free};
      Result<WriteOutcome> written = co_await table.write(std::move(below), Durability::machine);
      if (!written) co_return written.error();
    }
    Write take = Put{lease_of(run, n), n % 4 == 0 ? attr("n") == n : free};
    Result<WriteOutcome> taken = co_await table.write(std::move(take), Durability::process);
    if (!taken) co_return taken.error();
    if (!std::holds_alternative<Written>(*taken)) co_return Error{ErrorCode::internal, "the lease is held"};
    std::cout << "took " << n << std::endl;

    std::vector<TransactItem> items;
    items.emplace_back(Put{page_of(run, n)});
    items.emplace_back(Delete{lease_of(run, n).key, attr("n") == n});
    Result<TransactOutcome> published = co_await table.transact(std::move(items), "t");
    if (!published) co_return published.error();
    if (!std::holds_alternative<Committed>(*published))
      co_return Error{ErrorCode::internal, "the lease is lost"};
    std::cout << "wrote " << n << std::endl;
  }
}

int render(const std::string& directory, const std::string& run_name) {
  Result<std::unique_ptr<Table>> table = open_lmdb_table(directory);
  if (!table) return fail(table.error());
  return fail(run(render_pages(**table, run_name)));
}

void limit_files(const std::string& bytes) {
  const rlimit limit{std::stoul(bytes), RLIM_INFINITY};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

int fill(const std::string& directory, const std::string& bytes) {
  limit_files(bytes);
  return write(directory, "fill");
}

// A large row and the lease `base`, both or none.
Task<Result<WriteOutcome>> store_with_base(Table& table, int n, Item base) {
  std::vector<TransactItem> items;
  items.emplace_back(Put{numbered_row("fill", n)});
  items.emplace_back(Put{std::move(base)});
  Result<TransactOutcome> outcome = co_await table.transact(std::move(items), "t");
  if (!outcome) co_return outcome.error();
  co_return WriteOutcome(Written{});
}

int fill_beside_leases(const std::string& directory, const std::string& bytes) {
  limit_files(bytes);
  Result<std::unique_ptr<Table>> table = open_lmdb_table(directory);
  if (!table) return fail(table.error());
  std::optional<Error> full;
  for (int n = 1, refused = 0; refused < 20; ++n) {
    const Item base = lease_of("base" + std::to_string(n), n);
    Write first = Put{half_of_pair("fill", n, "left")};  // While this one is written the others queue up.
    Write lease = Put{lease_of(std::to_string(n), n), attr("pk").not_exists()};
    Write upon_base = Update{base.key, Changes().set("older", true), attr("n") == n};
    std::vector<Task<Result<WriteOutcome>>> writes;
    writes.push_back((*table)->write(std::move(first), Durability::machine));
    writes.push_back(store_with_base(**table, n, base));
    writes.push_back((*table)->write(std::move(lease), Durability::process));
    writes.push_back((*table)->write(std::move(upon_base), Durability::process));
    const auto outcomes = run_all(std::move(writes));
    const auto written = [&](std::size_t i) {
      return outcomes[i] && std::holds_alternative<Written>(*outcomes[i]);
    };
    std::cout << (written(2) ? "took " : "failed to take ") << n << std::endl;
    if (written(1)) {
      std::cout << "wrote " << n << std::endl;
    } else {
      ++refused;
      if (written(3)) std::cout << "took what was never there: " << n << std::endl;
      full = outcomes[1].error();
    }
  }
  return fail(*full);
}

}  // namespace
}  // namespace facetheory::test

int main(int argc, char** argv) {
  using namespace facetheory::test;
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string mode = words.empty() ? "" : words[0];
  if (words.size() == 2 && mode == "open-unprivileged") {
    if (::getuid() == 0 && ::setuid(65534) != 0) return 1;
    return open(words[1]);
  }
  if (words.size() == 2 && mode == "open") return open(words[1]);
  if (words.size() == 2 && mode == "hold") return hold(words[1]);
  if (words.size() == 2 && mode == "dead-readers") return count_dead_readers(words[1]);
  if (words.size() == 3 && mode == "write") return write(words[1], words[2]);
  if (words.size() == 3 && mode == "format") return write_format(words[1], words[2]);
  if (words.size() == 3 && mode == "render") return render(words[1], words[2]);
  if (words.size() == 3 && mode == "fill-beside-leases") return fill_beside_leases(words[1], words[2]);
  if (words.size() == 3 && mode == "fill") return fill(words[1], words[2]);
  std::cerr << "lmdb_worker: unknown command; see the top of lmdb_worker.cc\n";
  return 2;
}
