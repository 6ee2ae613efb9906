// A fleet of engines over one table that counts what it is asked, in simulated time: every step is taken on one thread,
// so the same program gives the same figures each time. tools/scale_model computes by formulas what a large fleet asks,
// for docs/scale.md. That they are true is shown here: what they say of one node is counted.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/cache/engine.h"
#include "facetheory/isr/invalidate.h"

#include "tests/support/counting_table.h"
#include "tests/support/manual_clock.h"

namespace facetheory::test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kStep = 1ms;
constexpr Duration kTravel = 5ms;  // What a request to the table takes.

class FleetTest : public testing::Test {
 protected:
  ~FleetTest() override {
    for (const auto& node : nodes_)
      run(node->drain());
    settle();
  }

  void add_nodes(int count, Duration pointer_ttl) {
    for (int i = 0; i < count; ++i) {
      EngineOptions options;
      options.pointer_ttl = pointer_ttl;
      nodes_.push_back(std::make_unique<Engine>(loop_.get_executor(), isr_, std::move(options)));
    }
  }
  void add_pages(int count, std::chrono::seconds window) {
    for (int i = 0; i < count; ++i)
      pages_.push_back(*page_of("/news/" + std::to_string(i)));
    window_ = window;
  }

  // Whatever can happen at this moment, happens.
  void settle() {
    loop_.restart();
    while (loop_.poll() > 0)
      loop_.restart();
  }
  void pass(Duration time) {
    for (const Duration end = clock_.monotonic() + time; clock_.monotonic() < end;) {
      clock_.advance(kStep);
      settle();
    }
  }
  void run(Task<void> task) {
    bool ended = false;
    boost::asio::co_spawn(loop_, std::move(task), [&](const std::exception_ptr&) { ended = true; });
    settle();
    for (int i = 0; i < 100'000 && !ended; ++i)
      pass(kStep);
    EXPECT_TRUE(ended);
  }

  void ask(std::size_t node, std::size_t page) {
    ServeRequest request{.page = pages_[page], .policy = {}};
    request.tags = {"news"};
    boost::asio::co_spawn(loop_, serve(*nodes_[node], std::move(request)), [](const std::exception_ptr&) {});
  }
  Task<void> serve(Engine& engine, ServeRequest request) {
    const Duration came = clock_.monotonic();
    const std::string request_page = request.page.pk;
    auto served = co_await engine.serve(std::move(request), renderer());
    ++answers_;
    if (!served) ++errors_;
    if (served && served->body) last_body_[request_page] = std::string(served->body->bytes());
    const Duration took = clock_.monotonic() - came;
    if (took > Duration(0)) ++waited_;
    longest_wait_ = std::max(longest_wait_, took);
  }
  Renderer renderer() {
    return [this](RenderContext) -> Task<Result<Rendered>> {
      ++renders_;
      co_await clock_.sleep_for(render_takes_);
      Rendered page;
      page.body.bytes = generation_;
      page.revalidate = window_;
      page.tags = {"news"};
      co_return page;
    };
  }
  // By somebody who is none of the nodes.
  Task<void> invalidated(Page page) {
    auto done = co_await invalidate(isr_, std::move(page));
    EXPECT_TRUE(done);
  }
  Task<void> marked() {
    auto done = co_await mark_tag(isr_, "", "news", MarkKind::invalidate);
    EXPECT_TRUE(done);
  }
  // All pages are there, rendered by none of the nodes, and each node has asked for each.
  void warm_up() {
    Engine other(loop_.get_executor(), isr_);
    for (const Page& page : pages_) {
      ServeRequest request{.page = page, .policy = {}};
      request.tags = {"news"};
      boost::asio::co_spawn(loop_, serve(other, std::move(request)), [](const std::exception_ptr&) {});
    }
    settle();
    pass(1s);
    run(other.drain());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      for (std::size_t page = 0; page < pages_.size(); ++page)
        ask(node, page);
      settle();
      pass(100ms);
    }
    pass(2s);
    forget_figures();
  }
  void forget_figures() {
    table_.take();
    answers_ = errors_ = waited_ = renders_ = 0;
    longest_wait_ = Duration(0);
  }

