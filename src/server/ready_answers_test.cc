// Answers that a loop has ready are sent without a coroutine, from sockets that Readiness watches: nothing that comes
// between two looks may be lost.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/fixed_bytes.h"
#include "facetheory/http/client_limits.h"
#include "facetheory/http/server_request.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/http_server.h"
#include "facetheory/server/readiness.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/server/whole_requests.h"

#include "tests/support/raw_client.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::RawClient;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::size_t kLarge = 16 << 20;  // More than a socket takes at once.

std::string get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n";
}

std::shared_ptr<const std::string> large_body() {
  static const auto body = [] {
    auto bytes = std::make_shared<std::string>(kLarge, '\0');
    for (std::size_t i = 0; i < kLarge; ++i)
      (*bytes)[i] = static_cast<char>('a' + (i * 7 + i / 4096) % 26);
    return bytes;
  }();
  return body;
}

// "/ready/ANYTHING" is answered with its own target, "/large" with kLarge bytes, "/fixed" with the same that need not
// be copied, "/lent" with the same that nobody owns and the next answer overwrites, "/round" with the number of its
// round in brackets; whatever else there is goes to a handler.
class ReadyAnswersTest : public testing::Test {
 protected:
  void serve(ClientLimits limits = {}) {
    EventLoop loop{test::executor(), whole_requests([](ServerRequest request) -> Task<ServerResponse> {
                     auto text = std::make_shared<const std::string>("handled " + request.target);
                     co_return ServerResponse{200, {}, *text, text};
                   })};
    loop.refused = [this](const RefusedRequest& refusal) {
      const std::lock_guard lock(mutex_);
      refused_ = std::to_string(refusal.status) + " " + std::string(refusal.line.method) + " " +
                 std::string(refusal.line.target);
      refused_bytes_ = refusal.bytes;
    };
    loop.refusal_fields = {{"X-Refused", "yes"}};
    loop.answer_at_once = [this](const RequestHead& head, const std::string&, std::uint64_t round) {
      return ready(head.target, round);
    };
    server_ = std::make_unique<HttpServer>(std::vector<EventLoop>{std::move(loop)}, limits);
    port_ = *server_->listen("127.0.0.1", 0);
  }
  ~ReadyAnswersTest() override {
    if (server_) test::run(server_->drain(2s));
  }

  const ReadyAnswer* ready(std::string_view target, std::uint64_t round) {
    std::shared_ptr<const std::string> body;
    answer_.fixed = target == "/fixed";
    if (target.starts_with("/ready/")) {
      body = std::make_shared<const std::string>(target);
    } else if (target == "/round") {
      body = std::make_shared<const std::string>("[" + std::to_string(round) + "]");
    } else if (target == "/large" || target == "/fixed" || target == "/lent") {
      body = large_;
    } else {
      return nullptr;
    }
    head_ = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body->size()) + "\r\n\r\n";
    answer_.head = head_;
    answer_.body = answer_.fixed ? fixed_->bytes() : *body;
    owner_ = answer_.fixed ? std::shared_ptr<const void>(fixed_) : body;
    answer_.owner = &owner_;
    if (target == "/lent") {
      lent_ = *large_;
      answer_.body = lent_;
      answer_.owner = nullptr;
    } else {
      lent_.assign(lent_.size(), '?');
    }
    return &answer_;
  }

  // "400 GET /": the last request that was.
  std::string refused() {
    const std::lock_guard lock(mutex_);
    return refused_;
  }

  std::uint64_t refused_bytes() {
    const std::lock_guard lock(mutex_);
    return refused_bytes_;
  }

  const std::shared_ptr<const std::string> large_ = large_body();
  FixedMemory memory_{2 * kLarge};
  const std::shared_ptr<const FixedBytes> fixed_ = memory_.copy_of(*large_);
  std::string head_;
  std::string lent_;
  std::shared_ptr<const void> owner_;
  ReadyAnswer answer_;
  std::mutex mutex_;
  std::string refused_;              // Guarded by mutex_,
  std::uint64_t refused_bytes_ = 0;  // as is this.
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
};

