#include "facetheory/http/client.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "tests/support/http_calls.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(HttpClient, SendsTheRequestAsItIsAndReturnsTheWholeAnswer) {
  ScriptedServer server(always(http_answer(418, "short and stout", "X-Kind: teapot\r\n")));
  const auto client = client_for(server.url());
  HttpRequest request = post("pour");
  request.target = "/pot?lid=off";
  request.headers.add("X-Tea", "green");
  const Outcome answer = call(*client, request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 418);
  EXPECT_EQ(answer->headers.get("x-kind"), "teapot");
  EXPECT_EQ(answer->body, "short and stout");
  EXPECT_THAT(server.requests(),
              ElementsAre("POST /pot?lid=off HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                          "\r\nX-Tea: green\r\nContent-Length: 4\r\n\r\npour"));
}

TEST(HttpClient, SendsNoContentLengthWithAGetButOneWithAnEmptyPut) {
  ScriptedServer server(always(http_answer(200, "")));
  const auto client = client_for(server.url());
  HttpRequest put;
  put.method = "PUT";
  ASSERT_TRUE(call(*client, get("/")));
  ASSERT_TRUE(call(*client, put));
  EXPECT_THAT(server.requests()[0], ::testing::Not(HasSubstr("Content-Length")));
  EXPECT_THAT(server.requests()[1], HasSubstr("Content-Length: 0\r\n"));
}

TEST(HttpClient, SilenceAfterTheRequestIsAmbiguous) {
  ScriptedServer server(hang);
  const auto client = client_for(server.url(), {.read_timeout = 100ms});
  const Outcome answer = call(*client, post("x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), (Error{ErrorCode::ambiguous, "await the answer of " + server.url() +
                                                             ": silent for 100 ms (read_timeout)"}));
  EXPECT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 0; }));
}

TEST(HttpClient, AnAnswerMayTakeLongerThanTheReadTimeoutWhileItKeepsComing) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
    for (const char* piece : {"a", "b", "c", "d"}) {
      std::this_thread::sleep_for(300ms);  // The pace of the server is what is tested.
      peer.write(piece);
    }
  });
  const auto client = client_for(server.url(), {.read_timeout = 1000ms});
  const Outcome answer = call(*client, get("/"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "abcd");
}

TEST(HttpClient, TheTotalTimeoutEndsAnAnswerThatTrickles) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    for (int i = 0; i < 1000 && peer.write("."); ++i)
      std::this_thread::sleep_for(10ms);
  });
  const auto client = client_for(server.url(), {.read_timeout = 10s, .total_timeout = 300ms});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
  EXPECT_THAT(answer.error().message, HasSubstr("not done within 300 ms (total_timeout)"));
}

TEST(HttpClient, ARequestThatCannotBeSentInTimeIsAmbiguousOnceItHasBegun) {
  ScriptedServer server([](Peer& peer) {
    peer.read(1);
    std::this_thread::sleep_for(600ms);  // Longer than the client's patience; the body fits into no buffer.
  });
  const auto client = client_for(server.url(), {.total_timeout = 300ms});
  const Outcome answer = call(*client, post(std::string(32 << 20, 'x')));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
  EXPECT_THAT(answer.error().message, StartsWith("send to " + server.url()));
}

TEST(HttpClient, AResetAfterTheRequestIsAmbiguous) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    peer.reset();
  });
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, post("x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
  EXPECT_THAT(answer.error().message, StartsWith("await the answer of " + server.url()));
}

TEST(HttpClient, TakesTheEarlyAnswerOfAServerThatStopsReading) {
  ScriptedServer server([](Peer& peer) {
    peer.read(100);
    peer.write(http_answer(413, "too large", "Connection: close\r\n"));
    peer.reset();
  });
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, post(std::string(32 << 20, 'x')));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 413);
  EXPECT_EQ(answer->body, "too large");
}

TEST(HttpClient, RefusesWhateverCouldBreakOutOfItsPlaceInTheMessage) {
  using namespace std::string_literals;
  ScriptedServer server(always(http_answer(200, "")));
  const auto client = client_for(server.url());
  std::vector<HttpRequest> bad;
  for (const std::string& method : {""s, "GET /"s, "GE\r\nT"s, "G\0T"s}) {
    bad.push_back(get("/"));
    bad.back().method = method;
  }
  for (const std::string& target :
       {""s, "x"s, "http://h/"s, "/a b"s, "/\r\nX: y"s, "/\n"s, "/\0"s, "/\x7f"s, "/\xc3\xa9"s, "/#f"s}) {
    bad.push_back(get(target));
  }
  for (const std::string& name : {""s, "a b"s, "a:"s, "a\r\nb"s, "a\0"s, "\xc3\xa9"s}) {
    bad.push_back(get("/"));
    bad.back().headers.add(name, "v");
  }
  for (const std::string& value : {"a\r\nX: y"s, "a\nb"s, "a\rb"s, "a\0b"s, "\x7f"s, "\x1b"s}) {
    bad.push_back(get("/"));
    bad.back().headers.add("X-Field", value);
  }
  for (const std::string& name : {"Host"s, "content-length"s, "Transfer-Encoding"s, "CONNECTION"s}) {
    bad.push_back(get("/"));
    bad.back().headers.add(name, "1");
  }
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const Outcome answer = call(*client, bad[i]);
    ASSERT_FALSE(answer) << i;
    EXPECT_EQ(answer.error().code, ErrorCode::invalid) << i;
    EXPECT_THAT(answer.error().message, HasSubstr(server.url())) << i;
  }
  EXPECT_EQ(server.connections(), 0);
}

TEST(HttpClient, SendsTabsAndUtf8InFieldValues) {
  ScriptedServer server(always(http_answer(200, "")));
  const auto client = client_for(server.url());
  HttpRequest request = get("/");
  request.headers.add("X-Field", "a\tb \xc3\xa9");
  ASSERT_TRUE(call(*client, request));
  EXPECT_THAT(server.requests()[0], HasSubstr("X-Field: a\tb \xc3\xa9\r\n"));
}

}  // namespace
}  // namespace facetheory