  // All nodes are asked for a page whose window is over, in the same moment.
  Units one_renders_and_others_wait(int nodes, Duration render) {
    add_nodes(nodes, 1s);
    add_pages(1, 60s);
    warm_up();
    pass(60s);
    render_takes_ = render;
    forget_figures();
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      ask(node, 0);
    settle();
    pass(render + 4s);
    EXPECT_EQ(renders_, 1U);
    return table_.take();
  }

  boost::asio::io_context loop_{1};
  ManualClock clock_;
  SeededRandom random_{7};
  CountingTable table_{clock_, kTravel};
  MemoryBodies bodies_;
  Isr isr_{table_, bodies_, clock_, random_, {}};
  std::vector<std::unique_ptr<Engine>> nodes_;
  std::vector<Page> pages_;
  std::chrono::seconds window_{3600};
  Duration render_takes_{0};
  std::string generation_ = "page";
  SeededRandom chance_{11};
  std::map<std::string, std::string> last_body_;  // By pk.

  std::uint64_t answers_ = 0, errors_ = 0, waited_ = 0, renders_ = 0;
  Duration longest_wait_{0};
};

// All of them are wanted in the same moment, and nobody knows them.
TEST_F(FleetTest, PagesThatAreWantedAtOnceAreReadTogether) {
  add_nodes(1, 1s);
  add_pages(1000, 3600s);
  warm_up();
  for (std::size_t page = 0; page < pages_.size(); ++page)
    ask(0, page);
  settle();
  pass(100ms);
  const Units units = table_.take();
  std::cout << fmt::format("at once: {} requests, {} rows, {} read units, longest wait {} ms\n",
                           units.requests, units.keys, units.read, longest_wait_ / 1ms);
  EXPECT_EQ(answers_, 1000U);
  EXPECT_LE(units.requests, 12);     // One goes at once, the others by the hundred.
  EXPECT_LE(units.keys, 1000 + 24);  // Each request has the two marks that all of them need.
  EXPECT_LE(longest_wait_, kTravel + 1ms);
}

