#include "facetheory/metrics/metrics.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "facetheory/base/loop_bound.h"
#include "facetheory/metrics/process_stats.h"

#include "tests/support/script.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

const Error kFailure{ErrorCode::unavailable, "it failed"};

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The value of that series: "facetheory_requests_total{state=\"hit\"}"; -1: there is no such series.
double value(const std::string& text, const std::string& series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  }
  return -1;
}

OnLoop on_a_loop() {
  boost::asio::io_context loop;
  std::optional<OnLoop> here;
  boost::asio::post(loop, [&] { here = LoopBound::to_loop(loop.get_executor(), "a test").check(); });
  loop.run();
  return *here;
}

// Something in every family.
void count_everything(Metrics& metrics) {
  LoopMetrics& loop = metrics.add_loop();
  for (const std::string_view state : kRequestStates)
    loop.answered(on_a_loop(), state, 200, 10, 3ms);
  for (const std::string_view outcome : kRegenerationOutcomes)
    metrics.regenerated(outcome, 20ms);
  metrics.origin("web").began();
  metrics.origin("web").answered(200, 1ms);
  metrics.store_observer(ObservedStore::table)("get", nullptr, 1us);
  metrics.store_observer(ObservedStore::bodies)("read", &kFailure, 1ms);
}

TEST(Metrics, PromtoolHasNothingToSay) {
  test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "metrics").string();
  Metrics empty({.version = "1.2.3"});
  Metrics full({.version = "a\"b\\c\nd"});
  count_everything(full);
  full.origin("b\xc3\xbc\"\\\n").answered(500, 1ms);
  for (const Metrics* metrics : {&empty, &full}) {
    std::ofstream(file, std::ios::binary) << metrics->text();
    const auto checked =
        test::run_script(std::string(FACETHEORY_PROMTOOL) + " check metrics < '" + file + "' 2>&1");
    EXPECT_EQ(checked.exit_status, 0);
    EXPECT_THAT(checked.lines, IsEmpty());
  }
}

TEST(Metrics, RequestsAreCountedByStateStatusSizeAndDuration) {
  Metrics metrics({.version = "1"});
  LoopMetrics& first = metrics.add_loop();
  LoopMetrics& second = metrics.add_loop();
  first.answered(on_a_loop(), "hit", 200, 1000, 100us);
  first.answered(on_a_loop(), "hit", 304, 0, 101us);
  second.answered(on_a_loop(), "hit", 200, 1000, 90s);
  second.answered(on_a_loop(), "miss", 503, 20, 250ms);
  second.answered(on_a_loop(), "pass", 0, 0, 1ms);
  second.answered(on_a_loop(), "brand-new", 777, 0, 1ms);
  first.cut_off(on_a_loop(), CutOff::by_client);
  second.cut_off(on_a_loop(), CutOff::by_client);
  second.cut_off(on_a_loop(), CutOff::by_gateway);
  const std::string text = metrics.text();
  EXPECT_EQ(value(text, R"(facetheory_requests_total{state="hit"})"), 3);
  EXPECT_EQ(value(text, R"(facetheory_requests_total{state="miss"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_requests_total{state="pass"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_requests_total{state="other"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_requests_total{state="stale"})"), 0);
  EXPECT_EQ(value(text, R"(facetheory_responses_total{code="2xx"})"), 2);
  EXPECT_EQ(value(text, R"(facetheory_responses_total{code="3xx"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_responses_total{code="4xx"})"), 0);
  EXPECT_EQ(value(text, R"(facetheory_responses_total{code="5xx"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_responses_total{code="none"})"), 2);
  EXPECT_EQ(value(text, R"(facetheory_responses_cut_off_total{by="origin"})"), 0);
  EXPECT_EQ(value(text, R"(facetheory_responses_cut_off_total{by="client"})"), 2);
  EXPECT_EQ(value(text, R"(facetheory_responses_cut_off_total{by="gateway"})"), 1);
  EXPECT_EQ(value(text, "facetheory_response_bytes_total"), 2020);
  const std::string bucket = "facetheory_request_duration_seconds_bucket{state=\"hit\",le=";
  EXPECT_EQ(value(text, bucket + "\"0.0001\"}"), 1);
  EXPECT_EQ(value(text, bucket + "\"0.00025\"}"), 2);
  EXPECT_EQ(value(text, bucket + "\"60\"}"), 2);
  EXPECT_EQ(value(text, bucket + "\"+Inf\"}"), 3);
  EXPECT_EQ(value(text, R"(facetheory_request_duration_seconds_count{state="hit"})"), 3);
  EXPECT_NEAR(value(text, R"(facetheory_request_duration_seconds_sum{state="hit"})"), 90.000201, 1e-9);
  EXPECT_THAT(text, Not(HasSubstr("duration_seconds_count{state=\"stale\"}")));
}

