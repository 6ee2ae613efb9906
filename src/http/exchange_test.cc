#include "facetheory/http/exchange.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "facetheory/http/client.h"

#include "tests/support/http_calls.h"
#include "tests/support/test_certificates.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using namespace test;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Exchange = std::unique_ptr<HttpExchange>;

constexpr BodyFraming kNoBody{};
constexpr BodyFraming kChunkedBody{BodyFraming::Kind::chunked, 0};

BodyFraming body_of(std::uint64_t length) {
  return {BodyFraming::Kind::length, length};
}

Exchange opened(HttpClient& client, HttpRequest request, BodyFraming body = kNoBody) {
  Result<Exchange> exchange = run(client.open(std::move(request), body));
  EXPECT_TRUE(exchange) << exchange.error().message;
  return *std::move(exchange);
}

HttpRequest request_for(std::string method, Headers headers = {}) {
  HttpRequest request;
  request.method = std::move(method);
  request.headers = std::move(headers);
  return request;
}

Task<Result<std::string>> collect(HttpExchange& exchange) {
  std::string all;
  while (true) {
    const Result<std::string_view> piece = co_await exchange.read();
    if (!piece) co_return piece.error();
    if (piece->empty()) co_return all;
    all += *piece;
  }
}

Task<Result<void>> write_times(HttpExchange& exchange, std::string piece, int times) {
  for (int i = 0; i < times; ++i) {
    Result<void> written = co_await exchange.write(piece);
    if (!written) co_return written;
  }
  co_return co_await exchange.finish();
}

// A task that runs while the test does something else.
template <typename T>
class Running {
 public:
  explicit Running(Task<T> task) : done_(test::start(store(std::move(task), result_))) {}
  T get() {
    done_.get();
    return *std::move(result_);
  }
  bool is_done() const { return done_.wait_for(0s) == std::future_status::ready; }

 private:
  std::optional<T> result_;
  std::future<void> done_;
};

bool ends_closed(const ScriptedServer& server) {
  return server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 0; });
}

void expect_error(const Result<void>& result, ErrorCode code, const std::string& text) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_THAT(result.error().message, HasSubstr(text));
}

template <typename T>
Result<void> only_error(const Result<T>& result) {
  if (result) return {};
  return result.error();
}

TEST(HttpExchange, GivesTheAnswerInPiecesAndReusesTheConnection) {
  ScriptedServer server(always("HTTP/1.1 203 Told\r\nX-Kind: a\r\nContent-Length: 5\r\n\r\nhello"));
  const auto client = client_for(server.url());
  for (int i = 0; i < 3; ++i) {
    const Exchange exchange = opened(*client, get("/page"));
    const Result<HttpResponseStart> head = run(exchange->read_head());
    ASSERT_TRUE(head) << head.error().message;
    EXPECT_EQ(head->status, 203);
    EXPECT_EQ(head->minor_version, 1);
    EXPECT_EQ(head->headers, (Headers{{"X-Kind", "a"}, {"Content-Length", "5"}}));
    EXPECT_EQ(head->framing, body_of(5));
    EXPECT_EQ(*run(collect(*exchange)), "hello");
    EXPECT_EQ(*run(exchange->read()), "") << "the end stays the end";
  }
  EXPECT_EQ(server.connections(), 1);
  EXPECT_THAT(server.requests()[0], StartsWith("GET /page HTTP/1.1\r\nHost: 127.0.0.1:"));
}

TEST(HttpExchange, ItsConnectionIsFreeAsSoonAsBothSidesHaveEnded) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for(server.url(), {.total_timeout = 3000ms, .max_connections = 1});
  const Exchange first = opened(*client, get("/1"));
  ASSERT_TRUE(run(first->read_head()));
  EXPECT_EQ(*run(collect(*first)), "x");
  const Exchange second = opened(*client, get("/2"));
  ASSERT_TRUE(run(second->read_head()));
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpExchange, SendsABodyOfKnownLengthInPieces) {
  ScriptedServer server(always(http_answer(200, "")));
  const auto client = client_for(server.url());
  for (int i = 0; i < 2; ++i) {
    const Exchange exchange = opened(*client, post("ignored"), body_of(10));
    ASSERT_TRUE(run(exchange->write("hello")));
    ASSERT_TRUE(run(exchange->write("")));
    ASSERT_TRUE(run(exchange->write("world")));
    ASSERT_TRUE(run(exchange->finish()));
    ASSERT_TRUE(run(exchange->read_head()));
    ASSERT_TRUE(run(collect(*exchange)));
  }
  EXPECT_THAT(server.requests()[1], EndsWith("\r\nContent-Length: 10\r\n\r\nhelloworld"));
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpExchange, ABodyOfLengthZeroNeedsNoFinish) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for(server.url());
  for (int i = 0; i < 2; ++i) {
    const Exchange exchange = opened(*client, post(""), body_of(0));
    ASSERT_TRUE(run(exchange->read_head()));
    EXPECT_EQ(*run(collect(*exchange)), "x");
  }
  EXPECT_EQ(server.connections(), 1);
  EXPECT_THAT(server.requests()[0], HasSubstr("Content-Length: 0\r\n"));
}

