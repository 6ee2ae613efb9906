// What operations cost on DynamoDB, in requests, read units and write units (counting_table.h). docs/performance.md has
// the same figures: this test reads them there, so that neither code nor document can change alone. It prints the table
// as it is.
#include <atomic>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include <boost/asio/awaitable.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/cache/engine.h"
#include "facetheory/isr/close_pages.h"
#include "facetheory/isr/invalidate.h"

#include "tests/support/counting_table.h"
#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory::test {
namespace {

using namespace std::chrono_literals;

class UnitsTest : public testing::Test {
 protected:
  UnitsTest() {
    EngineOptions options;
    options.pointer_ttl = 1s;  // As it is with DynamoDB.
    engine_ = std::make_unique<Engine>(executor(), isr_, std::move(options));
  }
  ~UnitsTest() override { run(engine_->drain()); }

  static Renderer renderer() {
    return [](RenderContext) -> Task<Result<Rendered>> {
      static std::atomic<int> count = 0;
      Rendered page;
      page.body.bytes = "page " + std::to_string(++count);
      page.revalidate = 60s;
      page.tags = {"news"};
      co_return page;
    };
  }
  // An engine serves the page, and ends what it does in the background. Its route gives the page the tag.
  void serves(ServedAs expected, const Page& page, int history = 0) {
    ServeRequest request{.page = page, .policy = {.history = history}};
    request.tags = {"news"};
    auto served = run(engine_->serve(std::move(request), renderer()));
    ASSERT_TRUE(served) << to_string(served.error());
    EXPECT_EQ(name(served->as), name(expected));
    for (int i = 0; i < 1000 && engine_->gauges().flights > 0; ++i)
      run(system_clock().sleep_for(5ms));
    EXPECT_EQ(engine_->gauges().flights, 0U);
  }
  Lease acquired(const Page& page) {
    auto outcome = run(acquire(isr_, page, 30s));
    if (!outcome) throw std::runtime_error(to_string(outcome.error()));
    return std::get<Lease>(*std::move(outcome));
  }
  template <typename T>
  static void succeeds(const Result<T>& result) {
    EXPECT_TRUE(result) << to_string(result.error());
  }

  // Writes down what was consumed since the last call, as a row of the document.
  void cost(const std::string& what) {
    const Units units = table_.take();
    rows_.push_back(fmt::format("| {} | {} | {} | {} |", what, units.requests, units.read, units.write));
  }

  void cost_of_serving() {
    table_.take();
    serves(ServedAs::miss, page_);
    cost("miss, with its render");
    serves(ServedAs::hit, page_);
    table_.take();
    serves(ServedAs::hit, page_);
    cost("hit, pointer known");
    clock_.advance(1s);
    serves(ServedAs::hit, page_);
    cost("hit, pointer expired");
    serves(ServedAs::miss, other_);
    serves(ServedAs::hit, other_);
    table_.take();
    clock_.advance(1s);
    serves(ServedAs::hit, page_);
    table_.take();
    serves(ServedAs::hit, other_);
    cost("hit, pointer expired, marks read for another page");
    clock_.advance(60s);
    serves(ServedAs::stale, page_);
    cost("stale hit, with its render");
    serves(ServedAs::miss, kept_, 3);
    for (int render = 0; render < 3; ++render) {
      clock_.advance(60s);
      serves(ServedAs::stale, kept_, 3);
    }
    table_.take();
    clock_.advance(60s);
    serves(ServedAs::stale, kept_, 3);
    cost("stale hit, with its render, `history = 3`");
  }

  void cost_of_publishing() {
    const auto publishes = [this](Lease lease, const Page& page, int history) {
      Rendered rendered = *run(renderer()(RenderContext{page, lease, {}, {}}));
      PublishOptions options;
      options.history = history;
      succeeds(run(publish(isr_, std::move(lease), std::move(rendered), options)));
    };
    Lease lease = acquired(page_);
    cost("acquire");
    publishes(std::move(lease), page_, 0);
    cost("publish");
    lease = acquired(kept_);
    table_.take();
    clock_.advance(1s);
    publishes(std::move(lease), kept_, 3);
    cost("publish, `history = 3`");
  }

  void cost_of_invalidating() {
    succeeds(run(invalidate(isr_, page_)));
    cost("invalidate a page");
    succeeds(run(purge(isr_, page_)));
    cost("purge a page");
    succeeds(run(mark_tag(isr_, "", "news", MarkKind::invalidate)));
    cost("invalidate or purge a tag or a tenant, however many pages");
  }

  void cost_of_closing(int pages) {
    for (int i = 0; i < pages; ++i) {
      const Page one = *page_of("/" + std::to_string(i), "acme");
      const Renderer render = renderer();
      RegenerateOptions options;
      options.tags = {"news"};
      succeeds(run(regenerate(isr_, one, render, std::move(options))));
    }
    succeeds(run(mark_tag(isr_, "acme", "news", MarkKind::invalidate)));
    table_.take();
    ClosePagesOptions closing;
    closing.tenant = "acme";
    closing.tag = "news";
    EXPECT_EQ(run(close_pages(isr_, closing)).closed, static_cast<std::uint64_t>(pages));
    cost("`--every-page` of " + std::to_string(pages) + " pages, in a small table");
  }

  const Page page_ = *page_of("/news/42");
  const Page other_ = *page_of("/news/43");
  const Page kept_ = *page_of("/news/44");
  std::vector<std::string> rows_;
  ManualClock clock_;
  SeededRandom random_{3};
  CountingTable table_{clock_};
  MemoryBodies bodies_;
  Isr isr_{table_, bodies_, clock_, random_, {}};
  std::unique_ptr<Engine> engine_;
};

// Each row begins where the one before has ended.
TEST_F(UnitsTest, AreThoseThatTheDocumentSays) {
  cost_of_serving();
  cost_of_publishing();
  cost_of_invalidating();
  cost_of_closing(10);

  std::ifstream file(FACETHEORY_PERFORMANCE);
  const std::string document(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(rows_.size(), 13U);
  for (const std::string& row : rows_) {
    std::cout << row << "\n";
    EXPECT_NE(document.find("\n" + row + "\n"), std::string::npos) << "docs/performance.md lacks it: " << row;
  }
}

}  // namespace
}  // namespace facetheory::test