TEST(Metrics, RegenerationsAreCountedByOutcome) {
  Metrics metrics({.version = "1"});
  metrics.regenerated("published", 300ms);
  metrics.regenerated("published", 700ms);
  metrics.regenerated("failed", 2s);
  metrics.regenerated("called_stale", 1s);
  metrics.regenerated("unheard of", 1s);
  const std::string text = metrics.text();
  EXPECT_EQ(value(text, R"(facetheory_regenerations_total{outcome="published"})"), 2);
  EXPECT_EQ(value(text, R"(facetheory_regenerations_total{outcome="failed"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_regenerations_total{outcome="called_stale"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_regenerations_total{outcome="other"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_regenerations_total{outcome="lease_lost"})"), 0);
  EXPECT_EQ(value(text, R"(facetheory_regeneration_duration_seconds_sum{outcome="published"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_regeneration_duration_seconds_bucket{outcome="published",le="0.5"})"),
            1);
}

TEST(Metrics, StoresAreMeasuredByOperationAndTheirErrorsCounted) {
  Metrics metrics({.version = "1"});
  const StoreObserver table = metrics.store_observer(ObservedStore::table);
  const StoreObserver bodies = metrics.store_observer(ObservedStore::bodies);
  table("get", nullptr, 1us);
  table("get", &kFailure, 2ms);
  table("write", nullptr, 1ms);
  bodies("write", &kFailure, 1ms);
  bodies("write", &kFailure, 1ms);
  table("invented", &kFailure, 1ms);
  const std::string text = metrics.text();
  const auto count = [&](const std::string& store, const std::string& operation) {
    return value(text, "facetheory_store_duration_seconds_count{store=\"" + store + "\",operation=\"" +
                           operation + "\"}");
  };
  const auto errors = [&](const std::string& store, const std::string& operation) {
    return value(text,
                 "facetheory_store_errors_total{store=\"" + store + "\",operation=\"" + operation + "\"}");
  };
  EXPECT_EQ(count("table", "get"), 2);
  EXPECT_EQ(errors("table", "get"), 1);
  EXPECT_EQ(count("table", "write"), 1);
  EXPECT_EQ(errors("table", "write"), 0);
  EXPECT_EQ(count("bodies", "write"), 2);
  EXPECT_EQ(errors("bodies", "write"), 2);
  EXPECT_EQ(errors("bodies", "list"), 0);
  EXPECT_EQ(errors("table", "other"), 1);
  EXPECT_EQ(errors("bodies", "other"), -1);
  EXPECT_EQ(
      value(text, R"(facetheory_store_duration_seconds_bucket{store="table",operation="get",le="1e-06"})"),
      1);
}

TEST(Metrics, OriginsAreCountedByNameAndAnswer) {
  Metrics metrics({.version = "1"});
  OriginMetrics& web = metrics.origin("web");
  EXPECT_EQ(&metrics.origin("web"), &web);
  EXPECT_NE(&metrics.origin("api"), &web);
  for (int i = 0; i < 4; ++i)
    web.began();
  web.answered(200, 1ms);
  web.answered(502, 1ms);
  web.failed(1s);
  web.set_up(false);
  const std::string text = metrics.text();
  EXPECT_EQ(value(text, R"(facetheory_origin_requests_total{origin="web",code="2xx"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_origin_requests_total{origin="web",code="5xx"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_origin_requests_total{origin="web",code="error"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_origin_duration_seconds_count{origin="web"})"), 3);
  EXPECT_EQ(value(text, R"(facetheory_origin_requests_in_flight{origin="web"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_origin_up{origin="web"})"), 0);
  EXPECT_EQ(value(text, R"(facetheory_origin_up{origin="api"})"), 1);
}

