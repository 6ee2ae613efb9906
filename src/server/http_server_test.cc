#include "facetheory/server/http_server.h"

#include <atomic>
#include <thread>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/clock.h"
#include "facetheory/http/server_request.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/server/whole_requests.h"

#include "tests/support/raw_client.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using test::RawClient;

class HttpServerTest : public testing::Test {
 protected:
  void serve(ClientLimits limits = {}, std::size_t loops = 1) {
    const ExchangeHandler handler = whole_requests([this](ServerRequest request) { return answer(request); });
    server_ = std::make_unique<HttpServer>(
        std::vector<EventLoop>(loops, EventLoop{test::executor(), handler}), limits);
    port_ = *server_->listen("127.0.0.1", 0);
  }
  Task<ServerResponse> answer(ServerRequest request) {
    ++requests_;
    if (request.target == "/slow") co_await system_clock().sleep_for(200ms);
    if (request.target == "/throw") throw std::runtime_error("secret");
    auto text =
        std::make_shared<const std::string>(request.method + " " + request.target + " " + request.body);
    co_return ServerResponse{200, {{"X-Answer", "yes"}}, *text, text, false};
  }
  std::string ask(std::string_view bytes) {
    RawClient client(port_);
    client.send(bytes);
    return client.rest();
  }
  ~HttpServerTest() override {
    if (server_) test::run(server_->drain(2s));
  }

  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::atomic<int> requests_ = 0;
};

TEST_F(HttpServerTest, AnswersARequest) {
  serve();
  const std::string answer = ask("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Answer: yes\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(answer, HasSubstr("Date: "));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nGET /a "));
}

