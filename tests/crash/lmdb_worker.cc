// A process of its own on an LMDB table, for tests that kill it or limit it.
//
//   lmdb_worker open DIR               opens the table, prints "opened" or the error, exits
//   lmdb_worker open-unprivileged DIR  the same as a user without any rights (when started by root)
//   lmdb_worker hold DIR               begins a read transaction, prints "holding", waits to be killed
//   lmdb_worker dead-readers DIR       prints how many readers in LMDB's table belong to dead processes
//   lmdb_worker write DIR RUN          writes rows and pairs of rows for ever; prints each number once acknowledged
//   lmdb_worker fill DIR BYTES         writes large rows until files of more than BYTES are refused; prints each
//                                      number, then the error
#include <csignal>
#include <iostream>
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

int fill(const std::string& directory, const std::string& bytes) {
  const rlimit limit{std::stoul(bytes), RLIM_INFINITY};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  return write(directory, "fill");
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
  if (words.size() == 3 && mode == "fill") return fill(words[1], words[2]);
  std::cerr << "lmdb_worker: unknown command; see the top of lmdb_worker.cc\n";
  return 2;
}
