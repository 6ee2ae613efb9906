// Answers that one loop makes ready for another.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include "facetheory/bodies/open_bodies.h"
#include "facetheory/gateway/gateway.h"
#include "facetheory/gateway/page_answer.h"
#include "facetheory/http/server_request.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/table/open_table.h"

#include "tests/support/gateway_bed.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::run;

class RefreshedAnswers : public testing::Test {
 protected:
  static EngineOptions preparing() {
    EngineOptions options;
    options.prepare = prepare_page;
    return options;
  }
  GatewayParts parts() {
    return {test::executor(), compressor_, fixed_, engine_, isr_, metrics_, purges_, live_};
  }
  std::shared_ptr<const Site> site() const {
    const std::string lines = "[defaults]\nrevalidate = \"10s\"\n";
    return std::make_shared<const Site>(test::bed_config(origin_.port(), lines), test::executor());
  }
  ~RefreshedAnswers() override { run(engine_.drain()); }

  // A gateway is used nowhere else.
  template <typename Action>
  static auto on_the_loop(Action action) {
    return boost::asio::post(test::executor(), boost::asio::use_future(std::move(action))).get();
  }

  std::optional<FreshAnswer> refreshed() { return run(refresher_.refresh(request_)); }
  // What the front has at hand, with its head; empty: nothing.
  std::string at_hand() {
    return on_the_loop([this]() -> std::string {
      RequestHead head{"GET", "/a", 1, {{"Host", "example.com"}}, 0};
      const ReadyAnswer* answer = front_.ready(head, "127.0.0.1", 0);
      return answer != nullptr ? std::string(answer->head) + std::string(answer->body) : "";
    });
  }
  void was_refreshed(std::optional<FreshAnswer> answer) {
    on_the_loop([&] { front_.was_refreshed(request_, std::move(answer)); });
  }

  test::ManualClock clock_;
  test::TestOrigin origin_;
  const std::unique_ptr<Table> table_ = *open_table("memory:", test::executor());
  const std::unique_ptr<BodyStore> bodies_ = *open_bodies("memory:", test::executor());
  const Isr isr_{*table_, *bodies_, clock_};
  Metrics metrics_{{}};
  PurgeRate purges_{clock_};
  std::shared_ptr<LiveMemory> live_ = make_live_memory(std::size_t{1} << 20);
  Compressor compressor_{clock_};
  FixedMemory fixed_{1 << 20};
  Engine engine_{test::executor(), isr_, preparing()};
  const std::shared_ptr<const Site> site_ = site();
  Gateway refresher_{parts(), site_};
  Gateway front_{parts(), site_};
  const ServerRequest request_{"GET", "/a", {{"Host", "example.com"}}, "", "127.0.0.1"};
};

TEST_F(RefreshedAnswers, AreThoseOfThePageAsItIsNow) {
  EXPECT_EQ(at_hand(), "");
  was_refreshed(refreshed());
  EXPECT_NE(at_hand().find("X-FaceTheory-ISR: hit\r\n\r\n/a 1"), std::string::npos) << at_hand();
  clock_.advance(12s);
  EXPECT_NE(at_hand().find("X-FaceTheory-ISR: stale\r\n\r\n/a 1"), std::string::npos) << at_hand();
  was_refreshed(refreshed());
  EXPECT_NE(at_hand().find("Age: 0\r\nCache-Status: facetheory; hit; ttl=10\r\n"), std::string::npos);
  EXPECT_NE(at_hand().find("X-FaceTheory-ISR: hit\r\n\r\n/a 2"), std::string::npos) << at_hand();
  EXPECT_EQ(origin_.count("/a"), 2U);
}

// Nothing of it can be kept ready, and it is asked for once and no more.
TEST_F(RefreshedAnswers, OfAPageThatIsNeverFreshThereAreNone) {
  ASSERT_TRUE(refreshed());
  for (const char* control : {"no-cache", "max-age=0", "no-store", "private"}) {
    clock_.advance(60s);
    origin_.answer("/a", 200, {{"Content-Type", "text/html"}, {"Cache-Control", control}}, control);
    const std::size_t before = origin_.count("/a");
    EXPECT_FALSE(refreshed()) << control;
    EXPECT_LE(origin_.count("/a"), before + 1) << control;
  }
  EXPECT_GT(origin_.count("/a"), 1U);
}

TEST_F(RefreshedAnswers, OfAPageWhoseVariantsLeadToNoEndThereAreNone) {
  std::atomic<int> number = 0;
  origin_.answer("/a", [&number](const ServerRequest&) {
    const std::string name = "X-" + std::to_string(++number);
    return test::answer_of(200, {{"Content-Type", "text/html"}, {"Vary", name}}, name);
  });
  Headers fields{{"Host", "example.com"}};
  for (int i = 1; i < 9; ++i)
    fields.add("X-" + std::to_string(i), "1");
  const ServerRequest varying{"GET", "/a", fields, "", "127.0.0.1"};
  for (int i = 0; i < 3; ++i)
    run(refresher_.refresh(varying));
  EXPECT_GT(origin_.count("/a"), 3U);
}

TEST_F(RefreshedAnswers, AreNotUsedWhenThePageHasChangedOnTheWay) {
  auto answer = refreshed();
  ASSERT_TRUE(answer);
  ASSERT_TRUE(run(purge(isr_, Page{answer->page.rows.front().pk})));
  was_refreshed(std::move(answer));
  EXPECT_EQ(at_hand(), "");
}

TEST_F(RefreshedAnswers, AreUsedWhenOtherPagesHaveChanged) {
  auto answer = refreshed();
  const ServerRequest other{"GET", "/b", {{"Host", "example.com"}}, "", "127.0.0.1"};
  ASSERT_TRUE(run(refresher_.refresh(other)));
  was_refreshed(std::move(answer));
  EXPECT_NE(at_hand(), "");
}

TEST_F(RefreshedAnswers, AreNotUsedWithAnotherConfiguration) {
  auto answer = refreshed();
  on_the_loop([this] { front_.use(site()); });
  was_refreshed(std::move(answer));
  EXPECT_EQ(at_hand(), "");
}

}  // namespace
}  // namespace facetheory
