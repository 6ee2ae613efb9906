// Gateway answers whatever brings it a request, and belongs to one loop.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "facetheory/http/message_head.h"

#include "tests/support/gateway_fixture.h"

namespace facetheory {
namespace {

using test::run;

Task<void> wait_for_ever() {
  boost::asio::steady_timer never(co_await boost::asio::this_coro::executor,
                                  boost::asio::steady_timer::time_point::max());
  co_await never.async_wait(boost::asio::use_awaitable);
}

// A request of another protocol than HTTP/1.1, and its answer: there is no connection and no framing.
class OtherExchange final : public ServerExchange {
 public:
  explicit OtherExchange(ServerRequest request, std::string body = "") : rest_(std::move(body)) {
    request_ = std::move(request);
    request_.major_version = 2;
    request_.minor_version = 0;
    has_body_ = !rest_.empty();
  }

  bool has_body() const override { return has_body_; }
  std::optional<std::uint64_t> body_length() const override { return std::nullopt; }
  bool expects_continue() const override { return false; }
  Task<Result<std::string_view>> read() override {
    piece_ = std::exchange(rest_, {});
    co_return std::string_view(piece_);
  }
  const Headers& trailers() const override { return none_; }
  Task<Result<void>> respond(ServerResponse response) override {
    if (never_ends_) co_await wait_for_ever();
    take_head(response.status, std::move(response.headers));
    body_ = response.body;
    bytes_sent_ = body_.size();
    progress_ = AnswerProgress::whole;
    co_return Result<void>{};
  }
  Task<Result<void>> begin(int status, Headers headers, std::optional<std::uint64_t>) override {
    take_head(status, std::move(headers));
    co_return Result<void>{};
  }
  Task<Result<void>> write(std::string_view piece) override {
    body_ += piece;
    bytes_sent_ += piece.size();
    co_return Result<void>{};
  }
  Task<Result<void>> finish(Headers) override {
    progress_ = AnswerProgress::whole;
    co_return Result<void>{};
  }
  Task<Result<void>> interim(int, Headers) override { co_return Result<void>{}; }
  Task<void> client_left() override { return wait_for_ever(); }
  std::stop_token probably_left() override { return {}; }
  Task<Result<void>> switch_protocols(Headers) override { co_return Result<void>{}; }
  void shut_down_sending() override {}
  AnswerProgress progress() const override { return progress_; }

  void never_end() { never_ends_ = true; }  // Nobody takes the answer.
  const std::string& body() const { return body_; }
  std::string field(std::string_view name) const { return std::string(headers_.get(name).value_or("")); }

 private:
  void take_head(int status, Headers headers) {
    status_ = status;
    headers_ = std::move(headers);
  }

  std::string rest_;
  std::string piece_;
  bool has_body_ = false;
  bool never_ends_ = false;
  AnswerProgress progress_ = AnswerProgress::unfinished;
  const Headers none_;
  Headers headers_;
  std::string body_;
};

class GatewayExchange : public test::GatewayFixture {
 protected:
  Gateway gateway_{parts(), site_};
};

TEST_F(GatewayExchange, OfAnotherProtocolIsAnsweredFromAPage) {
  for (const char* state : {"miss", "hit"}) {
    OtherExchange exchange(request_);
    run(gateway_.handle(exchange));
    EXPECT_EQ(exchange.status(), 200);
    EXPECT_EQ(exchange.body(), "/a 1");
    EXPECT_EQ(exchange.field("x-facetheory-isr"), state);
  }
}

TEST_F(GatewayExchange, OfAnotherProtocolIsPassedOnWithItsBody) {
  ServerRequest request = request_;
  request.method = "POST";
  OtherExchange exchange(std::move(request), "sent");
  run(gateway_.handle(exchange));
  EXPECT_EQ(exchange.body(), "/a 1");
  const auto requests = origin_.requests("/a");
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests.front().body, "sent");
  EXPECT_EQ(requests.front().headers.get("via"), "2.0 facetheory");
}

// What the access log is told of a request.
TEST_F(GatewayExchange, IsToldOfWithItsTimeAndWithTheReasonWhereItIsNoPageAsItShouldBe) {
  struct Told {
    std::string state, detail;
    WallTime time;
    std::uint64_t bytes;
  };
  std::vector<Told> told;
  GatewayParts logging = parts();
  logging.on_answered = [&](const AccessRecord& record) {
    told.push_back({std::string(record.state), std::string(record.detail), record.time, record.bytes});
  };
  Gateway gateway(std::move(logging), site_);
  ServerRequest cookie = request_;
  cookie.headers.add("Cookie", "session=1");
  for (const ServerRequest& request : {request_, request_, cookie}) {
    clock_.advance(std::chrono::seconds(1));
    OtherExchange exchange(request);
    run(gateway.handle(exchange));
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back().time, clock_.now());
    EXPECT_EQ(told.back().bytes, exchange.body().size());
  }
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].state, "miss");
  EXPECT_EQ(told[0].detail, "");
  EXPECT_EQ(told[1].state, "hit");
  EXPECT_EQ(told[1].detail, "");
  EXPECT_EQ(told[2].state, "pass");
  EXPECT_NE(told[2].detail, "");
}