TEST(HttpExchange, SendsAChunkedBodyWithTrailers) {
  std::promise<std::string> seen;
  const std::string expected =
      "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nc\r\nand the rest\r\n0\r\nX-Sum: 1\r\n\r\n";
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    seen.set_value(peer.read(expected.size() - expected.find("5\r\n")));
    peer.write(http_answer(200, "x"));
    peer.wait_for_close();
  });
  const auto client = client_for(server.url());
  const Exchange exchange = opened(*client, post(""), kChunkedBody);
  ASSERT_TRUE(run(exchange->write("hello")));
  ASSERT_TRUE(run(exchange->write("and the rest")));
  ASSERT_TRUE(run(exchange->finish({{"X-Sum", "1"}})));
  EXPECT_EQ(server.requests()[0] + seen.get_future().get(),
            "POST / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) + expected);
  ASSERT_TRUE(run(exchange->read_head()));
  EXPECT_EQ(*run(collect(*exchange)), "x");
}

TEST(HttpExchange, KeepsTrailersApartFromTheHeader) {
  ScriptedServer server(
      always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: 1\r\n\r\n"
             "2;x=y\r\nab\r\n1\r\nc\r\n0\r\nX-Sum: 7\r\nA: 2\r\n\r\n"));
  const auto client = client_for(server.url());
  for (int i = 0; i < 2; ++i) {
    const Exchange exchange = opened(*client, get("/"));
    const Result<HttpResponseStart> head = run(exchange->read_head());
    ASSERT_TRUE(head);
    EXPECT_EQ(head->framing, kChunkedBody);
    EXPECT_EQ(*run(collect(*exchange)), "abc");
    EXPECT_EQ(head->headers.get("X-Sum"), std::nullopt);
    EXPECT_EQ(exchange->trailers(), (Headers{{"X-Sum", "7"}, {"A", "2"}}));
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpExchange, TellsEveryInterimAnswer) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(peer.read(15), "5\r\nhello\r\n0\r\n\r\n");
    peer.write("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + http_answer(200, "done"));
    peer.wait_for_close();
  });
  const auto client = client_for(server.url());
  const Exchange exchange = opened(*client, request_for("POST", {{"Expect", "100-continue"}}), kChunkedBody);
  EXPECT_EQ(run(exchange->read_head())->status, 100);
  ASSERT_TRUE(run(exchange->write("hello")));
  ASSERT_TRUE(run(exchange->finish()));
  const Result<HttpResponseStart> hints = run(exchange->read_head());
  EXPECT_EQ(hints->status, 103);
  EXPECT_EQ(hints->headers.get("Link"), "x");
  EXPECT_EQ(run(exchange->read_head())->status, 200);
  EXPECT_EQ(*run(collect(*exchange)), "done");
}

// Far more than the buffers between them hold, each way, so that nobody may wait for the other to finish.
void expect_both_ways(const ScriptedServer& server, HttpClientOptions options) {
  const auto client = client_for(server.url(), std::move(options));
  const Exchange exchange = opened(*client, post(""), body_of(32 << 20));
  Running<Result<void>> writer(write_times(*exchange, std::string(1 << 20, 'q'), 32));
  ASSERT_TRUE(run(exchange->read_head()));
  const Result<std::string> answer = run(collect(*exchange));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(*answer == std::string(32 << 20, 'q'));
  const Result<void> written = writer.get();
  EXPECT_TRUE(written) << written.error().message;
}

void echo_while_reading(Peer& peer) {
  std::string head;
  while (!head.ends_with("\r\n\r\n"))
    head += peer.read(1);
  peer.write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(32 << 20) + "\r\n\r\n");
  for (int i = 0; i < 512; ++i)
    peer.write(peer.read(64 << 10));
  peer.wait_for_close();
}

TEST(HttpExchange, ReadsAndWritesAtTheSameTime) {
  const ScriptedServer server(echo_while_reading);
  expect_both_ways(server, {});
}

TEST(HttpExchange, ReadsAndWritesAtTheSameTimeWithTlsFromAnUnverifiedServer) {
  const ScriptedServer server(echo_while_reading, TestAuthority().issue("another.example"));
  expect_both_ways(server, {.verify_tls = false});
}

TEST(HttpExchange, GivesTheEarlyAnswerOfAServerThatStopsReading) {
  ScriptedServer server([](Peer& peer) {
    peer.read(100);
    peer.write(http_answer(413, "too large", "Connection: close\r\n"));
    peer.reset();
  });
  const auto client = client_for(server.url());
  const Exchange exchange = opened(*client, post(""), body_of(64 << 20));
  const Result<void> written = run(write_times(*exchange, std::string(1 << 20, 'x'), 64));
  expect_error(written, ErrorCode::ambiguous, "send to " + server.url());
  const Result<HttpResponseStart> head = run(exchange->read_head());
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->status, 413);
  EXPECT_EQ(*run(collect(*exchange)), "too large");
}