TEST(Metrics, EngineIsAskedAtEachScrape) {
  EngineSnapshot engine;
  Metrics metrics({.version = "1", .engine = [&] { return engine; }});
  EXPECT_EQ(value(metrics.text(), "facetheory_table_up"), 1);
  EXPECT_EQ(value(metrics.text(), "facetheory_bodies_up"), 1);
  engine.counted = {.renders_dropped = 21,
                    .renders_refused = 22,
                    .leases_acquired = 1,
                    .leases_contended = 2,
                    .leases_lost = 3,
                    .leases_taken_over = 4};
  engine.now = {.waiters = 5,
                .flights = 6,
                .queued_renders = 17,
                .oldest_queued = std::chrono::milliseconds(18'500),
                .oldest_flight = std::chrono::milliseconds(19'500),
                .overdue_flights = 20,
                .bodies_in_memory = 7,
                .bytes_in_memory = 8,
                .pointers = 10,
                .table_down = true,
                .bodies_down = true};
  engine.page_bytes_limit = 9;
  engine.lent_bytes = 15;
  engine.lent_bytes_limit = 16;
  const std::string text = metrics.text();
  EXPECT_EQ(value(text, R"(facetheory_leases_total{event="acquired"})"), 1);
  EXPECT_EQ(value(text, R"(facetheory_leases_total{event="contended"})"), 2);
  EXPECT_EQ(value(text, R"(facetheory_leases_total{event="lost"})"), 3);
  EXPECT_EQ(value(text, R"(facetheory_leases_total{event="taken_over"})"), 4);
  EXPECT_EQ(value(text, "facetheory_waiters"), 5);
  EXPECT_EQ(value(text, "facetheory_bodies_up"), 0);
  EXPECT_EQ(value(text, "facetheory_regenerations_in_flight"), 6);
  EXPECT_EQ(value(text, "facetheory_renders_queued"), 17);
  EXPECT_EQ(value(text, "facetheory_renders_queued_oldest_seconds"), 18.5);
  EXPECT_EQ(value(text, "facetheory_regenerations_oldest_seconds"), 19.5);
  EXPECT_EQ(value(text, "facetheory_regenerations_overdue"), 20);
  EXPECT_EQ(value(text, R"(facetheory_renders_not_begun_total{reason="dropped"})"), 21);
  EXPECT_EQ(value(text, R"(facetheory_renders_not_begun_total{reason="refused"})"), 22);
  EXPECT_EQ(value(text, "facetheory_pages_in_memory"), 7);
  EXPECT_EQ(value(text, R"(facetheory_memory_bytes{kind="pages"})"), 8);
  EXPECT_EQ(value(text, R"(facetheory_memory_limit_bytes{kind="pages"})"), 9);
  EXPECT_EQ(value(text, R"(facetheory_memory_bytes{kind="lent"})"), 15);
  EXPECT_EQ(value(text, R"(facetheory_memory_limit_bytes{kind="lent"})"), 16);
  EXPECT_EQ(value(text, "facetheory_pointers_in_memory"), 10);
  EXPECT_EQ(value(text, "facetheory_table_up"), 0);
}

TEST(Metrics, ServerIsAskedAtEachScrape) {
  ServerSnapshot server;
  Metrics metrics({.version = "1", .server = [&] { return server; }});
  server = {
      .connections = 11, .connections_accepted = 12, .connections_refused = 13, .access_log_lines_lost = 14};
  const std::string text = metrics.text();
  EXPECT_EQ(value(text, "facetheory_connections"), 11);
  EXPECT_EQ(value(text, "facetheory_connections_accepted_total"), 12);
  EXPECT_EQ(value(text, "facetheory_connections_refused_total"), 13);
  EXPECT_EQ(value(text, "facetheory_access_log_lines_lost_total"), 14);
  EXPECT_EQ(value(text, R"(facetheory_build_info{version="1"})"), 1);
}

TEST(Metrics, CleanupIsAskedAtEachScrape) {
  CleanupSnapshot cleanup;
  Metrics metrics({.version = "1", .cleanup = [&] { return cleanup; }});
  cleanup = {.done = {.released_removed = 31,
                      .evicted_removed = 32,
                      .swept_removed = 33,
                      .bytes_swept = 34,
                      .rows_expired = 35,
                      .rows_evicted = 36,
                      .pages_evicted = 37,
                      .errors = 41},
             .pages_refused = 38,
             .bodies_waiting = 39,
             .bodies_forgotten = 40,
             .disk_used = 42,
             .disk_occupied = 43,
             .disk_limit = 44,
             .disk_spilled = 45,
             .pages = 46,
             .pages_limit = 47,
             .sweeping = true,
             .since_sweep = std::chrono::milliseconds(45'500)};
  const std::string text = metrics.text();
  EXPECT_EQ(value(text, R"(facetheory_cleanup_bodies_removed_total{reason="released"})"), 31);
  EXPECT_EQ(value(text, R"(facetheory_cleanup_bodies_removed_total{reason="evicted"})"), 32);
  EXPECT_EQ(value(text, R"(facetheory_cleanup_bodies_removed_total{reason="swept"})"), 33);
  EXPECT_EQ(value(text, "facetheory_cleanup_swept_bytes_total"), 34);
  EXPECT_EQ(value(text, R"(facetheory_cleanup_rows_removed_total{reason="expired"})"), 35);
  EXPECT_EQ(value(text, R"(facetheory_cleanup_rows_removed_total{reason="evicted"})"), 36);
  EXPECT_EQ(value(text, "facetheory_pages_evicted_total"), 37);
  EXPECT_EQ(value(text, "facetheory_pages_refused_total"), 38);
  EXPECT_EQ(value(text, "facetheory_cleanup_bodies_waiting"), 39);
  EXPECT_EQ(value(text, "facetheory_cleanup_bodies_forgotten_total"), 40);
  EXPECT_EQ(value(text, "facetheory_cleanup_errors_total"), 41);
  EXPECT_EQ(value(text, R"(facetheory_disk_bytes{kind="used"})"), 42);
  EXPECT_EQ(value(text, R"(facetheory_disk_bytes{kind="occupied"})"), 43);
  EXPECT_EQ(value(text, "facetheory_disk_limit_bytes"), 44);
  EXPECT_EQ(value(text, R"(facetheory_disk_bytes{kind="spilled"})"), 45);
  EXPECT_EQ(value(text, "facetheory_pages_stored"), 46);
  EXPECT_EQ(value(text, "facetheory_pages_limit"), 47);
  EXPECT_EQ(value(text, "facetheory_sweep_running"), 1);
  EXPECT_EQ(value(text, "facetheory_sweep_age_seconds"), 45.5);
}

TEST(Metrics, CountsExactlyOverSeveralThreadsWhileSomebodyScrapes) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 20'000;
  Metrics metrics({.version = "1"});
  const StoreObserver table = metrics.store_observer(ObservedStore::table);
  std::atomic<bool> done = false;
  std::thread scraper([&] {
    double last = 0;
    while (!done) {
      const double now = value(metrics.text(), R"(facetheory_requests_total{state="hit"})");
      EXPECT_GE(now, last);
      last = now;
    }
  });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      LoopMetrics& loop = metrics.add_loop();
      const OnLoop here = on_a_loop();
      OriginMetrics& origin = metrics.origin("web");
      for (int i = 0; i < kTimes; ++i) {
        loop.answered(here, "hit", 200, 3, 1us);
        table("get", i % 2 == 0 ? nullptr : &kFailure, 1us);
        metrics.regenerated("published", 1us);
        origin.began();
        origin.answered(200, 1us);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  done = true;
  scraper.join();
  const std::string text = metrics.text();
  constexpr double kTotal = kThreads * kTimes;
  EXPECT_EQ(value(text, R"(facetheory_requests_total{state="hit"})"), kTotal);
  EXPECT_EQ(value(text, R"(facetheory_responses_total{code="2xx"})"), kTotal);
  EXPECT_EQ(value(text, "facetheory_response_bytes_total"), 3 * kTotal);
  EXPECT_EQ(value(text, R"(facetheory_store_duration_seconds_count{store="table",operation="get"})"), kTotal);
  EXPECT_EQ(value(text, R"(facetheory_store_errors_total{store="table",operation="get"})"), kTotal / 2);
  EXPECT_EQ(value(text, R"(facetheory_regenerations_total{outcome="published"})"), kTotal);
  EXPECT_EQ(value(text, R"(facetheory_origin_requests_total{origin="web",code="2xx"})"), kTotal);
  EXPECT_EQ(value(text, R"(facetheory_origin_requests_in_flight{origin="web"})"), 0);
  EXPECT_NEAR(value(text, R"(facetheory_request_duration_seconds_sum{state="hit"})"), kTotal / 1e6, 1e-9);
}

TEST(Metrics, LoopsDoNotShareCacheLines) {
  EXPECT_EQ(alignof(LoopMetrics) % 128, 0U);
  EXPECT_EQ(sizeof(LoopMetrics) % 128, 0U);
}

TEST(ProcessStats, SaysWhatTheProcessUses) {
  const ProcessStats before = process_stats();
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_GT(before.start_time, now - 600);
  EXPECT_LT(before.start_time, now + 2);
  EXPECT_GT(before.cpu_seconds, 0);
  EXPECT_GT(before.resident_bytes, 1'000'000U);
  EXPECT_GT(before.most_descriptors, 10U);
  const int one = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(process_stats().open_descriptors, before.open_descriptors + 1);
  ::close(one);
  EXPECT_EQ(process_stats().start_time, before.start_time);
}

// ---- docs/metrics.md

// "name type label,label" for each family.
std::vector<std::string> exposed() {
  Metrics metrics({.version = "1"});
  count_everything(metrics);
  std::map<std::string, std::string> types;
  std::map<std::string, std::set<std::string>> labels;
  std::istringstream lines(metrics.text());
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark;
    std::string keyword;
    if (line.starts_with("# TYPE ")) {
      words >> mark >> keyword >> family >> types[family];
    } else if (!line.starts_with("#") && line.find('{') != std::string::npos) {
      const std::string inside = line.substr(line.find('{') + 1, line.rfind('}') - line.find('{') - 1);
      std::istringstream pairs(inside);
      for (std::string pair; std::getline(pairs, pair, ',');) {
        if (!pair.starts_with("le=")) labels[family].insert(pair.substr(0, pair.find('=')));
      }
    }
  }
  std::vector<std::string> all;
  for (const auto& [name, type] : types) {
    std::string row = name + " " + type;
    for (const std::string& label : labels[name])
      row += " " + label;
    all.push_back(row);
  }
  return all;
}

// The same from the rows "| `name` | type | `label`, `label` | meaning |".
std::vector<std::string> documented() {
  std::vector<std::string> all;
  std::ifstream file(FACETHEORY_METRICS_DOC);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `facetheory_") && !line.starts_with("| `process_")) continue;
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '|');)
      cells.push_back(cell);
    if (cells.size() != 5) {
      ADD_FAILURE() << "not four cells: " << line;
      continue;
    }
    std::set<std::string> labels;
    std::istringstream words(cells[3]);
    for (std::string word; std::getline(words, word, '`');) {
      if (word.find_first_not_of(" ,") != std::string::npos) labels.insert(word);
    }
    std::string row;
    std::istringstream name_and_type(cells[1] + cells[2]);
    for (std::string word; name_and_type >> word;) {
      std::erase(word, '`');
      row += (row.empty() ? "" : " ") + word;
    }
    for (const std::string& label : labels)
      row += " " + label;
    all.push_back(row);
  }
  return all;
}

