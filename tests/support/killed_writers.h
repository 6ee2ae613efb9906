// Processes that write bodies (tests/crash/body_writer.cc) and are killed, each at another moment of a write.
#pragma once

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/support/servers.h"

namespace facetheory::test {

// The keys whose writes were acknowledged. The bytes of each body begin with its key and a line feed.
inline std::vector<std::string> acknowledged_by_killed_writers(const std::string& program,
                                                               const std::string& uri) {
  constexpr int kWriters = 20;
  std::vector<std::string> keys;
  for (int i = 0; i < kWriters; ++i) {
    const std::string name = std::to_string(i);
    ChildProcess writer({program, uri, name});
    const std::string last = "crash/" + name + "/" + std::to_string(i % 5) + "\n";
    if (!writer.wait_for_output(last, std::chrono::minutes(1))) throw std::runtime_error(writer.output());
    ::usleep(static_cast<useconds_t>(i * 311));
    writer.kill();
    std::istringstream lines(writer.output());
    for (std::string word, key; lines >> word >> key;)
      keys.push_back(key);
  }
  return keys;
}

}  // namespace facetheory::test