TEST(HttpExchange, AnEarlyAnswerLeavesTheConnectionUsableWhenTheBodyIsSentAllTheSame) {
  ScriptedServer server([](Peer& peer) {
    while (true) {
      std::string head;
      while (!head.ends_with("\r\n\r\n")) {
        const std::string byte = peer.read(1);
        if (byte.empty()) return;
        head += byte;
      }
      peer.write(http_answer(200, "early"));
      EXPECT_EQ(peer.read(4), "late");
    }
  });
  const auto client = client_for(server.url());
  for (int i = 0; i < 2; ++i) {
    const Exchange exchange = opened(*client, post(""), body_of(4));
    ASSERT_TRUE(run(exchange->read_head()));
    EXPECT_EQ(*run(collect(*exchange)), "early");
    ASSERT_TRUE(run(exchange->write("late")));
    ASSERT_TRUE(run(exchange->finish()));
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpExchange, AnAnswerWithoutTheWholeRequestClosesTheConnection) {
  ScriptedServer server([](Peer& peer) {
    peer.read(60);
    peer.write(http_answer(200, "early"));
    peer.wait_for_close();
  });
  const auto client = client_for(server.url());
  Exchange exchange = opened(*client, post(""), body_of(4));
  ASSERT_TRUE(run(exchange->read_head()));
  EXPECT_EQ(*run(collect(*exchange)), "early");
  EXPECT_EQ(server.open_connections(), 1);
  exchange.reset();
  EXPECT_TRUE(ends_closed(server));
}

TEST(HttpExchange, DestroyedBeforeItsEndItClosesTheConnectionAndFreesItsPlace) {
  ScriptedServer server(always(http_answer(200, std::string(1 << 20, 'x'))));
  const auto client = client_for(server.url(), {.max_connections = 1});
  for (int i = 0; i < 3; ++i) {
    const Exchange exchange = opened(*client, get("/"));
    if (i > 0) {
      ASSERT_TRUE(run(exchange->read_head()));
    }
    if (i > 1) {
      ASSERT_TRUE(run(exchange->read()));
    }
  }
  EXPECT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 4);
}

TEST(HttpExchange, AConnectionIsNotReusedWhenTheAnswerIsFollowedByMoreOrSaysClose) {
  for (const std::string& answer :
       {http_answer(200, "x") + "surplus", http_answer(200, "x", "Connection: close\r\n"),
        "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"s}) {
    ScriptedServer server(always(answer));
    const auto client = client_for(server.url());
    for (int i = 0; i < 2; ++i) {
      const Exchange exchange = opened(*client, get("/"));
      ASSERT_TRUE(run(exchange->read_head()));
      EXPECT_EQ(*run(collect(*exchange)), "x");
    }
    EXPECT_EQ(server.connections(), 2) << answer;
  }
}

TEST(HttpExchange, NoticesThatThePeerClosedAnIdleConnection) {
  ScriptedServer server(once(http_answer(200, "x")));
  const auto client = client_for(server.url());
  for (int i = 0; i < 3; ++i) {
    const Exchange exchange = opened(*client, post(""), kChunkedBody);
    ASSERT_TRUE(run(exchange->finish()));
    ASSERT_TRUE(run(exchange->read_head()));
    EXPECT_EQ(*run(collect(*exchange)), "x");
    ASSERT_TRUE(ends_closed(server));
  }
}

TEST(HttpExchange, AwaitsNoBodyWhereHttpForbidsOne) {
  ScriptedServer server(always("HTTP/1.1 200 OK\r\nContent-Length: 123456789\r\n\r\n"));
  const auto client = client_for(server.url());
  for (int i = 0; i < 2; ++i) {
    const Exchange exchange = opened(*client, request_for("HEAD"));
    EXPECT_EQ(run(exchange->read_head())->headers.get("Content-Length"), "123456789");
    EXPECT_EQ(*run(exchange->read()), "");
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpExchange, ABodyUntilCloseEndsWithTheConnection) {
  ScriptedServer server(once("HTTP/1.1 200 OK\r\n\r\nall there is"));
  const auto client = client_for(server.url());
  const Exchange exchange = opened(*client, get("/"));
  EXPECT_EQ(run(exchange->read_head())->framing.kind, BodyFraming::Kind::until_close);
  EXPECT_EQ(*run(collect(*exchange)), "all there is");
}

TEST(HttpExchange, AnOriginThatClosesTooEarlyIsAnErrorNotAShortBody) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"Content-Length: 10\r\n\r\n12345", "closed in the middle of it"},
      {"Content-Length: 10\r\n\r\n", "closed in the middle of it"},
      {"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", "closed in the middle of it"},
      {"Transfer-Encoding: chunked\r\n\r\n5\r\n123", "closed in the middle of it"},
      {"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n", "closed in the middle of it"},
      {"Transfer-Encoding: chunked\r\n\r\n5\r\n123456", "no CRLF where a chunk ends"},
  };
  for (const auto& [answer, message] : cases) {
    ScriptedServer server(once("HTTP/1.1 200 OK\r\n" + answer));
    const auto client = client_for(server.url());
    const Exchange exchange = opened(*client, get("/"));
    ASSERT_TRUE(run(exchange->read_head()));
    expect_error(only_error(run(collect(*exchange))), ErrorCode::ambiguous, message);
    EXPECT_FALSE(run(exchange->read())) << "an error stays one";
  }
}

