// What the command line asks for.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "facetheory/base/result.h"

namespace facetheory::bench {

struct Options {
  std::filesystem::path directory;  // Files go into a fresh folder below it. Default: where this program is.
  std::vector<std::string> workloads = {"cycle", "read"};
  std::vector<std::size_t> pages = {10'000, 1'000'000};
  std::vector<int> callers = {1, 32};  // How many cycles run at once. Reads have one caller.
  std::vector<std::string> peers = {"ours", "redis", "sqlite"};
  std::string table = "lmdb:";  // "lmdb:" alone: below the directory.
  int rounds = 5;
  double window_seconds = 1.5;
  bool json = false;
  bool smoke = false;
  bool allow_tmpfs = false;
  bool keep = false;
  bool help = false;
};

// `invalid` names the argument and what it may be.
Result<Options> parse_options(const std::vector<std::string>& arguments);

std::string usage();

}  // namespace facetheory::bench
