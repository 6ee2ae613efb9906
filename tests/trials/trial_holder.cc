// trial_holder: keeps the writer's lock of an LMDB environment, as a process does that is stopped in the middle of a
// write.
//
//   trial_holder FOLDER
//
// Prints "held" and holds the lock until its standard input ends. Reading goes on meanwhile, as LMDB has it.
#include <cstdio>

#include <lmdb.h>

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: trial_holder FOLDER\n", stderr);
    return 2;
  }
  MDB_env* environment = nullptr;
  MDB_txn* write = nullptr;
  int code = mdb_env_create(&environment);
  if (code == 0) code = mdb_env_open(environment, arguments[1], 0, 0600);
  if (code == 0) code = mdb_txn_begin(environment, nullptr, 0, &write);
  if (code != 0) {
    std::fprintf(stderr, "%s: %s\n", arguments[1], mdb_strerror(code));
    return 1;
  }
  std::puts("held");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  mdb_txn_abort(write);
  mdb_env_close(environment);
  return 0;
}