TEST(MetricsDoc, ListsEveryFamilyWithItsTypeAndLabels) {
  EXPECT_THAT(documented(), testing::UnorderedElementsAreArray(exposed()));
}

TEST(MetricsDoc, NamesEveryStateAndOutcome) {
  std::ifstream file(FACETHEORY_METRICS_DOC);
  const std::string document(std::istreambuf_iterator<char>(file), {});
  for (const std::string_view state : kRequestStates)
    EXPECT_THAT(document, HasSubstr("| `" + std::string(state) + "` |"));
  for (const std::string_view outcome : kRegenerationOutcomes)
    EXPECT_THAT(document, HasSubstr("| `" + std::string(outcome) + "` |"));
}

TEST(MetricsDoc, AlertsArePromQlThatNamesExistingFamilies) {
  std::ifstream file(FACETHEORY_METRICS_DOC);
  std::string document(std::istreambuf_iterator<char>(file), {});
  const std::size_t begin = document.find("```yaml\n");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = document.find("```", begin + 8);
  const std::string rules = document.substr(begin + 8, end - begin - 8);
  test::TemporaryDirectory directory;
  const std::string path = (directory.path() / "rules.yaml").string();
  std::ofstream(path) << rules;
  const auto checked =
      test::run_script(std::string(FACETHEORY_PROMTOOL) + " check rules '" + path + "' 2>&1");
  EXPECT_EQ(checked.exit_status, 0) << testing::PrintToString(checked.lines);

  std::set<std::string> names;
  for (const std::string& row : exposed())
    names.insert(row.substr(0, row.find(' ')));
  std::size_t used = 0;
  for (std::size_t at = rules.find("facetheory_"); at != std::string::npos;
       at = rules.find("facetheory_", at + 1)) {
    std::string name = rules.substr(at, rules.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at) - at);
    for (const std::string suffix : {"_bucket", "_count", "_sum"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    }
    EXPECT_TRUE(names.contains(name)) << name;
    ++used;
  }
  EXPECT_GT(used, 5U);
}

}  // namespace
}  // namespace facetheory
