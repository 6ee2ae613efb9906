// What the tests of the engine share: a node on stores that fail on demand, renderers, and ways to ask.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/event.h"
#include "facetheory/bodies/faulty_bodies.h"
#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/cache/engine.h"
#include "facetheory/isr/history.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/table/faulty_table.h"
#include "facetheory/table/memory_table.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory::test {

using namespace std::chrono_literals;

// One node of a fleet: an engine with a memory of its own on stores that it shares.
class EngineFixture : public testing::Test {
 protected:
  ~EngineFixture() override {
    for (Engine* engine : engines_)
      run(engine->drain());
  }

  std::unique_ptr<Engine> node(EngineOptions options = {}) {
    auto engine = std::make_unique<Engine>(executor(), isr_, std::move(options));
    return engine;
  }

  // Renders "page 1", "page 2", ... and counts.
  Renderer renderer() {
    return [this](RenderContext) -> Task<Result<Rendered>> { co_return rendered(++renders_); };
  }
  // The same, but not before the gate is opened.
  Renderer behind_a_gate() {
    return [this](RenderContext) -> Task<Result<Rendered>> {
      const int number = ++renders_;
      rendering_.set();
      co_await gate_.wait(system_clock(), 10s);
      co_return rendered(number);
    };
  }
  Renderer failing(std::string message = "origin answered 503") {
    return [this, message](RenderContext) -> Task<Result<Rendered>> {
      ++renders_;
      co_return Error{ErrorCode::unavailable, message};
    };
  }
  static Rendered rendered(int number) {
    Rendered page;
    page.body.bytes = "page " + std::to_string(number);
    page.body.metadata.content_type = "text/html";
    page.revalidate = 60s;
    page.tags = {"news"};
    return page;
  }

  ServeRequest request(PagePolicy policy = {}) const { return {.page = page_, .policy = policy}; }
  // "hit: page 1"
  static std::string in_words(const Result<Served>& served) {
    if (!served) return "error: " + served.error().message;
    const std::string as(name(served->as));
    return served->body ? as + ": " + std::string(served->body->bytes()) : as;
  }
  std::string serving(Engine& engine, ServeRequest request, Renderer renderer) {
    const Result<Served> served = run(engine.serve(std::move(request), std::move(renderer)));
    return in_words(served);
  }
  std::string serving(Engine& engine) { return serving(engine, request(), renderer()); }
  std::string serving(PagePolicy policy, Renderer by) {
    return serving(*engine_, request(policy), std::move(by));
  }
  // Serves somebody who goes away when the event happens.
  static Task<void> unless(Event& leaves, Task<Result<Served>> serving) {
    using namespace boost::asio::experimental::awaitable_operators;
    Task<bool> leaving = leaves.wait(system_clock(), 10s);
    Task<std::optional<Result<Served>>> answering = as_optional(std::move(serving));
    co_await (std::move(answering) || std::move(leaving));
  }
  // A request that is under way.
  struct Asked {
    std::shared_ptr<std::optional<Result<Served>>> answer;
    std::future<void> ended;

    bool is_answered() const { return ended.wait_for(0s) == std::future_status::ready; }
    // Its answer, in words.
    std::string get() {
      ended.get();
      return in_words(**answer);
    }
  };
  static Asked ask(Engine& engine, ServeRequest request, Renderer renderer) {
    auto answer = std::make_shared<std::optional<Result<Served>>>();
    auto ended = start(store(engine.serve(std::move(request), std::move(renderer)), *answer));
    return {answer, std::move(ended)};
  }
  Asked ask(ServeRequest request, Renderer renderer) {
    return ask(*engine_, std::move(request), std::move(renderer));
  }
  // Waits (in real time, bounded) until what happens in the background has happened.
  template <typename Condition>
  bool eventually(Condition condition) {
    for (int i = 0; i < 1000; ++i) {
      if (condition()) return true;
      run(system_clock().sleep_for(5ms));
    }
    return false;
  }

  // The same, while time passes.
  template <typename Condition>
  bool pass_until(Condition condition) {
    return eventually([&] {
      clock_.advance(500ms);
      return condition();
    });
  }

  ManualClock clock_;
  SeededRandom random_{5};
  std::shared_ptr<FaultScript> script_ = std::make_shared<FaultScript>();
  std::shared_ptr<MemoryTable> plain_table_ = std::make_shared<MemoryTable>();
  std::shared_ptr<MemoryBodies> plain_bodies_ = std::make_shared<MemoryBodies>();
  FaultyTable table_{plain_table_, script_, clock_};
  FaultyBodies bodies_{plain_bodies_, script_, clock_};
  Isr isr_{table_, bodies_, clock_, random_, {}};
  Isr others_{*plain_table_, *plain_bodies_, clock_, random_, {}};  // Another process, past the faults.
  Page page_ = *page_of("/news/42");
  std::atomic<int> renders_ = 0;
  Event gate_;
  Event rendering_;
  std::unique_ptr<Engine> engine_ = node();
  std::vector<Engine*> engines_{engine_.get()};
};

}  // namespace facetheory::test