// Ten times a second each, one after the other.
TEST_F(FleetTest, HotPagesAreReadAheadInBatches) {
  add_nodes(1, 1s);
  add_pages(1000, 3600s);
  warm_up();
  const auto seconds_pass = [&](int seconds) {
    for (int tenth = 0; tenth < 10 * seconds; ++tenth) {
      for (std::size_t page = 0; page < pages_.size(); ++page) {
        ask(0, page);
        if (page % 10 == 9) pass(1ms);
      }
    }
  };
  seconds_pass(2);
  forget_figures();
  seconds_pass(5);
  const Units units = table_.take();
  std::cout << fmt::format(
      "hot: {} answers, {} requests/s, {} rows/s, {} read units/s, {} waited, longest {} ms\n", answers_,
      units.requests / 5, units.keys / 5, units.read / 5, waited_, longest_wait_ / 1ms);
  EXPECT_EQ(answers_, 50'000U);
  EXPECT_EQ(waited_, 0U);
  EXPECT_LE(units.requests, 5 * 50);
  EXPECT_LE(units.keys, 5 * 1100);  // Each a little more often than once in pointer_ttl, and the marks.
  EXPECT_EQ(units.write, 0);
}

TEST_F(FleetTest, PagesThatNobodyAsksForAnyMoreAreNotRead) {
  add_nodes(1, 1s);
  add_pages(100, 3600s);
  warm_up();
  for (int i = 0; i < 5; ++i) {
    for (std::size_t page = 0; page < pages_.size(); ++page)
      ask(0, page);
    settle();
    pass(100ms);
  }
  pass(1s);  // They were asked for often, and so they are read once more.
  EXPECT_GT(table_.take().keys, 200);
  pass(60s);
  EXPECT_EQ(table_.take().requests, 0);
}

TEST_F(FleetTest, PageThatIsSeldomAskedForIsReadForWhoeverAsksAndForNobodyElse) {
  add_nodes(1, 1s);
  add_pages(1, 3600s);
  warm_up();
  for (int i = 0; i < 20; ++i) {
    ask(0, 0);
    settle();
    pass(400ms);
    ask(0, 0);  // It is trusted still, but that is not often.
    settle();
    pass(1600ms);
  }
  const Units units = table_.take();
  EXPECT_EQ(units.requests, 20);
  EXPECT_EQ(units.keys, 60);
  EXPECT_EQ(waited_, 20U);
}

// What is read ahead was read before its time is over, and is trusted for no longer than anything else.
TEST_F(FleetTest, ChangeIsSeenWithinPointerTtlHoweverOftenThePageIsAskedFor) {
  add_nodes(2, 1s);
  add_pages(10, 3600s);
  warm_up();
  const auto all_are_asked_for = [&](Duration time) {
    for (Duration passed{}; passed < time; passed += 50ms) {
      for (std::size_t page = 0; page < pages_.size(); ++page)
        ask(1, page);
      settle();
      pass(50ms);
    }
  };
  for (int round = 0; round < 10; ++round) {
    all_are_asked_for(1s + 130ms * round);
    generation_ = "page " + std::to_string(round);
    for (const Page& page : pages_)
      run(invalidated(page));
    all_are_asked_for(1s);
    last_body_.clear();
    all_are_asked_for(100ms);  // The page that is stale is rendered meanwhile.
    last_body_.clear();
    all_are_asked_for(100ms);
    for (const Page& page : pages_)
      EXPECT_EQ(last_body_[page.pk], generation_) << round;
  }
  EXPECT_EQ(errors_, 0U);
}

// A page that many nodes serve is stale, and one of them renders it: the others pay for one write in vain each, and
// then for looking at two rows now and then.
TEST_F(FleetTest, NodesThatWaitForAnothersRenderDoNotWrite) {
  constexpr int kNodes = 50;
  const Units units = one_renders_and_others_wait(kNodes, 1s);
  std::cout << fmt::format("one renders, and {} wait: {} write units, {} read units, {} requests\n",
                           kNodes - 1, units.write, units.read, units.requests);
  EXPECT_EQ(units.write, 5 + kNodes - 1);
}

// Each of them knows the page from before the mark, and has learnt of the mark by another page.
TEST_F(FleetTest, OfTheNodesThatLearnOfAMarkOneClosesThePagesWindow) {
  constexpr std::size_t kNodes = 20;
  add_nodes(kNodes, 1s);
  add_pages(2, 3600s);
  warm_up();
  const auto all_nodes_ask = [this](std::size_t page) {
    for (std::size_t node = 0; node < kNodes; ++node) {
      ask(node, page);
      settle();
      pass(1ms);
    }
  };
  all_nodes_ask(1);
  pass(500ms);
  all_nodes_ask(0);
  run(marked());
  pass(500ms);
  all_nodes_ask(1);
  pass(250ms);
  forget_figures();
  ask(0, 0);
  settle();
  pass(12ms);
  for (std::size_t node = 1; node < kNodes; ++node)
    ask(node, 0);
  settle();
  pass(1s);
  EXPECT_EQ(answers_, kNodes);
  EXPECT_EQ(renders_, 1U);
  const Units units = table_.take();
  std::cout << fmt::format("a mark: {} write units, {} read units\n", units.write, units.read);
  // The window is closed, the lease is taken, the page is published; and who comes meanwhile tries to take the lease.
  EXPECT_LE(units.write, 1 + 5 + (kNodes - 1));
}

// --- the formulas of tools/scale_model ------------------------------------------------------------------------------

// The figures of a row of docs/scale.md, behind what it begins with. tools/scale_model prints them.
std::vector<double> figures_behind(const std::string& begin) {
  std::ifstream file(FACETHEORY_SCALE);
  std::vector<double> figures;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(begin)) continue;
    std::istringstream rest(line.substr(begin.size()));
    for (std::string cell; std::getline(rest, cell, '|');) {
      if (cell.find_first_not_of(' ') != std::string::npos) figures.push_back(std::stod(cell));
    }
  }
  return figures;
}