TEST(HttpExchange, AResetIsNoEndOfABodyUntilClose) {
  Gate gate;
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\n\r\nsome");
    gate.wait();
    peer.reset();
  });
  const auto client = client_for(server.url());
  const Exchange exchange = opened(*client, get("/"));
  ASSERT_TRUE(run(exchange->read_head()));
  EXPECT_EQ(*run(exchange->read()), "some");
  gate.open();
  expect_error(only_error(run(exchange->read())), ErrorCode::ambiguous, "reset");
}

TEST(HttpExchange, ReadsAHeadThatComesByteByByte) {
  const std::string answer = http_answer(200, "slow", "X-Long: " + std::string(300, 'v') + "\r\n");
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    for (const char byte : answer)
      peer.write({&byte, 1});
    peer.wait_for_close();
  });
  const auto client = client_for(server.url());
  const Exchange exchange = opened(*client, get("/"));
  EXPECT_EQ(run(exchange->read_head())->headers.get("X-Long"), std::string(300, 'v'));
  EXPECT_EQ(*run(collect(*exchange)), "slow");
}

TEST(HttpExchange, RefusesAHeadLargerThanAllowed) {
  ScriptedServer server(always(http_answer(200, "", "X: " + std::string(900, 'v') + "\r\n")));
  for (const std::size_t limit : {500U, 2000U}) {
    const auto client = client_for(server.url(), {.max_response_header_bytes = limit});
    const Exchange exchange = opened(*client, get("/"));
    const Result<HttpResponseStart> head = run(exchange->read_head());
    EXPECT_EQ(head.has_value(), limit == 2000);
    if (!head) {
      expect_error(only_error(head), ErrorCode::ambiguous, "500 bytes (max_response_header_bytes)");
    }
  }
}

TEST(HttpExchange, ASlowReaderHoldsTheServerBackAndLosesNothing) {
  const std::string body(48 << 20, 'b');
  const std::string answer = http_answer(200, body);
  std::atomic<bool> all_written = false;
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    peer.write(answer);
    all_written = true;
    peer.wait_for_close();
  });
  const auto client = client_for(server.url(), {.read_timeout = 1000ms});
  const Exchange exchange = opened(*client, get("/"));
  ASSERT_TRUE(run(exchange->read_head()));
  std::string got(*run(exchange->read()));
  std::this_thread::sleep_for(1300ms);  // The reader's pace is what is tested: longer than read_timeout.
  EXPECT_FALSE(all_written);
  got += *run(collect(*exchange));
  EXPECT_TRUE(got == body);
}

// A server that becomes an echo of upper-case letters after its 101, which it sends with the first of its words.
void upgrade(Peer& peer) {
  peer.read_request();
  peer.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nwelcome");
  EXPECT_EQ(peer.read(5), "hello");
  peer.write("HELLO");
  EXPECT_EQ(peer.read(100), "bye");  // Ends where the client's direction does.
  peer.write("BYE");
}

TEST(HttpExchange, CarriesRawBytesAfterAnUpgrade) {
  ScriptedServer server(upgrade);
  const auto client = client_for(server.url());
  const Exchange exchange = opened(*client, request_for("GET", {{"Upgrade", "echo"}, {"TE", "trailers"}}));
  EXPECT_EQ(run(exchange->read_head())->status, 101);
  EXPECT_THAT(server.requests()[0], HasSubstr("\r\nConnection: Upgrade, TE\r\n"));
  EXPECT_EQ(*run(exchange->read()), "welcome");
  ASSERT_TRUE(run(exchange->write("hello")));
  EXPECT_EQ(*run(exchange->read()), "HELLO");
  ASSERT_TRUE(run(exchange->write("bye")));
  ASSERT_TRUE(run(exchange->shutdown_write()));
  expect_error(run(exchange->write("more")), ErrorCode::invalid, "nothing more to be written");
  EXPECT_EQ(*run(exchange->read()), "BYE");
  EXPECT_EQ(*run(exchange->read()), "");
  EXPECT_TRUE(ends_closed(server));
}

TEST(HttpExchange, ATunnelGoesOnWhenTheOtherSideHasSaidAll) {
  std::promise<std::string> heard;
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 Connected\r\nContent-Length: 3\r\n\r\nabcd");
    heard.set_value(peer.read(5));
  });
  const auto client = client_for(server.url());
  HttpRequest request = request_for("CONNECT");
  request.target = "a.example:443";
  const Exchange exchange = opened(*client, request);
  EXPECT_EQ(run(exchange->read_head())->status, 200);
  EXPECT_EQ(*run(exchange->read()), "abcd") << "no framing in a tunnel";
  ASSERT_TRUE(run(exchange->write("hello")));
  EXPECT_EQ(heard.get_future().get(), "hello");
  EXPECT_EQ(*run(exchange->read()), "");
  EXPECT_TRUE(run(exchange->write("into the void")));
}

