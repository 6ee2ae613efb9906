// Runs kept inputs through the fuzz targets: fuzz_corpora FOLDER, which has a folder of files for each target. A
// finding ends the program, naming the input. Part of every ./test, so that what was once found stays mended.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
};

constexpr Target kTargets[] = {
    {"access_log", fuzz_access_log},
    {"addresses", fuzz_addresses},
    {"aws_answers", fuzz_aws_answers},
    {"body_metadata", fuzz_body_metadata},
    {"cache_control", fuzz_cache_control},
    {"chunked", fuzz_chunked},
    {"config", fuzz_config},
    {"dynamodb_json", fuzz_dynamodb_json},
    {"field_values", fuzz_field_values},
    {"http_date", fuzz_http_date},
    {"invalidation", fuzz_invalidation},
    {"item_codec", fuzz_item_codec},
    {"lmdb_keys", fuzz_lmdb_keys},
    {"number", fuzz_number},
    {"origin_url", fuzz_origin_url},
    {"page_key", fuzz_page_key},
    {"page_names", fuzz_page_names},
    {"preconditions", fuzz_preconditions},
    {"replay", fuzz_replay},
    {"request_head", fuzz_request_head},
    {"request_target", fuzz_request_target},
    {"response_head", fuzz_response_head},
    {"route", fuzz_route},
    {"rows", fuzz_rows},
    {"storing", fuzz_storing},
    {"structured_fields", fuzz_structured_fields},
    {"vary", fuzz_vary},
};

char running[4096] = "";  // The input's name, for when it is the last one.

void tell_input(int signal) {
  for (const std::string_view text :
       {std::string_view("not ok "), std::string_view(running), std::string_view("\n")}) {
    if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) break;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// How many inputs there were; 0 is a mistake.
std::size_t replay(const Target& target, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder / target.name, absent))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    std::snprintf(running, sizeof running, "%s", file.c_str());
    std::ifstream stream(file, std::ios::binary);
    // The input is copied to the heap, without spare room, so that a sanitizer sees a step beyond it.
    const std::string read{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const std::vector<char> input(read.begin(), read.end());
    target.run({input.data(), input.size()});
  }
  return files.size();
}

int replay_all(const std::filesystem::path& folder) {
  bool good = true;
  for (const Target& target : kTargets) {
    const std::size_t inputs = replay(target, folder);
    good = good && inputs > 0;
    std::printf("%s %.*s: %zu inputs\n", inputs > 0 ? "ok" : "not ok", static_cast<int>(target.name.size()),
                target.name.data(), inputs);
    std::fflush(stdout);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const bool known = std::any_of(std::begin(kTargets), std::end(kTargets),
                                   [&](const Target& target) { return target.name == name; });
    if (known) continue;
    std::printf("not ok %s: no target has that name\n", name.c_str());
    good = false;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace facetheory::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_corpora FOLDER\n");
    return 2;
  }
  std::signal(SIGABRT, facetheory::fuzz::tell_input);
  std::signal(SIGSEGV, facetheory::fuzz::tell_input);
  return facetheory::fuzz::replay_all(argv[1]);
}