TEST_F(HttpServerTest, KeepsTheConnectionAndAnswersPipelinedRequestsInOrder) {
  serve();
  RawClient client(port_);
  client.send(
      "GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\nPOST /3 HTTP/1.1\r\nHost: x\r\n"
      "Content-Length: 4\r\n\r\nbody");
  const std::string answers = client.until("POST /3 body");
  EXPECT_LT(answers.find("GET /slow"), answers.find("GET /2"));
  EXPECT_LT(answers.find("GET /2"), answers.find("POST /3"));
  client.send("GET /4 HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.rest(), HasSubstr("GET /4"));
}

TEST_F(HttpServerTest, TellsTheLengthButSendsNoBodyToHead) {
  serve();
  const std::string answer = ask("HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_THAT(answer, testing::EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, ReadsChunkedBodies) {
  serve();
  EXPECT_THAT(ask("POST /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"),
              HasSubstr("POST /c abcde"));
}

TEST_F(HttpServerTest, SendsContinueBeforeABodyThatWaitsForIt) {
  serve();
  RawClient client(port_);
  client.send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_THAT(client.until("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue"));
  client.send("hi");
  EXPECT_THAT(client.until("POST /e hi"), HasSubstr("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, ABodyOfNoBytesIsNotWaitedFor) {
  serve();
  RawClient client(port_);
  client.send("POST /empty HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(client.until("POST /empty "), HasSubstr("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, NothingButContinueCanBeExpected) {
  serve();
  for (const char* expected : {"Expect: x\r\n", "Expect: 100-continue\r\nExpect: x\r\n",
                               "Expect: x\r\nExpect: 100-continue\r\n", "Expect: 100-continue, x\r\n"}) {
    EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n" + std::string(expected) + "\r\nhi"),
                StartsWith("HTTP/1.1 417"))
        << expected;
  }
  EXPECT_EQ(requests_, 0);
}

TEST_F(HttpServerTest, RefusesAmbiguousFramingAndClosesTheConnection) {
  serve();
  for (const char* request : {
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
           "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "GET / HTTP/1.1\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
           "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
           "GET /\r\n\r\n",
           "nonsense\r\n\r\n",
       }) {
    EXPECT_THAT(ask(std::string(request) + "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"),
                StartsWith("HTTP/1.1 400"))
        << request;
  }
  EXPECT_EQ(requests_, 0);
}

TEST_F(HttpServerTest, RefusesWhatIsTooLarge) {
  ClientLimits limits;
  limits.header_bytes = 1024;
  limits.body_bytes = 100;
  serve(limits);
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(2000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n"), StartsWith("HTTP/1.1 413"));
  EXPECT_EQ(requests_, 0);
}

TEST_F(HttpServerTest, CutsOffClientsThatAreSlowToSend) {
  ClientLimits limits;
  limits.header_timeout = 50ms;
  limits.body_timeout = 50ms;
  limits.idle_timeout = 50ms;
  serve(limits);
  EXPECT_EQ(ask(""), "");
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHo"), StartsWith("HTTP/1.1 408"));
  const std::string late = ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_THAT(late, StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(late, HasSubstr("\r\nCache-Control: no-store\r\n"));
  EXPECT_EQ(requests_, 0);
}

TEST_F(HttpServerTest, SlowClientDelaysNobodyElse) {
  serve();
  RawClient slow(port_);
  slow.send("GET / HTTP/1.1\r\nHo");
  EXPECT_THAT(ask("GET /quick HTTP/1.0\r\n\r\n"), HasSubstr("GET /quick"));
}

TEST_F(HttpServerTest, ClosesConnectionsBeyondItsLimit) {
  ClientLimits limits;
  limits.connections = 1;
  serve(limits);
  RawClient first(port_);
  first.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
  first.until("GET /1");
  EXPECT_EQ(ask("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n"), "");
  EXPECT_EQ(requests_, 1);
  EXPECT_EQ(server_->counters().accepted, 1U);
  EXPECT_EQ(server_->counters().refused, 1U);
}

TEST_F(HttpServerTest, HandlerThatThrowsIsAnErrorWithoutDetails) {
  serve();
  const std::string answer = ask("GET /throw HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(answer, HasSubstr("\r\nCache-Control: no-store\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("secret")));
}

TEST_F(HttpServerTest, DrainLetsAnswersEndAndClosesIdleConnections) {
  serve();
  RawClient idle(port_);
  idle.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
  idle.until("GET /1");
  RawClient busy(port_);
  busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int i = 0; i < 500 && requests_ < 2; ++i)
    std::this_thread::sleep_for(2ms);
  test::run(server_->drain(5s));
  EXPECT_EQ(server_->counters().open, 0U);
  EXPECT_EQ(idle.rest(), "");
  const std::string answer = busy.rest();
  EXPECT_THAT(answer, HasSubstr("GET /slow"));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
}

TEST_F(HttpServerTest, DrainAnswersWhoHasConnectedAndAskedBeforeIt) {
  boost::asio::io_context context;
  HttpServer server(
      {{context.get_executor(), whole_requests([this](ServerRequest request) { return answer(request); })}});
  const std::uint16_t port = *server.listen("127.0.0.1", 0);
  RawClient open(port);
  context.poll();  // Accepted, and nothing has come from it yet.
  open.send("GET /open HTTP/1.1\r\nHost: x\r\n\r\n");
  RawClient waiting(port);
  waiting.send("GET /waiting HTTP/1.1\r\nHost: x\r\n\r\n");
  RawClient silent(port);
  boost::asio::co_spawn(context, server.drain(5s), boost::asio::detached);
  context.run();
  EXPECT_THAT(open.rest(), HasSubstr("GET /open"));
  EXPECT_THAT(waiting.rest(), HasSubstr("GET /waiting"));
  EXPECT_EQ(silent.rest(), "");
}

TEST_F(HttpServerTest, LoopsShareAPortThatNobodyElseCanTake) {
  serve({}, 4);
  for (int i = 0; i < 20; ++i)
    EXPECT_THAT(ask("GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), HasSubstr("GET /page"));
  const std::vector<EventLoop> loops(
      2, {test::executor(), whole_requests([this](ServerRequest request) { return answer(request); })});
  HttpServer second(loops);
  EXPECT_FALSE(second.listen("127.0.0.1", port_));
  const auto other = second.listen("127.0.0.1", 0);
  ASSERT_TRUE(other);
  EXPECT_NE(*other, port_);
}

TEST_F(HttpServerTest, NamesAPortThatIsTaken) {
  serve();
  HttpServer second(
      {{test::executor(), whole_requests([this](ServerRequest request) { return answer(request); })}});
  const auto refused = second.listen("127.0.0.1", port_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("port " + std::to_string(port_)));
  EXPECT_FALSE(second.listen("nowhere", 0));
}

}  // namespace
}  // namespace facetheory