TEST(HttpExchange, RefusesAnUpgradeNobodyAskedFor) {
  ScriptedServer server(once("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n"));
  const auto client = client_for(server.url());
  const Exchange exchange = opened(*client, get("/"));
  expect_error(only_error(run(exchange->read_head())), ErrorCode::ambiguous, "nobody asked for");
}

TEST(HttpExchange, RefusesAnUpgradeToAnotherProtocolThanOneThatWasAskedFor) {
  for (const char* fields : {"", "Upgrade:\r\n", "Upgrade: other\r\n", "Upgrade: echo, other\r\n",
                             "Upgrade: echo\r\nUpgrade: other\r\n", "Upgrade: echo/2\r\n"}) {
    ScriptedServer server(once("HTTP/1.1 101 Switching Protocols\r\n" + std::string(fields) + "\r\n"));
    const auto client = client_for(server.url());
    const Exchange exchange = opened(*client, request_for("GET", {{"Upgrade", "echo, chat/1"}}));
    expect_error(only_error(run(exchange->read_head())), ErrorCode::ambiguous, "nobody asked for");
  }
  for (const char* fields : {"Upgrade: ECHO\r\n", "Upgrade: chat/1\r\n", "Upgrade: chat/1, echo\r\n"}) {
    ScriptedServer server(once("HTTP/1.1 101 Switching Protocols\r\n" + std::string(fields) + "\r\n"));
    const auto client = client_for(server.url());
    const Exchange exchange =
        opened(*client, request_for("GET", {{"Upgrade", "echo"}, {"Upgrade", "chat/1"}}));
    EXPECT_TRUE(run(exchange->read_head())) << fields;
  }
}

TEST(HttpExchange, ARefusedUpgradeIsAnOrdinaryAnswer) {
  ScriptedServer server(always(http_answer(426, "no")));
  const auto client = client_for(server.url());
  for (int i = 0; i < 2; ++i) {
    const Exchange exchange = opened(*client, request_for("GET", {{"Upgrade", "echo"}}));
    EXPECT_EQ(run(exchange->read_head())->status, 426);
    EXPECT_EQ(*run(collect(*exchange)), "no");
    expect_error(run(exchange->shutdown_write()), ErrorCode::invalid, "only a tunnel");
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpExchange, SilenceIsLimitedByReadTimeoutOrTheIdleLimit) {
  ScriptedServer server(hang);
  const auto client = client_for(server.url(), {.read_timeout = 100ms});
  const Exchange silent = opened(*client, get("/"));
  expect_error(only_error(run(silent->read_head())), ErrorCode::ambiguous,
               "silent for 100 ms (read_timeout)");
  const auto patient = client_for(server.url(), {.read_timeout = 60s});
  const Exchange limited = opened(*patient, get("/"));
  limited->set_idle_limit(120ms);
  expect_error(only_error(run(limited->read_head())), ErrorCode::ambiguous, "silent for 120 ms");
}

TEST(HttpExchange, TheTotalTimeoutDoesNotEndAStream) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    for (const char* piece : {"a", "b", "c", "d", "e"}) {
      std::this_thread::sleep_for(100ms);  // The pace of the server is what is tested.
      peer.write(piece);
    }
    peer.wait_for_close();
  });
  const auto client = client_for(server.url(), {.read_timeout = 5000ms, .total_timeout = 200ms});
  const Exchange exchange = opened(*client, get("/"));
  ASSERT_TRUE(run(exchange->read_head()));
  EXPECT_EQ(*run(collect(*exchange)), "abcde");
}

TEST(HttpExchange, AnOriginThatAwaitsTheRestOfTheRequestMayBeSilent) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.read(15);
    peer.write(http_answer(200, "all of it"));
    peer.wait_for_close();
  });
  const auto client = client_for(server.url(), {.read_timeout = 100ms});
  const Exchange exchange = opened(*client, post(""), kChunkedBody);
  Running<Result<HttpResponseStart>> head(exchange->read_head());
  std::this_thread::sleep_for(300ms);  // Our own pace is what is tested.
  ASSERT_TRUE(run(exchange->write("hello")));
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(head.is_done());
  ASSERT_TRUE(run(exchange->finish()));
  const Result<HttpResponseStart> start = head.get();
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(*run(collect(*exchange)), "all of it");
}

TEST(HttpExchange, ItsSilenceCountsAgainOnceTheRequestIsComplete) {
  ScriptedServer server(hang);
  const auto client = client_for(server.url(), {.read_timeout = 100ms});
  const Exchange exchange = opened(*client, post(""), kChunkedBody);
  Running<Result<HttpResponseStart>> head(exchange->read_head());
  ASSERT_TRUE(run(exchange->finish()));
  expect_error(only_error(head.get()), ErrorCode::ambiguous, "silent for 100 ms (read_timeout)");
}