// Nobody runs the gateway's loop: whatever is done here is done elsewhere.
class GatewayDeathTest : public test::GatewayFixture {
 protected:
  static constexpr const char* kElsewhere = "a gateway was used on another thread than its own";

  // The origin and the engine have threads, of which a plain fork would know nothing.
  GatewayDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  static void begin_elsewhere(Task<void> task) {
    boost::asio::io_context other;
    boost::asio::co_spawn(other, std::move(task), boost::asio::detached);
    other.poll();
  }
  Task<void> rendering_again(ServerRequest request) {
    [[maybe_unused]] auto answer = co_await gateway_.render_again(std::move(request));
  }

  boost::asio::io_context loop_;
  Gateway gateway_{parts(loop_.get_executor()), site_};
};

TEST_F(GatewayDeathTest, EndsTheProgramWhenItAnswersElsewhere) {
  const RequestHead head{"GET", "/a", 1, {{"Host", "example.com"}}, 0};
  EXPECT_DEATH((void)gateway_.answer_at_once(head, "127.0.0.1", 0), kElsewhere);
  EXPECT_DEATH(gateway_.refused({400, "malformed", "127.0.0.1", {}}), kElsewhere);
  ServerRequest malformed = request_;
  malformed.target = "no target";
  OtherExchange exchange(std::move(malformed));
  exchange.never_end();
  EXPECT_DEATH(begin_elsewhere(gateway_.handle(exchange)), kElsewhere);
}

TEST_F(GatewayDeathTest, EndsTheProgramWhenItRendersAgainElsewhere) {
  ServerRequest no_page = request_;
  no_page.method = "POST";
  EXPECT_DEATH(begin_elsewhere(rendering_again(no_page)), kElsewhere);
  EXPECT_DEATH(gateway_.was_rendered_again(request_, std::nullopt), kElsewhere);
}

TEST_F(GatewayDeathTest, EndsTheProgramWhenItGetsAnotherConfigurationElsewhere) {
  EXPECT_DEATH(gateway_.use(site_), kElsewhere);
}

TEST_F(GatewayDeathTest, EndsTheProgramWhenAnAnswerIsRememberedElsewhere) {
  const auto loop = LoopBound::to_loop(loop_.get_executor(), "a gateway");
  WarmPages warm(loop, engine_, isr_, Duration(0), 1 << 20);
  EXPECT_DEATH(warm.remember(WarmKey{"/a"}, {}, WarmPage{}), kElsewhere);
}

TEST_F(GatewayDeathTest, EndsTheProgramWhenSpilledPagesAreUsedElsewhere) {
  SpilledPages spilled(LoopBound::to_loop(loop_.get_executor(), "a gateway"), {});
  EXPECT_DEATH(spilled.add("/a", WarmPage{}), kElsewhere);
  EXPECT_DEATH((void)spilled.find("/a"), kElsewhere);
  EXPECT_DEATH((void)spilled.has("/a"), kElsewhere);
  EXPECT_DEATH(spilled.erase("/a"), kElsewhere);
}

}  // namespace
}  // namespace facetheory
