#include "bench/report.h"

#include <cstdio>
#include <iostream>

#include <boost/json.hpp>

namespace facetheory::bench {
namespace {

constexpr std::size_t kSmall = 10'000;
constexpr std::size_t kLarge = 1'000'000;

// How many times as fast as the peer ours is; empty when either was not measured.
std::optional<double> rate_ratio(const Figure* ours, const Figure* peer) {
  if (ours == nullptr || peer == nullptr) return std::nullopt;
  return ours->summary.rate / peer->summary.rate;
}

std::optional<double> cpu_ratio(const Figure* ours, const Figure* peer) {
  if (ours == nullptr || peer == nullptr) return std::nullopt;
  return peer->summary.cpu_micros / ours->summary.cpu_micros;
}

std::string ratio_text(std::optional<double> ratio) {
  if (!ratio) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", *ratio);
  return text;
}

std::string windows_text(const Summary& summary) {
  return std::to_string(summary.clean) + "/" + std::to_string(summary.windows) +
         (summary.counted_all ? " !" : "");
}

void print_machine(const Report& report) {
  const Machine& machine = report.machine;
  std::printf("\n%s\n", report.command.c_str());
  std::printf("%s; %u cores, %s, %.0f GiB; %s; %s\n", machine.date.c_str(), machine.cores,
              machine.processor.c_str(), machine.memory_gib, machine.kernel.c_str(),
              machine.file_system.c_str());
  for (const std::string& version : report.versions)
    std::printf("%s\n", version.c_str());
}

void print_bar(const Bar& bar) {
  std::printf("  %-62s %s %.1f: ", bar.text.c_str(), bar.at_least ? ">=" : "<=", bar.limit);
  if (!bar.value) {
    std::printf("not measured\n");
  } else {
    std::printf("%.2f, %s (in processor time: %.2f)%s\n", *bar.value, bar.met() ? "met" : "MISSED",
                *bar.cpu_value, bar.doubtful ? "; the machine was disturbed, measure again" : "");
  }
}

boost::json::object to_json(const Window& window) {
  return {
      {"operations", window.tally.operations}, {"refused", window.tally.refused}, {"seconds", window.seconds},
      {"cpu_seconds", window.cpu_seconds},     {"steal", window.steal},           {"clean", window.clean()}};
}

boost::json::object to_json(const Figure& figure) {
  const Summary& s = figure.summary;
  boost::json::array windows;
  for (const Window& window : figure.windows)
    windows.push_back(to_json(window));
  return {{"workload", figure.workload},
          {"pages", figure.pages},
          {"callers", figure.callers},
          {"peer", figure.peer},
          {"operations_per_second", s.rate},
          {"micros_per_operation", s.micros},
          {"cpu_micros_per_operation", s.cpu_micros},
          {"server_cpu_micros_per_operation", s.server_cpu_micros},
          {"slowest", s.slowest},
          {"fastest", s.fastest},
          {"clean_windows", s.clean},
          {"counted_all_windows", s.counted_all},
          {"windows", std::move(windows)}};
}

boost::json::object to_json(const Bar& bar) {
  return {{"bar", bar.text},
          {"comparison", bar.at_least ? ">=" : "<="},
          {"limit", bar.limit},
          {"value", bar.value ? boost::json::value(*bar.value) : boost::json::value(nullptr)},
          {"cpu_value", bar.cpu_value ? boost::json::value(*bar.cpu_value) : boost::json::value(nullptr)},
          {"met", bar.met()},
          {"doubtful", bar.doubtful}};
}

}  // namespace

const Figure* Report::find(const std::string& workload, std::size_t pages, int callers,
                           const std::string& peer) const {
  for (const Figure& figure : figures) {
    if (figure.workload == workload && figure.pages == pages && figure.callers == callers &&
        figure.peer == peer) {
      return &figure;
    }
  }
  return nullptr;
}

std::vector<Bar> bars(const Report& report) {
  std::vector<Bar> all;
  const auto add = [&](const char* text, bool at_least, double limit, const Figure* ours,
                       const Figure* other) {
    const bool doubtful = ours && other && (ours->summary.counted_all || other->summary.counted_all);
    all.push_back({text, at_least, limit, rate_ratio(ours, other), cpu_ratio(ours, other), doubtful});
  };
  const auto small = [&](const char* workload, int callers, const char* peer) {
    return report.find(workload, kSmall, callers, peer);
  };
  add("cycles, 32 callers, 10,000 pages: ours / redis", true, 0.7, small("cycle", 32, "ours"),
      small("cycle", 32, "redis"));
  add("cycles, 1 caller, 10,000 pages: ours / redis", true, 0.9, small("cycle", 1, "ours"),
      small("cycle", 1, "redis"));
  add("reads, 10,000 pages: ours / sqlite", true, 2.0, small("read", 1, "ours"), small("read", 1, "sqlite"));
  // Rates, so that the quotient of times is turned over.
  add("time of our read at 1,000,000 pages / at 10,000", false, 3.0, small("read", 1, "ours"),
      report.find("read", kLarge, 1, "ours"));
  return all;
}

void print_table(const Report& report) {
  print_machine(report);
  std::printf("\n%-8s %9s %7s  %-7s %10s %10s %10s %10s %8s %9s %9s\n", "workload", "pages", "callers",
              "peer", "ops/s", "us/op", "CPU us/op", "of server", "clean", "/ redis", "/ sqlite");
  for (const Figure& figure : report.figures) {
    const Summary& s = figure.summary;
    const bool ours = figure.peer == "ours";
    const auto against = [&](const char* peer) {
      return ours ? ratio_text(
                        rate_ratio(&figure, report.find(figure.workload, figure.pages, figure.callers, peer)))
                  : std::string();
    };
    std::printf("%-8s %9zu %7d  %-7s %10.0f %10.2f %10.2f %10.2f %8s %9s %9s\n", figure.workload.c_str(),
                figure.pages, figure.callers, figure.peer.c_str(), s.rate, s.micros, s.cpu_micros,
                s.server_cpu_micros, windows_text(s).c_str(), against("redis").c_str(),
                against("sqlite").c_str());
  }
  std::printf(
      "\nMedians of windows of %.2f s, the peers in turn. Clean: windows in which the host took at most 5%%\n"
      "of the machine and other programs used at most 10%%, of all; they alone count, but where a ! says\n"
      "that there were too few. CPU: this process and the peer's server. Ratios: ours to the peer in\n"
      "operations per second; more is better.\n",
      report.window_seconds);
  if (report.smoke) {
    std::printf("A smoke run: it shows that the benchmark works, the figures mean nothing.\n");
    return;
  }
  std::printf("\nBars\n");
  for (const Bar& bar : bars(report))
    print_bar(bar);
}

void print_json(const Report& report) {
  boost::json::array versions(report.versions.begin(), report.versions.end());
  boost::json::array figures;
  for (const Figure& figure : report.figures)
    figures.push_back(to_json(figure));
  boost::json::array all_bars;
  for (const Bar& bar : bars(report))
    all_bars.push_back(to_json(bar));
  const boost::json::object document = {{"command", report.command},
                                        {"date", report.machine.date},
                                        {"cores", report.machine.cores},
                                        {"processor", report.machine.processor},
                                        {"memory_gib", report.machine.memory_gib},
                                        {"kernel", report.machine.kernel},
                                        {"file_system", report.machine.file_system},
                                        {"peers", std::move(versions)},
                                        {"smoke", report.smoke},
                                        {"figures", std::move(figures)},
                                        {"bars", std::move(all_bars)}};
  std::cout << boost::json::serialize(document) << "\n";
}

}  // namespace facetheory::bench
