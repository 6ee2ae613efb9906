// Tests where an answer ends for HttpClient::send.
#include <gmock/gmock.h>

#include "facetheory/http/client.h"

#include "tests/support/http_calls.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using namespace test;
using ::testing::HasSubstr;

TEST(HttpClientFraming, LosingTheConnectionAfterTheRequestIsAmbiguous) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "closed before any of it came"},
      {"HTTP/1.1 200", "closed in the middle of it"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", "closed in the middle of it"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", "closed in the middle of it"},
      {"HTTP/1.1 100 Continue\r\n\r\n", "closed before any of it came"},
  };
  for (const auto& [bytes, message] : cases) {
    ScriptedServer server(once(bytes));
    const auto client = client_for(server.url());
    const Outcome answer = call(*client, post("x"));
    ASSERT_FALSE(answer) << bytes;
    EXPECT_EQ(answer.error().code, ErrorCode::ambiguous) << bytes;
    EXPECT_THAT(answer.error().message, HasSubstr(message)) << bytes;
  }
}

TEST(HttpClientFraming, AnAnswerThatIsNotHttpIsAmbiguousAndSaysSo) {
  for (const char* bytes :
       {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    ScriptedServer server(once(bytes));
    const auto client = client_for(server.url());
    const Outcome answer = call(*client, get("/"));
    ASSERT_FALSE(answer) << bytes;
    EXPECT_EQ(answer.error().code, ErrorCode::ambiguous) << bytes;
    EXPECT_THAT(answer.error().message, HasSubstr("is it an HTTP server?")) << bytes;
  }
}

TEST(HttpClientFraming, ReadsALargeAnswerByteForByte) {
  std::string body(20 << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i)
    body[i] = static_cast<char>(i * 2654435761U >> 13);
  ScriptedServer server(always(http_answer(200, body)));
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, get("/"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->body == body);
}

TEST(HttpClientFraming, RefusesAnAnswerLargerThanAllowed) {
  const std::string chunk = "400\r\n" + std::string(1024, 'x') + "\r\n";
  for (const std::string& bytes :
       {http_answer(200, std::string(1001, 'x')),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + "0\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n" + std::string(1001, 'x'),
        "HTTP/1.1 200 OK\r\nX: " + std::string(100000, 'x') + "\r\nContent-Length: 0\r\n\r\n"}) {
    ScriptedServer server(once(bytes));
    const auto client = client_for(server.url(), {.max_response_bytes = 1000});
    const Outcome answer = call(*client, get("/"));
    ASSERT_FALSE(answer) << bytes.substr(0, 60);
    const bool head = bytes.find("X: ") != std::string::npos;
    EXPECT_EQ(answer.error().code, head ? ErrorCode::ambiguous : ErrorCode::exhausted)
        << answer.error().message;
    EXPECT_THAT(answer.error().message, HasSubstr("max_response_bytes"));
  }
}

TEST(HttpClientFraming, TakesAnAnswerOfExactlyTheAllowedSize) {
  ScriptedServer server(always(http_answer(200, std::string(1000, 'x'))));
  const auto client = client_for(server.url(), {.max_response_bytes = 1000});
  EXPECT_TRUE(call(*client, get("/")));
}

TEST(HttpClientFraming, AssemblesAChunkedAnswerAndReusesTheConnection) {
  ScriptedServer server(
      always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n7\r\n, "
             "world\r\n0\r\nX-End: yes\r\n\r\n"));
  const auto client = client_for(server.url());
  for (int i = 0; i < 2; ++i) {
    const Outcome answer = call(*client, get("/"));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "hello, world");
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClientFraming, ReadsToTheEndOfTheConnectionWhereNoLengthIsGiven) {
  ScriptedServer server(once("HTTP/1.1 200 OK\r\n\r\nall there is"));
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, get("/"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "all there is");
}

TEST(HttpClientFraming, AwaitsNoBodyWhereHttpForbidsOne) {
  HttpRequest head;
  head.method = "HEAD";
  const std::vector<std::pair<HttpRequest, std::string>> cases = {
      {head, "HTTP/1.1 200 OK\r\nContent-Length: 123456789012\r\n\r\n"},
      {head, "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {get("/"), "HTTP/1.1 204 No Content\r\n\r\n"},
      {get("/"), "HTTP/1.1 304 Not Modified\r\nContent-Length: 55\r\n\r\n"},
  };
  for (const auto& [request, bytes] : cases) {
    ScriptedServer server(always(bytes));
    const auto client = client_for(server.url(), {.read_timeout = 5000ms});
    for (int i = 0; i < 2; ++i) {
      const Outcome answer = call(*client, request);
      ASSERT_TRUE(answer) << bytes << answer.error().message;
      EXPECT_EQ(answer->body, "") << bytes;
    }
    EXPECT_EQ(server.connections(), 1) << bytes;
  }
}

TEST(HttpClientFraming, TellsTheSizeThatAHeadAnswerNames) {
  ScriptedServer server(always("HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n"));
  const auto client = client_for(server.url());
  HttpRequest head;
  head.method = "HEAD";
  const Outcome answer = call(*client, head);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->headers.get("content-length"), "42");
}

TEST(HttpClientFraming, PassesOverInterimAnswers) {
  ScriptedServer server(always("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
                               http_answer(200, "at last")));
  const auto client = client_for(server.url());
  for (int i = 0; i < 2; ++i) {
    const Outcome answer = call(*client, get("/"));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "at last");
    EXPECT_EQ(answer->headers.get("Link"), std::nullopt);
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClientFraming, GivesUpOnEndlessInterimAnswers) {
  std::string interim;
  for (int i = 0; i < 100; ++i)
    interim += "HTTP/1.1 100 Continue\r\n\r\n";
  ScriptedServer server(always(interim));
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
}

}  // namespace
}  // namespace facetheory
