// Requests and answers in pieces, as a handler of HttpServer sees them.
#include "facetheory/server/server_exchange.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/http/client_limits.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/http_server.h"

#include "tests/support/gateway_bed.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::RawClient;
using test::read_reply;
using test::Reply;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ServerExchangeTest : public testing::Test {
 protected:
  void serve(ExchangeHandler handler, ClientLimits limits = {}) {
    server_ =
        std::make_unique<HttpServer>(std::vector<EventLoop>{{test::executor(), std::move(handler)}}, limits);
    port_ = *server_->listen("127.0.0.1", 0);
  }
  ~ServerExchangeTest() override {
    if (server_) test::run(server_->drain(2s));
  }
  std::string ask(std::string_view bytes) {
    RawClient client(port_);
    client.send(bytes);
    return client.rest();
  }

  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
};

Task<void> two_pieces(ServerExchange& exchange) {
  Headers headers{{"X-A", "b"}};
  [[maybe_unused]] auto begun = co_await exchange.begin(200, std::move(headers), std::nullopt);
  [[maybe_unused]] auto first = co_await exchange.write("one");
  [[maybe_unused]] auto second = co_await exchange.write("two");
  [[maybe_unused]] auto finished = co_await exchange.finish({});
}

TEST_F(ServerExchangeTest, AnswersInPiecesAreChunked) {
  serve(two_pieces);
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              EndsWith("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"));
}

TEST_F(ServerExchangeTest, ToAClientOfHttp10TheyEndWithTheConnection) {
  serve(two_pieces);
  const std::string answer = ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(answer, EndsWith("\r\n\r\nonetwo"));
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
}

TEST_F(ServerExchangeTest, HeadGetsTheFieldsAlone) {
  serve(two_pieces);
  const std::string answer = ask("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("X-A: b\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("one")));
}

TEST_F(ServerExchangeTest, AnAnswerThatIsLeftUnfinishedIsCutOff) {
  serve([](ServerExchange& exchange) -> Task<void> {
    [[maybe_unused]] auto begun = co_await exchange.begin(200, {}, 10);
    [[maybe_unused]] auto written = co_await exchange.write("half");
  });
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("\r\n\r\nhalf"));
}

TEST_F(ServerExchangeTest, NoMoreIsSentThanWasAnnounced) {
  serve([](ServerExchange& exchange) -> Task<void> {
    [[maybe_unused]] auto begun = co_await exchange.begin(200, {}, 3);
    auto written = co_await exchange.write("four");
    if (written) co_return;
    [[maybe_unused]] auto right = co_await exchange.write("abc");
    [[maybe_unused]] auto finished = co_await exchange.finish({});
  });
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), EndsWith("\r\n\r\nabc"));
}

TEST_F(ServerExchangeTest, ARequestWithoutAnAnswerIsAServersMistake) {
  serve([](ServerExchange&) -> Task<void> { co_return; });
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 500"));
}

TEST_F(ServerExchangeTest, ABodyThatNobodyReadIsSkippedBeforeTheNextRequest) {
  serve([](ServerExchange& exchange) -> Task<void> {
    ServerResponse response = plain_response(200, exchange.request().target);
    [[maybe_unused]] auto sent = co_await exchange.respond(std::move(response));
  });
  RawClient client(port_);
  client.send(
      "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\nGET /hidden HTTP/1.1\r\nHost: y\r"
      "GET /2 HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\nX: y\r\n\r\n"
      "GET /4 HTTP/1.1\r\nHost: x\r\n\r\n");
  for (const char* target : {"/1\n", "/2\n", "/3\n", "/4\n"})
    EXPECT_EQ(read_reply(client).body, target);
}

TEST_F(ServerExchangeTest, ALongBodyThatNobodyReadEndsTheConnection) {
  serve([](ServerExchange& exchange) -> Task<void> {
    ServerResponse response = plain_response(200, "enough");
    [[maybe_unused]] auto sent = co_await exchange.respond(std::move(response));
  });
  RawClient client(port_);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\nabc");
  const Reply reply = read_reply(client);
  EXPECT_EQ(reply.body, "enough\n");
  EXPECT_EQ(reply.field("connection"), "close");
}