// Visitors of one node come by chance, and their pages are chosen by Zipf's law.
struct Visits {
  int nodes = 0;
  int rate = 0;  // Requests a second, to each.
  int seconds = 0;
};

class FormulasTest : public FleetTest {
 protected:
  static constexpr int kPages = 1000;

  void compare(const std::string& row, Visits visits, Duration pointer_ttl) {
    const std::vector<double> figures = figures_behind(row);
    ASSERT_EQ(figures.size(), 3U) << "docs/scale.md lacks it: " << row;
    add_nodes(visits.nodes, pointer_ttl);
    add_pages(kPages, 3600s);
    warm_up();
    visit({visits.nodes, visits.rate, static_cast<int>(3 * pointer_ttl / 1s)});
    forget_figures();
    visit(visits);
    const double each = visits.nodes * visits.seconds;
    const Units units = table_.take();
    const double rows = units.keys / each;
    const double waited = static_cast<double>(waited_) / each;
    const double requests = units.requests / each;
    std::cout << fmt::format(
        "{} counted: {:.1f} rows, of them {:.1f} marks, {:.1f} visitors wait, {:.1f} requests\n", row, rows,
        units.marks / each, waited, requests);
    EXPECT_NEAR(rows, figures[0], figures[0] * 0.05);
    EXPECT_NEAR(waited, figures[1], figures[1] * 0.1);
    EXPECT_NEAR(requests, figures[2], figures[2] * 0.1);
    EXPECT_NEAR(units.read / each, rows / 2, rows * 0.01);  // Some are on their way.
    EXPECT_EQ(units.write, 0);
    EXPECT_EQ(renders_ + errors_, 0U);
  }

 private:
  void visit(Visits visits) {
    std::vector<double> share;  // Of all requests, of the pages up to that one.
    double all = 0;
    for (int rank = 1; rank <= kPages; ++rank)
      share.push_back(all += 1.0 / rank);
    for (int step = 0; step < visits.seconds * 1000; ++step) {
      for (int node = 0; node < visits.nodes; ++node) {
        if (uniform(chance_, 1000) >= static_cast<std::uint64_t>(visits.rate)) continue;
        const double point = all * static_cast<double>(uniform(chance_, 1 << 30)) / (1 << 30);
        const auto page = std::upper_bound(share.begin(), share.end(), point) - share.begin();
        ask(static_cast<std::size_t>(node), static_cast<std::size_t>(page));
      }
      pass(kStep);
    }
  }
};

TEST_F(FormulasTest, FiftyNodesAskWhatTheDocumentSays) {
  compare("| 1,000 | 100 | 1 s |", {50, 100, 3}, 1s);
}

TEST_F(FormulasTest, BusyNodesAskWhatTheDocumentSays) {
  compare("| 1,000 | 500 | 1 s |", {6, 500, 5}, 1s);
}

TEST_F(FormulasTest, NodesThatTrustForLongAskWhatTheDocumentSays) {
  compare("| 1,000 | 100 | 5 s |", {10, 100, 20}, 5s);
}

TEST_F(FormulasTest, NodesThatWaitForAnothersRenderAskWhatTheDocumentSays) {
  const std::vector<double> figures = figures_behind("| 1 s | since |");
  ASSERT_EQ(figures.size(), 2U);
  const Units units = one_renders_and_others_wait(50, 1s);
  EXPECT_EQ(units.write, 5 + 49 * figures[0]);
  EXPECT_NEAR((units.read - 50 * 1.5 - 4) / 49, figures[1], figures[1] * 0.15);
}

}  // namespace
}  // namespace facetheory::test