TEST(HttpExchange, ItsSilenceCountsWhileItIsAskedToContinue) {
  ScriptedServer server(hang);
  const auto client = client_for(server.url(), {.read_timeout = 100ms});
  const Exchange exchange = opened(*client, request_for("POST", {{"Expect", "100-Continue"}}), kChunkedBody);
  expect_error(only_error(run(exchange->read_head())), ErrorCode::ambiguous,
               "silent for 100 ms (read_timeout)");
}

TEST(HttpExchange, AnOriginThatTakesNoMoreOfTheBodyIsSilent) {
  Gate gate;
  ScriptedServer server([&](Peer& peer) {
    peer.read(1);
    gate.wait();  // Reads no more; the body fits into no buffer.
  });
  const auto client = client_for(server.url(), {.read_timeout = 200ms});
  const Exchange exchange = opened(*client, post(""), body_of(64 << 20));
  const std::string body(64 << 20, 'x');
  expect_error(run(exchange->write(body)), ErrorCode::ambiguous,
               "send to " + server.url() + ": silent for 200 ms");
  gate.open();
}

TEST(HttpExchange, ATunnelMayBeSilentUnlessTheCallerLimitsIt) {
  const auto slow_tunnel = [](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
    std::this_thread::sleep_for(400ms);  // The pace of the server is what is tested.
    peer.write("late");
    peer.wait_for_close();
  };
  ScriptedServer server(slow_tunnel);
  const auto client = client_for(server.url(), {.read_timeout = 100ms});
  const Exchange unlimited = opened(*client, request_for("GET", {{"Upgrade", "x"}}));
  ASSERT_TRUE(run(unlimited->read_head()));
  EXPECT_EQ(*run(unlimited->read()), "late");
  const Exchange limited = opened(*client, request_for("GET", {{"Upgrade", "x"}}));
  ASSERT_TRUE(run(limited->read_head()));
  limited->set_idle_limit(80ms);
  expect_error(only_error(run(limited->read())), ErrorCode::ambiguous, "silent for 80 ms");
}

TEST(HttpExchange, CancellingAReadEndsItAndTheExchangeClosesItsConnection) {
  ScriptedServer server([](Peer& peer) {
    if (peer.number() == 0) return hang(peer);
    peer.read_request();
    peer.write(http_answer(200, "next"));
  });
  const auto client = client_for(server.url(), {.max_connections = 1});
  Exchange exchange = opened(*client, get("/"));
  Cancellable reading(exchange->read_head());
  EXPECT_TRUE(reading.cancel());
  exchange.reset();
  EXPECT_TRUE(ends_closed(server));
  EXPECT_EQ(call(*client, get("/"))->body, "next");
}

TEST(HttpExchange, NothingIsWrittenBehindACancelledWrite) {
  Gate gate;
  ScriptedServer server([&](Peer& peer) {
    peer.read(1);
    gate.wait();  // Reads no more; the body fits into no buffer.
  });
  const auto client = client_for(server.url());
  const Exchange exchange = opened(*client, post(""), kChunkedBody);
  const std::string body(64 << 20, 'x');
  Cancellable writing(exchange->write(body));
  EXPECT_TRUE(writing.cancel());
  expect_error(run(exchange->write("more")), ErrorCode::invalid, "cancelled");
  expect_error(run(exchange->finish()), ErrorCode::invalid, "cancelled");
  gate.open();
}

TEST(HttpExchange, DestroyingItEndsAReadInFlight) {
  ScriptedServer server(hang);
  const auto client = client_for(server.url());
  Exchange exchange = opened(*client, get("/"));
  Running<Result<HttpResponseStart>> head(exchange->read_head());
  ASSERT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.requests().size() == 1; }));
  exchange.reset();
  EXPECT_THROW((void)head.get(), boost::system::system_error);
  EXPECT_TRUE(ends_closed(server));
}

TEST(HttpExchange, OutlivesItsClient) {
  Gate gate;
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    gate.wait();
    peer.write(http_answer(200, "done"));
    peer.wait_for_close();
  });
  auto client = client_for(server.url());
  const Exchange exchange = opened(*client, get("/"));
  client.reset();
  gate.open();
  ASSERT_TRUE(run(exchange->read_head()));
  EXPECT_EQ(*run(collect(*exchange)), "done");
  EXPECT_TRUE(ends_closed(server)) << "nobody will use the connection again";
}

TEST(HttpExchange, WaitsItsTurnAndSaysWhenItDidNotCome) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for(server.url(), {.connect_timeout = 150ms, .max_connections = 1});
  Exchange first = opened(*client, get("/1"));
  const Result<Exchange> second = run(client->open(get("/2"), kNoBody));
  expect_error(only_error(second), ErrorCode::exhausted, "raise max_connections");
  first.reset();
  EXPECT_TRUE(opened(*client, get("/3")));
}

TEST(HttpExchange, ATunnelTakesNobodysPlace) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n");
    peer.wait_for_close();
  });
  const auto client = client_for(server.url(), {.connect_timeout = 1000ms, .max_connections = 1});
  std::vector<Exchange> tunnels;
  for (int i = 0; i < 3; ++i) {
    tunnels.push_back(opened(*client, request_for("GET", {{"Upgrade", "echo"}})));
    ASSERT_EQ(run(tunnels.back()->read_head())->status, 101);
  }
  EXPECT_EQ(server.open_connections(), 3);
  tunnels.clear();
  EXPECT_TRUE(ends_closed(server));
}