TEST_F(ReadyAnswersTest, AreSentAgainAndAgain) {
  serve();
  RawClient client(port_);
  for (int i = 0; i < 100; ++i) {
    const std::string target = "/ready/" + std::to_string(i) + "/";
    client.send(get(target));
    ASSERT_THAT(client.until("\r\n\r\n" + target), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
}

TEST_F(ReadyAnswersTest, TakeTurnsWithHandlersOnOneConnection) {
  serve();
  RawClient client(port_);
  for (int i = 0; i < 20; ++i) {
    client.send(get("/ready/1"));
    EXPECT_THAT(client.until("/ready/1"), HasSubstr("200 OK"));
    client.send(get("/slow"));
    EXPECT_THAT(client.until("handled /slow"), HasSubstr("200 OK"));
    client.send(get("/ready/2") + get("/pipelined") + get("/ready/3"));
    const std::string answers = client.until("/ready/3");
    EXPECT_LT(answers.find("/ready/2"), answers.find("handled /pipelined"));
  }
}

// Its client may have learnt of something since that the round does not know.
TEST_F(ReadyAnswersTest, ARequestBehindAnotherIsOfNoRound) {
  serve();
  RawClient client(port_);
  std::string before;
  for (int i = 0; i < 20; ++i) {
    client.send(get("/round") + get("/round"));
    const std::string both = client.until("[0]");
    EXPECT_EQ(std::count(both.begin(), both.end(), '['), 2) << both;
    EXPECT_EQ(both.find("[0]"), both.size() - 3) << both;
    EXPECT_NE(both, before);
    before = both;
  }
}

TEST_F(ReadyAnswersTest, SayInTheirHeadWhetherTheConnectionLasts) {
  serve();
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n";
  RawClient old(port_);
  old.send("GET /ready/1 HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(old.until("/ready/1"), head + "Connection: keep-alive\r\n\r\n/ready/1");
  RawClient client(port_);
  client.send(get("/ready/1") + "GET /ready/2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.rest(), head + "\r\n/ready/1" + head + "Connection: close\r\n\r\n/ready/2");
}

TEST_F(ReadyAnswersTest, AClientThatEndsWithItsRequestIsAnsweredAndLetGo) {
  serve();
  RawClient client(port_);
  client.send(get("/ready/last"));
  client.shut_down_sending();
  EXPECT_THAT(client.rest(), EndsWith("/ready/last"));
}

TEST_F(ReadyAnswersTest, ARequestInPiecesIsAnsweredWhenItIsWhole) {
  serve();
  RawClient client(port_);
  for (const char piece : get("/ready/slowly"))
    client.send(std::string_view(&piece, 1));
  client.shut_down_sending();
  EXPECT_THAT(client.rest(), EndsWith("/ready/slowly"));
}

TEST_F(ReadyAnswersTest, MoreThanIsReadAtOnceIsAnsweredToTheLast) {
  serve();
  RawClient client(port_);
  std::string requests;
  for (int i = 0; i < 5000; ++i)
    requests += get("/ready/" + std::to_string(i) + ".");
  ASSERT_GT(requests.size(), 128u << 10);
  std::thread sender([&] {
    client.send(requests);
    client.shut_down_sending();
  });
  const std::string answers = client.rest();
  sender.join();
  std::size_t place = 0;
  for (int i = 0; i < 5000; ++i) {
    place = answers.find("\r\n\r\n/ready/" + std::to_string(i) + ".", place);
    ASSERT_NE(place, std::string::npos) << i;
  }
}

TEST_F(ReadyAnswersTest, RequestsThatHaveAllComeAlreadyAreReadToTheLast) {
  serve();
  RawClient client(port_);
  std::string requests = get("/large");
  for (int i = 0; i < 1000; ++i)
    requests += get("/ready/" + std::to_string(i) + ".");
  ASSERT_GT(requests.size(), 32u << 10);
  client.send(requests);
  client.exactly(kLarge);
  EXPECT_THAT(client.until("/ready/999."), EndsWith("\r\n\r\n/ready/999."));
}

TEST_F(ReadyAnswersTest, AClientThatReadsLateGetsAllAndWhatItAskedForMeanwhile) {
  serve();
  for (const char* target : {"/large", "/fixed", "/lent"}) {
    RawClient client(port_);
    client.send(get(target));
    // Its answer stands in the way of this one, and of nobody else's.
    client.send(get("/ready/next") + get("/handled"));
    RawClient other(port_);
    other.send(get("/ready/other"));
    EXPECT_THAT(other.until("/ready/other"), HasSubstr("200 OK"));
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kLarge) + "\r\n\r\n";
    EXPECT_EQ(client.exactly(head.size()), head);
    EXPECT_EQ(client.exactly(kLarge) == *large_, true) << target;
    EXPECT_THAT(client.until("handled /handled"), HasSubstr("\r\n\r\n/ready/next"));
  }
}

TEST_F(ReadyAnswersTest, AClientThatDoesNotTakeItsAnswerIsCutOffWhateverItSends) {
  ClientLimits limits;
  limits.write_timeout = 400ms;
  serve(limits);
  RawClient client(port_);
  client.send(get("/large"));
  client.exactly(1000);
  for (int i = 0; i < 600 && server_->counters().open > 0; ++i) {
    client.send("x");
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(server_->counters().open, 0u);
}

TEST_F(ReadyAnswersTest, AClientThatReadsSteadilyHasAllTheTimeItNeeds) {
  ClientLimits limits;
  limits.write_timeout = 150ms;
  serve(limits);
  RawClient client(port_);
  client.send(get("/large"));
  std::size_t taken = 0;
  const auto began = std::chrono::steady_clock::now();
  while (taken < kLarge) {
    const std::string some = client.exactly(std::min<std::size_t>(kLarge - taken, 256 << 10));
    ASSERT_THAT(some, Not(EndsWith(")"))) << taken;
    taken += some.size();
    std::this_thread::sleep_for(15ms);
  }
  EXPECT_GT(std::chrono::steady_clock::now() - began, 4 * limits.write_timeout);
}

TEST_F(ReadyAnswersTest, TheLastOneOfAConnectionComesWholeWhateverTheClientStillSends) {
  serve();
  for (const std::string target : {"/ready/last", "/large", "/handled"}) {
    RawClient client(port_);
    client.send("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < 20; ++i) {
      client.send(get("/ready/more"));
      std::this_thread::sleep_for(1ms);
    }
    const std::string answer = client.rest();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_EQ(answer.size() > kLarge, target == "/large") << target;
    EXPECT_EQ(answer.find("(", answer.size() - 60), std::string::npos) << answer.substr(answer.size() - 60);
    EXPECT_EQ(answer.find("/ready/more"), std::string::npos);
  }
}

TEST_F(ReadyAnswersTest, UrgentBytesAreBytesLikeOthers) {
  serve();
  RawClient client(port_);
  client.send("GET /ready/urgent");
  client.send_urgent("!");
  client.send(" HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.until("/ready/urgent!"), HasSubstr("200 OK"));
}

TEST_F(ReadyAnswersTest, RefusalsAreTold) {
  serve();
  RawClient client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n");
  const std::string answer = client.rest();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(answer, HasSubstr("\r\nCache-Control: no-store\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nX-Refused: yes\r\n"));
  EXPECT_EQ(refused(), "400 GET /");
}

TEST_F(ReadyAnswersTest, RefusalsAreToldWithAsMuchOfTheRequestAsCanBeRead) {
  ClientLimits limits;
  limits.header_bytes = 1024;
  limits.body_bytes = 100;
  limits.header_timeout = 50ms;
  serve(limits);
  const std::string many(2000, 'x');
  const struct {
    std::string sent, told;
  } cases[] = {
      {"GET /fields HTTP/1.1\r\nHost: x\r\nX: " + many, "431 GET /fields"},
      {"GET /" + many, "414 GET /" + many.substr(0, 1019)},
      {"GET /folded HTTP/1.1\r\nHost: x\r\n y\r\n\r\n", "400 GET /folded"},
      {"GET /version HTTP/2.0\r\n\r\n", "505 GET /version"},
      {"POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
       "400 POST /length"},
      {"POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", "413 POST /large"},
      {"PUT /expects HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n", "417 PUT /expects"},
      {"GET /late HTTP/1.1\r\nHo", "408 GET /late"},
      {"GET /\x01 HTTP/1.1\r\n\r\n", "400 GET "},
      {"\x16\x03\x01", "400  "},
  };
  for (const auto& one : cases) {
    RawClient client(port_);
    client.send(one.sent);
    const std::string answer = client.rest();
    EXPECT_THAT(answer, HasSubstr("\r\nX-Refused: yes\r\n")) << one.told;
    EXPECT_EQ(refused(), one.told);
    EXPECT_EQ(refused_bytes(), answer.size() - answer.find("\r\n\r\n") - 4) << one.told;
  }
}

TEST_F(ReadyAnswersTest, AClientThatLeavesInTheMiddleIsForgotten) {
  serve();
  {
    RawClient client(port_);
    client.send(get("/fixed"));
    client.exactly(1000);
  }
  for (int i = 0; i < 1000 && server_->counters().open > 0; ++i)
    std::this_thread::sleep_for(2ms);
  EXPECT_EQ(server_->counters().open, 0u);
}

TEST_F(ReadyAnswersTest, IdleConnectionsAreClosedByADrain) {
  serve();
  RawClient client(port_);
  client.send(get("/ready/1"));
  client.until("/ready/1");
  test::run(server_->drain(2s));
  EXPECT_EQ(client.rest(), "");
  EXPECT_EQ(server_->counters().open, 0u);
}

TEST(ReadinessDeathTest, EndsTheProgramWhenASocketIsAddedOrRemovedOnAnotherThread) {
  boost::asio::io_context loop;
  const auto readiness = *Readiness::create(LoopBound::to_loop(loop.get_executor(), "a client's connection"));
  EXPECT_DEATH(readiness->add(0, nullptr), "a client's connection was used on another thread than its own");
  EXPECT_DEATH(readiness->remove(0), "a client's connection was used on another thread than its own");
}

}  // namespace
}  // namespace facetheory
