// Answers that one loop makes ready for another.
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "facetheory/http/message_head.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/server/ready_answer.h"

#include "tests/support/gateway_fixture.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::run;

class FreshAnswers : public test::GatewayFixture {
 protected:
  std::optional<FreshAnswer> rendered_again() { return run(background_.render_again(request_)); }
  // What the front has at hand, with its head; empty: nothing.
  std::string at_hand() {
    return on_the_loop([this]() -> std::string {
      RequestHead head{"GET", "/a", 1, {{"Host", "example.com"}}, 0};
      const ReadyAnswer* answer = front_.answer_at_once(head, "127.0.0.1", 0);
      return answer != nullptr ? std::string(answer->head) + std::string(answer->body) : "";
    });
  }
  void take_to_the_front(std::optional<FreshAnswer> answer) {
    on_the_loop([&] { front_.was_rendered_again(request_, std::move(answer)); });
  }

  Gateway background_{parts(), site_};
  Gateway front_{parts(), site_};
};

TEST_F(FreshAnswers, AreThoseOfThePageAsItIsNow) {
  EXPECT_EQ(at_hand(), "");
  take_to_the_front(rendered_again());
  EXPECT_NE(at_hand().find("X-FaceTheory-ISR: hit\r\n\r\n/a 1"), std::string::npos) << at_hand();
  clock_.advance(12s);
  EXPECT_NE(at_hand().find("X-FaceTheory-ISR: stale\r\n\r\n/a 1"), std::string::npos) << at_hand();
  take_to_the_front(rendered_again());
  EXPECT_NE(at_hand().find("Age: 0\r\nCache-Status: facetheory; hit; ttl=10\r\n"), std::string::npos);
  EXPECT_NE(at_hand().find("X-FaceTheory-ISR: hit\r\n\r\n/a 2"), std::string::npos) << at_hand();
  EXPECT_EQ(origin_.count("/a"), 2U);
}

// Nothing of it can be kept ready, and it is asked for once and no more.
TEST_F(FreshAnswers, OfAPageThatIsNeverFreshThereAreNone) {
  ASSERT_TRUE(rendered_again());
  for (const char* control : {"no-cache", "max-age=0", "no-store", "private"}) {
    clock_.advance(60s);
    origin_.answer("/a", 200, {{"Content-Type", "text/html"}, {"Cache-Control", control}}, control);
    const std::size_t before = origin_.count("/a");
    EXPECT_FALSE(rendered_again()) << control;
    EXPECT_LE(origin_.count("/a"), before + 1) << control;
  }
  EXPECT_GT(origin_.count("/a"), 1U);
}

TEST_F(FreshAnswers, OfAPageWhoseVariantsLeadToNoEndThereAreNone) {
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
    run(background_.render_again(varying));
  EXPECT_GT(origin_.count("/a"), 3U);
}

TEST_F(FreshAnswers, AreNotUsedWhenThePageHasChangedOnTheWay) {
  auto answer = rendered_again();
  ASSERT_TRUE(answer);
  ASSERT_TRUE(run(purge(isr_, Page{answer->page.text.rows().front().pk})));
  take_to_the_front(std::move(answer));
  EXPECT_EQ(at_hand(), "");
}

TEST_F(FreshAnswers, AreUsedWhenOtherPagesHaveChanged) {
  auto answer = rendered_again();
  const ServerRequest other{"GET", "/b", {{"Host", "example.com"}}, "", "127.0.0.1"};
  ASSERT_TRUE(run(background_.render_again(other)));
  take_to_the_front(std::move(answer));
  EXPECT_NE(at_hand(), "");
}

TEST_F(FreshAnswers, AreNotUsedWithAnotherConfiguration) {
  auto answer = rendered_again();
  on_the_loop([this] { front_.use(site()); });
  take_to_the_front(std::move(answer));
  EXPECT_EQ(at_hand(), "");
}

}  // namespace
}  // namespace facetheory