TEST(HttpExchange, ARefusedConnectionIsUnavailable) {
  const auto client = client_for("http://127.0.0.1:" + std::to_string(closed_port()));
  expect_error(only_error(run(client->open(get("/"), kNoBody))), ErrorCode::unavailable,
               "Connection refused");
}

TEST(HttpExchange, RefusesToWriteWhatItDidNotAnnounce) {
  ScriptedServer server(hang);
  const auto client = client_for(server.url());
  const Exchange short_body = opened(*client, post(""), body_of(4));
  expect_error(run(short_body->write("hello")), ErrorCode::invalid,
               "more is written than its Content-Length");
  ASSERT_TRUE(run(short_body->write("hel"))) << "what was refused was not sent";
  expect_error(run(short_body->finish()), ErrorCode::invalid, "less was written than its Content-Length");
  expect_error(run(short_body->write("l")), ErrorCode::invalid, "less was written");

  const Exchange none = opened(*client, get("/"));
  expect_error(run(none->write("x")), ErrorCode::invalid, "nothing more to be written");
  expect_error(run(none->finish({{"A", "1"}})), ErrorCode::invalid, "trailers need a chunked body");
  EXPECT_TRUE(run(none->finish())) << "there is nothing to finish";
  expect_error(only_error(run(none->read())), ErrorCode::invalid, "head comes before the body");

  const Exchange chunked = opened(*client, post(""), kChunkedBody);
  expect_error(run(chunked->finish({{"Content-Length", "1"}})), ErrorCode::invalid, "must not be a trailer");

  const BodyFraming until_close{BodyFraming::Kind::until_close, 0};
  expect_error(only_error(run(client->open(post(""), until_close))), ErrorCode::invalid,
               "cannot end with the connection");
}

TEST(HttpExchange, WritesTheHostItIsGiven) {
  ScriptedServer server(always(http_answer(200, "")));
  const auto client = client_for(server.url());
  HttpRequest request = request_for("OPTIONS");
  request.target = "*";
  request.host = "www.example:8443";
  ASSERT_TRUE(run(opened(*client, request)->read_head()));
  EXPECT_EQ(server.requests()[0], "OPTIONS * HTTP/1.1\r\nHost: www.example:8443\r\n\r\n");
  ASSERT_TRUE(call(*client, request));
  EXPECT_THAT(server.requests()[1], HasSubstr("Host: www.example:8443\r\n"));
  for (const char* host : {"", "a b", "a\r\nX: y", "a/b"}) {
    request.host = host;
    expect_error(only_error(call(*client, request)), ErrorCode::invalid, "host");
  }
}

Task<void> use_from_one_coroutine(std::string url, bool one_thread) {
  HttpClientOptions options;
  options.one_thread = one_thread;
  options.max_connections = 1;
  auto client = std::make_unique<HttpClient>(test::executor(), *parse_origin(url), options);
  for (int i = 0; i < 3; ++i) {
    HttpRequest request = post("body");
    const Result<HttpResponse> answer = co_await client->send(std::move(request));
    EXPECT_TRUE(answer && answer->body == "x");
    HttpRequest streamed = post("");
    const BodyFraming framing = body_of(4);
    Result<Exchange> exchange = co_await client->open(std::move(streamed), framing);
    if (!exchange) {
      ADD_FAILURE() << exchange.error().message;
      co_return;
    }
    EXPECT_TRUE(co_await (*exchange)->write("body"));
    EXPECT_TRUE(co_await (*exchange)->finish());
    EXPECT_TRUE(co_await (*exchange)->read_head());
    const Result<std::string> body = co_await collect(**exchange);
    EXPECT_TRUE(body && *body == "x");
  }
  // Left in the middle: its place is free at once.
  for (int i = 0; i < 2; ++i) {
    HttpRequest request = get("/");
    Result<Exchange> exchange = co_await client->open(std::move(request), kNoBody);
    EXPECT_TRUE(exchange);
  }
  client.reset();
}

// Sends the head and a first piece of an answer, and no more.
void begin_and_hang(Peer& peer) {
  peer.read_request();
  peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
  peer.wait_for_close();
}

// "first, then ambiguous: ... (total_timeout)"
Task<std::string> ask_and_read_on(HttpClient& client, bool lasts) {
  HttpRequest request = get("/");
  Result<Exchange> exchange = co_await client.ask(std::move(request));
  if (!exchange) co_return exchange.error().message;
  const auto head = co_await (*exchange)->read_head();
  if (!head) co_return head.error().message;
  const auto first = co_await (*exchange)->read();
  if (!first) co_return first.error().message;
  std::string found(*first);
  if (lasts) co_await (*exchange)->let_last();
  const auto second = co_await (*exchange)->read();
  co_return found + ", then " + (second ? std::string(*second) : to_string(second.error()));
}

