// For the tests of body stores: writes bodies, small and large ones by turns, until it is killed, and prints each key
// once its write is acknowledged.
//
//   body_writer <uri> <name>
#include <cstdlib>
#include <iostream>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <unistd.h>

#include "facetheory/bodies/open_bodies.h"

#include "tests/support/run.h"

int main(int count, char** arguments) {
  using namespace facetheory;
  if (count != 3) return 2;
  auto store = open_bodies(arguments[1], test::executor());
  if (!store) {
    std::cerr << to_string(store.error()) << std::endl;
    return 1;
  }
  for (int i = 0; i < 100'000; ++i) {
    const std::string key = "crash/" + std::string(arguments[2]) + "/" + std::to_string(i);
    std::string bytes;
    while (bytes.size() < (i % 2 == 0 ? 20'000u : 200'000u))
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
