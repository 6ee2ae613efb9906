// Answers that one loop makes ready for another.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
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
  using GatewayFixture::GatewayFixture;

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

// A page that is asked for often is read ahead, many with one request, and what is at hand lives on by that.
class FreshAnswersFromAfar : public FreshAnswers {
 protected:
  FreshAnswersFromAfar() : FreshAnswers(1s) {}

  // By an answer for which the page was looked up once.
  boost::intrusive_ptr<PointerTrust> put_at_hand() {
    rendered_again();
    auto answer = rendered_again();
    if (!answer || !answer->page.trust) throw std::runtime_error("the answer tells of no pointer");
    boost::intrusive_ptr<PointerTrust> trust = answer->page.trust;
    take_to_the_front(std::move(answer));
    return trust;
  }
  void ask_often() {
    for (int i = 0; i < 4; ++i)
      EXPECT_NE(at_hand(), "");
  }
  // Until the engine has read ahead, as far as it does, in the background.
  bool is_read_ahead(const PointerTrust& trust, Duration before) {
    for (int i = 0; i < 200 && trust.read_at() == before; ++i)
      run(system_clock().sleep_for(5ms));
    return trust.read_at() > before;
  }
};

TEST_F(FreshAnswersFromAfar, LiveOnWhileTheTableSaysTheSame) {
  const auto trust = put_at_hand();
  for (int second = 0; second < 5; ++second) {
    ask_often();
    const Duration before = trust->read_at();
    clock_.advance(970ms);
    ASSERT_TRUE(is_read_ahead(*trust, before)) << second;
  }
  clock_.advance(900ms);
  EXPECT_NE(at_hand().find("Age: 5\r\n"), std::string::npos) << at_hand();
}

TEST_F(FreshAnswersFromAfar, EndAfterPointerTtlWhereNobodyAsksForThem) {
  const auto trust = put_at_hand();
  EXPECT_NE(at_hand(), "");
  const Duration before = trust->read_at();
  clock_.advance(970ms);
  EXPECT_FALSE(is_read_ahead(*trust, before));
  clock_.advance(30ms);
  EXPECT_EQ(at_hand(), "");
}

TEST_F(FreshAnswersFromAfar, EndWithinPointerTtlWhereTheTableSaysSomethingElse) {
  const auto trust = put_at_hand();
  ask_often();
  ASSERT_TRUE(run(invalidate(isr_, *page_of("http://example.com/a"))));
  const Duration before = trust->read_at();
  clock_.advance(970ms);
  EXPECT_FALSE(is_read_ahead(*trust, before));
  EXPECT_NE(at_hand(), "");  // It is trusted still.
  clock_.advance(30ms);
  EXPECT_EQ(at_hand(), "");
}

TEST_F(FreshAnswersFromAfar, EndAtOnceWhereThisProcessHasInvalidatedThePage) {
  put_at_hand();
  ask_often();
  engine_.forget(*page_of("http://example.com/a"));
  EXPECT_EQ(at_hand(), "");
}

}  // namespace
}  // namespace facetheory