TEST(HttpExchange, ThatWasAskedForEndsWithTheTimeOfACall) {
  ScriptedServer server(begin_and_hang);
  const auto client = client_for(server.url(), {.read_timeout = 5000ms, .total_timeout = 100ms});
  EXPECT_THAT(run(ask_and_read_on(*client, false)), HasSubstr("first, then ambiguous"));
  EXPECT_THAT(run(ask_and_read_on(*client, false)), HasSubstr("(total_timeout)"));
}

TEST(HttpExchange, ThatMayLastIsBoundByTheOriginsSilenceAlone) {
  ScriptedServer server(begin_and_hang);
  const auto client = client_for(server.url(), {.read_timeout = 300ms, .total_timeout = 100ms});
  EXPECT_THAT(run(ask_and_read_on(*client, true)), HasSubstr("(read_timeout)"));
}

Task<bool> another_gets_a_turn(HttpClient& client, bool lasts) {
  HttpRequest request = get("/");
  Result<Exchange> first = co_await client.ask(std::move(request));
  if (!first) co_return false;
  if (lasts) co_await (*first)->let_last();
  HttpRequest next = get("/");
  Result<Exchange> second = co_await client.ask(std::move(next));
  co_return second.has_value();
}

TEST(HttpExchange, ThatMayLastLeavesItsPlaceToOthers) {
  ScriptedServer server(begin_and_hang);
  const auto client = client_for(server.url(), {.total_timeout = 200ms, .max_connections = 1});
  EXPECT_FALSE(run(another_gets_a_turn(*client, false)));
  EXPECT_TRUE(run(another_gets_a_turn(*client, true)));
}

Task<bool> may_last_beside_another(HttpClient& client, bool other_ends) {
  HttpRequest request = get("/");
  Result<Exchange> first = co_await client.ask(std::move(request));
  EXPECT_TRUE(first);
  if (!first) co_return false;
  const bool lasts = co_await (*first)->let_last();
  EXPECT_TRUE(lasts);
  HttpRequest next = get("/");
  Result<Exchange> second = co_await client.ask(std::move(next));
  EXPECT_TRUE(second);
  if (!second) co_return false;
  if (other_ends) first->reset();
  co_return co_await (*second)->let_last();
}

TEST(HttpExchange, MayLastOnlyBesideSoManyOthers) {
  ScriptedServer server(begin_and_hang);
  const auto client =
      client_for(server.url(), {.connect_timeout = 100ms, .max_connections = 1, .max_streams = 1});
  EXPECT_FALSE(run(may_last_beside_another(*client, false)));
  EXPECT_TRUE(run(may_last_beside_another(*client, true)));
}

// Asks once more after `before` requests that were answered on the same connection.
Task<bool> is_closed_unanswered(HttpClient& client, int before) {
  for (int i = 0; i < before; ++i) {
    HttpRequest request = get("/");
    const auto answer = co_await client.send(std::move(request));
    EXPECT_TRUE(answer);
  }
  HttpRequest request = get("/last");
  Result<Exchange> exchange = co_await client.ask(std::move(request));
  if (!exchange) co_return false;
  auto head = co_await (*exchange)->read_head();
  if (head && head->status == 102) head = co_await (*exchange)->read_head();
  EXPECT_FALSE(head);
  co_return (*exchange)->was_closed_unanswered();
}

TEST(HttpExchange, TellsAKeptConnectionThatWasClosedFromABadAnswer) {
  const auto asked = [](int before, std::string last) {
    ScriptedServer server([last = std::move(last)](Peer& peer) {
      while (const auto request = peer.read_request()) {
        if (request->starts_with("GET /last")) {
          if (!last.empty()) peer.write(last);
          return;
        }
        peer.write(http_answer(200, "x"));
      }
    });
    const auto client = client_for(server.url());
    return run(is_closed_unanswered(*client, before));
  };
  EXPECT_TRUE(asked(1, ""));
  EXPECT_FALSE(asked(0, ""));  // It was made for that request.
  for (const char* answer : {"HTTP/1.1 200 O", "nonsense\r\n\r\n", "HTTP/1.1 102 Processing\r\n\r\n",
                             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n"}) {
    EXPECT_FALSE(asked(1, answer)) << answer;
  }
}

TEST(HttpExchange, WorksWithoutAStrandOnAnExecutorOfOneThread) {
  ScriptedServer server(always(http_answer(200, "x")));
  run(use_from_one_coroutine(server.url(), true));
  // The one that was reused six times and then left in the middle, and one more.
  EXPECT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.connections() >= 2; }));
  EXPECT_TRUE(ends_closed(server));
  EXPECT_EQ(server.connections(), 2);
}

// One call after the other: the caller is resumed within the strand and must go back to it all the same.
TEST(HttpExchange, WorksForACallerThatIsNotOnTheStrand) {
  ScriptedServer server([](Peer& peer) {
    while (const auto request = peer.read_request()) {
      // The caller must have to wait for the answer.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      peer.write(http_answer(200, "x"));
    }
  });
  run(use_from_one_coroutine(server.url(), false));
  EXPECT_TRUE(ends_closed(server));
}

}  // namespace
}  // namespace facetheory
