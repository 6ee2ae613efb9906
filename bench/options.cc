#include "bench/options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

namespace facetheory::bench {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

template <typename T>
bool parse_number(std::string_view text, T low, T high, T& number) {
  T parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc{} || end != text.data() + text.size() || parsed < low || parsed > high) return false;
  number = parsed;
  return true;
}

template <typename T>
bool parse_numbers(std::string_view text, T low, T high, std::vector<T>& numbers) {
  numbers.clear();
  for (const std::string& part : split(text)) {
    if (!parse_number(part, low, high, numbers.emplace_back())) return false;
  }
  return true;
}

// A list of some of `known`; they keep that order.
bool parse_names(std::string_view text, const std::vector<std::string>& known,
                 std::vector<std::string>& names) {
  const std::vector<std::string> asked = split(text);
  names.clear();
  for (const std::string& name : known) {
    if (std::count(asked.begin(), asked.end(), name) > 0) names.push_back(name);
  }
  return std::all_of(asked.begin(), asked.end(), [&](const std::string& name) {
    return std::count(known.begin(), known.end(), name) > 0;
  });
}

// Tiny, for the tests: everything happens, nothing is worth writing down.
void make_smoke(Options& options) {
  options.smoke = true;
  options.pages = {100, 1'000};
  options.rounds = 1;
  options.window_seconds = 0.03;
}

// An option that takes a value: how to read it, and what it may be.
struct Setting {
  std::function<bool(Options&, std::string_view)> set;
  const char* allowed;
};

const std::map<std::string, Setting, std::less<>>& settings() {
  static const std::map<std::string, Setting, std::less<>> all = {
      {"--dir", {[](Options& o, std::string_view v) { return o.directory = v, !v.empty(); }, "a directory"}},
      {"--workload",
       {[](Options& o, std::string_view v) { return parse_names(v, {"cycle", "read"}, o.workloads); },
        "cycle, read, or both with a comma"}},
      {"--pages",
       {[](Options& o, std::string_view v) { return parse_numbers<std::size_t>(v, 1, 100'000'000, o.pages); },
        "numbers of pages, with commas: 10000,1000000"}},
      {"--callers",
       {[](Options& o, std::string_view v) { return parse_numbers(v, 1, 1000, o.callers); },
        "numbers of callers from 1 to 1000, with commas"}},
      {"--peers",
       {[](Options& o, std::string_view v) { return parse_names(v, {"ours", "redis", "sqlite"}, o.peers); },
        "some of ours,redis,sqlite"}},
      {"--table", {[](Options& o, std::string_view v) { return o.table = v, !v.empty(); }, "a table URI"}},
      {"--rounds",
       {[](Options& o, std::string_view v) { return parse_number(v, 1, 1000, o.rounds); },
        "a number from 1 to 1000"}},
      {"--window",
       {[](Options& o, std::string_view v) { return parse_number(v, 0.001, 60.0, o.window_seconds); },
        "seconds, from 0.001 to 60"}},
  };
  return all;
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  const std::map<std::string_view, std::function<void()>> flags = {
      {"--json", [&] { options.json = true; }},
      {"--smoke", [&] { make_smoke(options); }},
      {"--allow-tmpfs", [&] { options.allow_tmpfs = true; }},
      {"--keep", [&] { options.keep = true; }},
      {"--help", [&] { options.help = true; }},
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (const auto flag = flags.find(arguments[i]); flag != flags.end()) {
      flag->second();
      continue;
    }
    const std::size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const auto setting = settings().find(name);
    if (setting == settings().end()) return Error{ErrorCode::invalid, name + " is no option; see --help"};
    std::string value;
    if (equals != std::string::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    if (!setting->second.set(options, value)) {
      std::string message = name + " takes " + setting->second.allowed;
      message.append(", not \"").append(value).append("\"");
      return Error{ErrorCode::invalid, std::move(message)};
    }
  }
  if (options.directory.empty()) {
    options.directory = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  }
  return options;
}

std::string usage() {
  return R"(table_bench: our table beside Redis and SQLite, measured in turn in one run

  --workload cycle,read      what to measure (default: both)
  --pages 10000,1000000      sizes of the store
  --callers 1,32             callers at once, in cycles
  --peers ours,redis,sqlite  whom to measure
  --table lmdb:              what "ours" is: a table URI; lmdb: alone lives below --dir
  --rounds 5                 windows of each peer; up to twice as many where the host takes processor time away
  --window 1.5               seconds of a window
  --dir DIR                  where files go, on a real disk (default: beside this program)
  --allow-tmpfs              even if that is a memory file system, where nothing is durable
  --keep                     leave the files behind
  --smoke                    everything, tiny, within seconds; the figures mean nothing
  --json                     results as JSON on standard output instead of the table

Exit status: 0 when everything was measured, 1 when it could not be, 2 for a wrong command line.
)";
}

}  // namespace facetheory::bench