TEST_F(ServerExchangeTest, AThousandPipelinedRequestsAreAnsweredInOrder) {
  serve([](ServerExchange& exchange) -> Task<void> {
    ServerResponse response = plain_response(200, exchange.request().target);
    [[maybe_unused]] auto sent = co_await exchange.respond(std::move(response));
  });
  RawClient client(port_);
  std::string requests;
  for (int i = 0; i < 1000; ++i)
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  client.send(requests);
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(read_reply(client).body, "/" + std::to_string(i) + "\n");
}

TEST_F(ServerExchangeTest, BytesThatComeWithAnUpgradeBelongToTheOtherProtocol) {
  serve([](ServerExchange& exchange) -> Task<void> {
    Headers headers{{"Connection", "Upgrade"}, {"Upgrade", "echo"}};
    [[maybe_unused]] auto switched = co_await exchange.switch_protocols(std::move(headers));
    auto early = co_await exchange.read();
    const std::string echoed = "<" + std::string(early ? *early : "") + ">";
    [[maybe_unused]] auto written = co_await exchange.write(echoed);
    exchange.shut_down_sending();
  });
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly"),
              EndsWith("\r\n\r\n<early>"));
}

TEST_F(ServerExchangeTest, TrailersAreNoFields) {
  serve([](ServerExchange& exchange) -> Task<void> {
    for (;;) {
      auto piece = co_await exchange.read();
      if (!piece || piece->empty()) break;
    }
    ServerResponse response =
        plain_response(200, std::string(exchange.request().headers.get("x-role").value_or("none")) + "/" +
                                std::string(exchange.trailers().get("x-role").value_or("none")));
    [[maybe_unused]] auto sent = co_await exchange.respond(std::move(response));
  });
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: "
                  "chunked\r\n\r\n1\r\na\r\n0\r\n"
                  "X-Role: admin\r\n\r\n"),
              EndsWith("none/admin\n"));
}

// Answers when it is told that the client has probably left, or after two seconds.
Task<void> until_left(ServerExchange& exchange) {
  const std::stop_token left = exchange.probably_left();
  for (int i = 0; i < 100 && !left.stop_requested(); ++i)
    co_await system_clock().sleep_for(20ms);
  ServerResponse response = plain_response(200, left.stop_requested() ? "left" : "stayed");
  response.close = true;
  [[maybe_unused]] auto sent = co_await exchange.respond(std::move(response));
}

TEST_F(ServerExchangeTest, AClientThatEndsItsSideHasProbablyLeftAndIsAnsweredAllTheSame) {
  serve(until_left);
  RawClient client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.shut_down_sending();
  EXPECT_THAT(client.rest(), EndsWith("left\n"));
}

TEST_F(ServerExchangeTest, AClientThatWaitsHasNotLeftNorHasOneThatSendsItsNextRequest) {
  serve(until_left);
  RawClient client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n");
  EXPECT_THAT(client.rest(), EndsWith("stayed\n"));
}

TEST_F(ServerExchangeTest, AClientThatBreaksOffHasProbablyLeft) {
  std::atomic<bool> left = false;
  const auto told = [&left](ServerExchange& exchange) -> Task<void> {
    const std::stop_token token = exchange.probably_left();
    for (int i = 0; i < 100 && !token.stop_requested(); ++i)
      co_await system_clock().sleep_for(20ms);
    left = token.stop_requested();
  };
  serve(told);
  RawClient client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::this_thread::sleep_for(50ms);  // The request is being answered.
  client.reset();
  for (int i = 0; i < 100 && !left; ++i)
    std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(left);
}

TEST_F(ServerExchangeTest, AClientThatDoesNotTakeItsAnswerIsCutOff) {
  ClientLimits limits;
  limits.write_timeout = 50ms;
  std::atomic<bool> ended = false;
  serve(
      [&ended](ServerExchange& exchange) -> Task<void> {
        const std::string piece(1 << 20, 'x');
        [[maybe_unused]] auto begun = co_await exchange.begin(200, {}, std::nullopt);
        for (int i = 0; i < 1000; ++i) {
          auto written = co_await exchange.write(piece);
          if (!written) break;
        }
        ended = true;
      },
      limits);
  RawClient client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int i = 0; i < 2500 && !ended; ++i)
    std::this_thread::sleep_for(2ms);
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace facetheory
