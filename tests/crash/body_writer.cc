// For file_bodies_test: writes bodies into a folder until it is killed, and prints each key once its write is
// acknowledged.
//
//   body_writer <folder> <name>
#include <cstdlib>
#include <iostream>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <unistd.h>

#include "facetheory/bodies/file_bodies.h"

#include "tests/support/run.h"

int main(int count, char** arguments) {
  using namespace facetheory;
  if (count != 3) return 2;
  auto store = FileBodies::open(arguments[1]);
  if (!store) {
    std::cerr << to_string(store.error()) << std::endl;
    return 1;
  }
  for (int i = 0; i < 100'000; ++i) {
    const std::string key = "crash/" + std::string(arguments[2]) + "/" + std::to_string(i);
    std::string bytes;
    while (bytes.size() < 200'000)
      bytes += key + "\n";
    auto written = test::run((*store)->write(key, Body{bytes, {}}));
    if (!written) {
      std::cerr << to_string(written.error()) << std::endl;
      return 1;
    }
    const std::string line = "written " + key + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) return 1;
  }
  return 0;
}
