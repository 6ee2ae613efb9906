// What operations cost on DynamoDB, in requests, read units and write units, by its published rules: a read unit is 4
// KiB read consistently, and half of one eventually, whether the item is there or not; a write unit is 1 KiB, and two
// of them in a transaction, whether the condition holds or not. (DynamoDB Local counts neither missing items nor
// transactions so.) docs/performance.md has the same figures: this test reads them there, so that neither code nor
// document can change alone. It prints the table as it is.
#include <atomic>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>

#include <boost/asio/awaitable.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/cache/engine.h"
#include "facetheory/isr/close_pages.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/table/forwarding_table.h"
#include "facetheory/table/item_size.h"
#include "facetheory/table/memory_table.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory::test {
namespace {

using namespace std::chrono_literals;

struct Units {
  int requests = 0;
  double read = 0;
  double write = 0;
};

// Passes everything on, and counts.
class CountingTable final : public ForwardingTable {
 public:
  CountingTable() : ForwardingTable(std::make_shared<MemoryTable>()) {}

  // What was consumed since the last call.
  Units take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(units_, {});
  }

 private:
  static double in_units(std::size_t bytes, std::size_t unit) {
    return static_cast<double>(std::max<std::size_t>(1, (bytes + unit - 1) / unit));
  }
  static std::size_t bytes_of(const std::optional<Item>& item) {
    return item ? item_bytes(item->key, item->attributes) : 0;
  }
  void count_read(double units) {
    const std::lock_guard lock(mutex_);
    units_.read += units;
  }
  void count_request(double write = 0) {
    const std::lock_guard lock(mutex_);
    ++units_.requests;
    units_.write += write;
  }
  // One operation costs by the larger of what was there and what is there then.
  Task<double> cost_of_write(TransactItem write) {
    Key key = std::visit(
        [](const auto& one) -> Key {
          if constexpr (requires { one.item; }) {
            return one.item.key;
          } else {
            return one.key;
          }
        },
        write);
    auto before = co_await inner().get(std::move(key), Consistency::strong);
    std::size_t bytes = before ? bytes_of(*before) : 0;
    if (const auto* put = std::get_if<Put>(&write)) bytes = std::max(bytes, bytes_of(put->item));
    co_return in_units(bytes, 1024);
  }

  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override {
    count_request();
    auto item = co_await inner().get(std::move(key), consistency);
    count_read(in_units(bytes_of(*item), 4096) * (consistency == Consistency::strong ? 1 : 0.5));
    co_return item;
  }
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override {
    count_request();
    auto items = co_await inner().get_all(std::move(keys), consistency);
    for (const auto& item : *items)
      count_read(in_units(bytes_of(item), 4096) * (consistency == Consistency::strong ? 1 : 0.5));
    co_return items;
  }
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override {
    TransactItem item = std::visit([](const auto& one) -> TransactItem { return one; }, write);
    const double cost = co_await cost_of_write(std::move(item));
    count_request(cost);
    co_return co_await inner().write(std::move(write), durability);
  }
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override {
    double cost = 0;
    for (const TransactItem& item : items) {
      TransactItem one = item;
      cost += 2 * co_await cost_of_write(std::move(one));
    }
    count_request(cost);
    co_return co_await inner().transact(std::move(items), std::move(client_token));
  }
  Task<Result<QueryPage>> do_query(Query query) override {
    count_request();
    auto page = co_await inner().query(std::move(query));
    count_read(of_all(page->items));
    co_return page;
  }
  Task<Result<ScanPage>> do_scan(Scan scan) override {
    count_request();
    auto page = co_await inner().scan(std::move(scan));
    count_read(of_all(page->items));
    co_return page;
  }
  // A query or a scan sums up all of its items first.
  static double of_all(const std::vector<Item>& items) {
    std::size_t bytes = 0;
    for (const Item& item : items)
      bytes += bytes_of(item);
    return in_units(bytes, 4096);
  }

  std::mutex mutex_;
  Units units_;  // guarded by mutex_
};

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
  CountingTable table_;
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
