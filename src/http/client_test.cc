#include "facetheory/http/client.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/run.h"
#include "tests/support/scripted_server.h"
#include "tests/support/test_certificates.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::http_answer;
using test::Peer;
using test::run;
using test::ScriptedServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Outcome = Result<HttpResponse>;
using Started = std::future<std::optional<Outcome>>;

Started start(Task<Outcome> call) {
  return asio::co_spawn(test::executor(), test::as_optional(std::move(call)), asio::use_future);
}

HttpRequest get(std::string target) {
  HttpRequest request;
  request.target = std::move(target);
  return request;
}

HttpRequest post(std::string body) {
  HttpRequest request;
  request.method = "POST";
  request.body = std::move(body);
  return request;
}

std::unique_ptr<HttpClient> client_for(const std::string& url, HttpClientOptions options = {}) {
  return std::make_unique<HttpClient>(test::executor(), *parse_origin(url), std::move(options));
}

Outcome call(HttpClient& client, HttpRequest request) {
  return run(client.send(std::move(request)));
}

// A door that a script waits at until the test opens it.
class Gate {
 public:
  void open() { opened_.set_value(); }
  void wait() const { future_.wait_for(10s); }

 private:
  std::promise<void> opened_;
  std::shared_future<void> future_ = opened_.get_future().share();
};

ScriptedServer::Script always(std::string answer) {
  return test::answer_in_turn({std::move(answer)});
}

// Reads one request, then writes exactly these bytes and closes.
ScriptedServer::Script once(std::string bytes) {
  return [bytes = std::move(bytes)](Peer& peer) {
    peer.read_request();
    peer.write(bytes);
  };
}

void hang(Peer& peer) {
  peer.read_request();
  peer.wait_for_close();
}

// A listener whose queue is full: whoever connects gets no answer, not even a refusal.
class DeafListener {
 public:
  DeafListener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    sockets_.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    ::bind(sockets_[0], reinterpret_cast<sockaddr*>(&address), size);
    ::listen(sockets_[0], 0);
    ::getsockname(sockets_[0], reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    for (int i = 0; i < 8; ++i) {
      sockets_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      ::connect(sockets_.back(), reinterpret_cast<sockaddr*>(&address), size);
    }
  }
  ~DeafListener() {
    for (const int fd : sockets_)
      ::close(fd);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  std::vector<int> sockets_;
  std::uint16_t port_ = 0;
};

// A call that the test cancels, on the executor it runs on.
class Cancellable {
 public:
  explicit Cancellable(Task<Outcome> call)
      : result_(asio::co_spawn(test::executor(), test::as_optional(std::move(call)),
                               asio::bind_cancellation_slot(signal_->slot(), asio::use_future))) {}

  // True: the call ended by throwing operation_aborted.
  bool cancel() {
    asio::dispatch(test::executor(), [signal = signal_] { signal->emit(asio::cancellation_type::terminal); });
    try {
      (void)result_.get();
      return false;
    } catch (const boost::system::system_error& error) {
      return error.code() == asio::error::operation_aborted;
    }
  }

 private:
  std::shared_ptr<asio::cancellation_signal> signal_ = std::make_shared<asio::cancellation_signal>();
  Started result_;
};

TEST(ParseOrigin, ReadsSchemeHostAndPort) {
  EXPECT_EQ(*parse_origin("http://127.0.0.1:8000"), (Origin{false, "127.0.0.1", 8000}));
  EXPECT_EQ(*parse_origin("HTTPS://S3.eu-west-1.AmazonAWS.com/"),
            (Origin{true, "s3.eu-west-1.amazonaws.com", 443}));
  EXPECT_EQ(*parse_origin("https://[::1]:8443"), (Origin{true, "::1", 8443}));
  EXPECT_EQ(*parse_origin("http://localhost"), (Origin{false, "localhost", 80}));
  EXPECT_EQ(*parse_origin("http://127.0.0.1.example:81/"), (Origin{false, "127.0.0.1.example", 81}));
}

TEST(ParseOrigin, RefusesWhatIsNotAnOrigin) {
  for (const char* url : {"",
                          "localhost:8000",
                          "ftp://host",
                          "http://",
                          "http://host/path",
                          "http://host?x",
                          "http://host#f",
                          "http://host:0",
                          "http://host:65536",
                          "http://ho st",
                          "http://host:80 80",
                          "http://host%0d%0a",
                          "http://[::1",
                          "http://[]",
                          "http://[::1]x",
                          "http://::1",
                          "http://[localhost]",
                          "http://host:",
                          "http://host:+1",
                          "http://:80",
                          "http://h/x@y"}) {
    const Result<Origin> origin = parse_origin(url);
    ASSERT_FALSE(origin) << url;
    EXPECT_EQ(origin.error().code, ErrorCode::invalid) << url;
    EXPECT_THAT(origin.error().message, HasSubstr("http://127.0.0.1:8000")) << url;
  }
}

TEST(ParseOrigin, NeverRepeatsAPassword) {
  const Result<Origin> origin = parse_origin("http://me:geheim@host/path");
  ASSERT_FALSE(origin);
  EXPECT_THAT(origin.error().message, HasSubstr("user name"));
  EXPECT_THAT(origin.error().message, ::testing::Not(HasSubstr("geheim")));
}

TEST(HostField, NamesThePortOnlyWhereItIsNotTheSchemesOwn) {
  EXPECT_EQ(host_field({false, "h", 80}), "h");
  EXPECT_EQ(host_field({true, "h", 443}), "h");
  EXPECT_EQ(host_field({true, "h", 80}), "h:80");
  EXPECT_EQ(host_field({false, "::1", 8000}), "[::1]:8000");
}

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

TEST(HttpClient, ReusesAConnectionThatStaysOpen) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for(server.url());
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, OpensAnotherConnectionAfterConnectionClose) {
  ScriptedServer server(always(http_answer(200, "x", "Connection: close\r\n")));
  const auto client = client_for(server.url());
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 3);
}

TEST(HttpClient, NoticesThatThePeerClosedAnIdleConnection) {
  ScriptedServer server(once(http_answer(200, "x")));
  const auto client = client_for(server.url());
  for (int i = 1; i <= 3; ++i) {
    const Outcome answer = call(*client, post("not to be lost"));
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 0; }));
    EXPECT_EQ(server.connections(), i);
  }
}

TEST(HttpClient, DoesNotTakeAnUnaskedMessageForTheNextAnswer) {
  Gate idle;
  std::promise<void> said;
  ScriptedServer server([&](Peer& peer) {
    while (peer.read_request()) {
      peer.write(http_answer(200, "mine"));
      if (peer.number() > 0) continue;
      idle.wait();
      peer.write(http_answer(408, "too slow"));
      said.set_value();
      peer.wait_for_close();
      return;
    }
  });
  const auto client = client_for(server.url());
  ASSERT_TRUE(call(*client, get("/1")));
  idle.open();
  said.get_future().wait_for(10s);
  const Outcome second = call(*client, get("/2"));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->body, "mine");
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClient, DropsAConnectionWhoseAnswerIsFollowedByMore) {
  ScriptedServer server(always(http_answer(200, "a") + "surplus"));
  const auto client = client_for(server.url());
  ASSERT_TRUE(call(*client, get("/")));
  ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClient, ClosesAConnectionThatIsIdleTooLong) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for(server.url(), {.idle_timeout = 50ms});
  ASSERT_TRUE(call(*client, get("/")));
  EXPECT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 0; }));
  ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClient, NeverOpensMoreConnectionsThanItMay) {
  Gate gate;
  ScriptedServer server([&](Peer& peer) {
    while (peer.read_request()) {
      gate.wait();
      peer.write(http_answer(200, "x"));
    }
  });
  const auto client = client_for(server.url(), {.max_connections = 3});
  std::vector<Started> calls;
  for (int i = 0; i < 20; ++i)
    calls.push_back(start(client->send(get("/"))));
  ASSERT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.requests().size() == 3; }));
  gate.open();
  for (Started& one : calls)
    EXPECT_TRUE(one.get()->has_value());
  EXPECT_EQ(server.connections(), 3);
  EXPECT_EQ(server.requests().size(), 20U);
}

TEST(HttpClient, ServesWaitingCallsInTheOrderTheyCame) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for(server.url(), {.max_connections = 1});
  std::vector<Started> calls;
  std::vector<std::string> expected;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(start(client->send(get("/" + std::to_string(i)))));
    expected.push_back("GET /" + std::to_string(i) + " HTTP/1.1");
  }
  for (Started& one : calls)
    ASSERT_TRUE(one.get()->has_value());
  std::vector<std::string> seen;
  for (const std::string& request : server.requests())
    seen.push_back(request.substr(0, request.find('\r')));
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, AFailedCallFreesItsConnectionForTheNext) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    if (peer.number() % 2 == 1) peer.write(http_answer(200, "x", "Connection: close\r\n"));
  });
  const auto client = client_for(server.url(), {.max_connections = 1});
  std::vector<Started> calls;
  for (int i = 0; i < 6; ++i)
    calls.push_back(start(client->send(get("/"))));
  for (std::size_t i = 0; i < calls.size(); ++i)
    EXPECT_EQ(calls[i].get()->has_value(), i % 2 == 1) << i;
}

TEST(HttpClient, ARefusedConnectionIsUnavailable) {
  const std::string url = "http://127.0.0.1:" + std::to_string(test::closed_port());
  const auto client = client_for(url);
  const Outcome answer = call(*client, post("x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), (Error{ErrorCode::unavailable, "connect to " + url + ": Connection refused"}));
}

TEST(HttpClient, AnUnknownHostIsUnavailable) {
  const auto client = client_for("http://no-such-host.invalid:8000");
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message, StartsWith("look up the host of http://no-such-host.invalid:8000: "));
}

TEST(HttpClient, FindsAHostByName) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for("http://localhost:" + std::to_string(server.port()));
  EXPECT_TRUE(call(*client, get("/")));
}

TEST(HttpClient, AConnectThatTakesTooLongIsUnavailable) {
  const DeafListener deaf;
  const auto client = client_for(deaf.url(), {.connect_timeout = 100ms});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(),
            (Error{ErrorCode::unavailable,
                   "connect to " + deaf.url() + ": not done within 100 ms (connect_timeout)"}));
}

TEST(HttpClient, ATlsHandshakeThatTakesTooLongIsUnavailable) {
  ScriptedServer server([](Peer& peer) { peer.wait_for_close(); });
  const auto client =
      client_for("https://127.0.0.1:" + std::to_string(server.port()), {.connect_timeout = 100ms});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message, StartsWith("TLS handshake with https://127.0.0.1:"));
  EXPECT_THAT(answer.error().message, HasSubstr("connect_timeout"));
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

TEST(HttpClient, TheTotalTimeoutCountsTheWaitForAConnection) {
  const DeafListener deaf;
  const auto client =
      client_for(deaf.url(), {.connect_timeout = 30s, .total_timeout = 1000ms, .max_connections = 1});
  const auto began = std::chrono::steady_clock::now();
  Started first = start(client->send(get("/first")));
  Started second = start(client->send(get("/second")));
  for (Started* one : {&first, &second}) {
    const Outcome answer = *one->get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
    EXPECT_THAT(answer.error().message, HasSubstr("1000 ms (total_timeout)"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1800ms);
}

TEST(HttpClient, ACallThatWaitsTooLongForAConnectionSaysSo) {
  const DeafListener deaf;
  const auto client =
      client_for(deaf.url(), {.connect_timeout = 30s, .total_timeout = 200ms, .max_connections = 1});
  // Whoever comes first holds the only place for as long as all the others wait, but for microseconds.
  std::vector<Started> calls;
  for (int i = 0; i < 50; ++i)
    calls.push_back(start(client->send(get("/"))));
  int waited = 0;
  for (Started& one : calls) {
    const Outcome answer = *one.get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
    if (answer.error().message.find("raise max_connections") != std::string::npos) ++waited;
  }
  EXPECT_GT(waited, 0);
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

TEST(HttpClient, LosingTheConnectionAfterTheRequestIsAmbiguous) {
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

TEST(HttpClient, AnAnswerThatIsNotHttpIsAmbiguousAndSaysSo) {
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

TEST(HttpClient, ReadsALargeAnswerByteForByte) {
  std::string body(20 << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i)
    body[i] = static_cast<char>(i * 2654435761U >> 13);
  ScriptedServer server(always(http_answer(200, body)));
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, get("/"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->body == body);
}

TEST(HttpClient, RefusesAnAnswerLargerThanAllowed) {
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
    EXPECT_EQ(answer.error().code, ErrorCode::exhausted) << answer.error().message;
    EXPECT_THAT(answer.error().message, HasSubstr("max_response_bytes"));
  }
}

TEST(HttpClient, TakesAnAnswerOfExactlyTheAllowedSize) {
  ScriptedServer server(always(http_answer(200, std::string(1000, 'x'))));
  const auto client = client_for(server.url(), {.max_response_bytes = 1000});
  EXPECT_TRUE(call(*client, get("/")));
}

TEST(HttpClient, AssemblesAChunkedAnswerAndReusesTheConnection) {
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

TEST(HttpClient, ReadsToTheEndOfTheConnectionWhereNoLengthIsGiven) {
  ScriptedServer server(once("HTTP/1.1 200 OK\r\n\r\nall there is"));
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, get("/"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "all there is");
}

TEST(HttpClient, AwaitsNoBodyWhereHttpForbidsOne) {
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

TEST(HttpClient, TellsTheSizeThatAHeadAnswerNames) {
  ScriptedServer server(always("HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n"));
  const auto client = client_for(server.url());
  HttpRequest head;
  head.method = "HEAD";
  const Outcome answer = call(*client, head);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->headers.get("content-length"), "42");
}

TEST(HttpClient, PassesOverInterimAnswers) {
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

TEST(HttpClient, GivesUpOnEndlessInterimAnswers) {
  std::string interim;
  for (int i = 0; i < 100; ++i)
    interim += "HTTP/1.1 100 Continue\r\n\r\n";
  ScriptedServer server(always(interim));
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
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

TEST(HttpClient, CancellingACallClosesItsConnectionAndFreesItsPlace) {
  ScriptedServer server([](Peer& peer) {
    if (peer.number() == 0) return hang(peer);
    peer.read_request();
    peer.write(http_answer(200, "next"));
  });
  const auto client = client_for(server.url(), {.max_connections = 1});
  Cancellable hanging(client->send(get("/")));
  ASSERT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.requests().size() == 1; }));
  EXPECT_TRUE(hanging.cancel());
  EXPECT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 0; }));
  const Outcome next = call(*client, get("/"));
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->body, "next");
}

TEST(HttpClient, CancellingAWaitingCallLeavesTheQueueInOrder) {
  Gate gate;
  ScriptedServer server([&](Peer& peer) {
    while (peer.read_request()) {
      gate.wait();
      peer.write(http_answer(200, "x"));
    }
  });
  const auto client = client_for(server.url(), {.max_connections = 1});
  Started first = start(client->send(get("/first")));
  ASSERT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.requests().size() == 1; }));
  Cancellable second(client->send(get("/second")));
  Started third = start(client->send(get("/third")));
  EXPECT_TRUE(second.cancel());
  gate.open();
  EXPECT_TRUE(first.get()->has_value());
  EXPECT_TRUE(third.get()->has_value());
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_THAT(server.requests()[1], StartsWith("GET /third "));
}

TEST(HttpClient, CancellingWhileConnectingEndsTheCall) {
  const DeafListener deaf;
  const auto client = client_for(deaf.url(), {.connect_timeout = 30s});
  Cancellable connecting(client->send(get("/")));
  EXPECT_TRUE(connecting.cancel());
}

TEST(HttpClient, CallsInFlightFinishAfterTheClientIsGoneAndIdleConnectionsClose) {
  Gate gate;
  ScriptedServer server([&](Peer& peer) {
    while (const auto request = peer.read_request()) {
      if (request->starts_with("GET /slow")) gate.wait();
      peer.write(http_answer(200, "done"));
    }
  });
  auto client = client_for(server.url());
  Started slow = start(client->send(get("/slow")));
  ASSERT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.requests().size() == 1; }));
  ASSERT_TRUE(call(*client, get("/quick")));
  EXPECT_EQ(server.open_connections(), 2);
  client.reset();
  EXPECT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 1; }));
  gate.open();
  EXPECT_EQ((*slow.get())->body, "done");
  EXPECT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 0; }));
}

TEST(HttpClient, ServesCallersOnManyThreads) {
  ScriptedServer server(always(http_answer(200, "x")));
  asio::thread_pool loop(2);
  asio::thread_pool callers(4);
  {
    HttpClient client(loop.get_executor(), *parse_origin(server.url()), {.max_connections = 5});
    std::vector<Started> calls;
    for (int i = 0; i < 300; ++i) {
      calls.push_back(asio::co_spawn(callers, test::as_optional(client.send(get("/"))), asio::use_future));
    }
    for (Started& one : calls)
      EXPECT_TRUE(one.get()->has_value());
  }
  EXPECT_EQ(server.requests().size(), 300U);
  EXPECT_LE(server.connections(), 5);
  callers.join();
  loop.join();
}

TEST(HttpClient, CancellationFromManyThreadsLosesNoPlace) {
  ScriptedServer server([](Peer& peer) {
    while (const auto request = peer.read_request()) {
      if (request->starts_with("GET /hang")) {
        peer.wait_for_close();
        return;
      }
      peer.write(http_answer(200, "x"));
    }
  });
  const auto client = client_for(server.url(), {.max_connections = 2});
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Cancellable>> hanging;
    for (int i = 0; i < 4; ++i)
      hanging.push_back(std::make_unique<Cancellable>(client->send(get("/hang"))));
    for (auto& one : hanging)
      EXPECT_TRUE(one->cancel());
  }
  EXPECT_TRUE(call(*client, get("/")));
  EXPECT_TRUE(call(*client, get("/")));
}

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "facetheory-http-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    ::close(fd);
    ca_file_ = name;
    std::ofstream(ca_file_) << authority_.root_pem();
  }
  ~TlsTest() override { std::filesystem::remove(ca_file_); }

  // What a client that trusts our root gets from a server with that identity.
  Outcome ask(const test::ServerIdentity& identity, const std::string& host = "localhost") {
    ScriptedServer server(always(http_answer(200, "secret")), identity);
    const auto client =
        client_for("https://" + host + ":" + std::to_string(server.port()), {.ca_file = ca_file_});
    Outcome answer = call(*client, get("/"));
    if (!answer) {
      EXPECT_EQ(server.requests().size(), 0U);
    }
    return answer;
  }

  void expect_refused(const Outcome& answer, const std::string& reason) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
    EXPECT_THAT(answer.error().message, StartsWith("TLS handshake with https://"));
    EXPECT_THAT(answer.error().message, HasSubstr(reason));
    EXPECT_THAT(answer.error().message, HasSubstr(ca_file_));
  }

  const test::TestAuthority authority_;
  std::string ca_file_;
};

TEST_F(TlsTest, TrustsACertificateOfItsRootForTheRightHost) {
  const Outcome answer = ask(authority_.issue("localhost"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "secret");
}

TEST_F(TlsTest, ReusesItsConnection) {
  ScriptedServer server(always(http_answer(200, "secret")), authority_.issue("localhost"));
  const auto client = client_for(server.url(), {.ca_file = ca_file_});
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(TlsTest, TrustsACertificateForAnAddress) {
  EXPECT_TRUE(ask(authority_.issue("127.0.0.1"), "127.0.0.1"));
}

TEST_F(TlsTest, CarriesLargeMessagesBothWays) {
  const std::string body(3 << 20, 'b');
  ScriptedServer server(always(http_answer(200, body)), authority_.issue("localhost"));
  const auto client = client_for(server.url(), {.ca_file = ca_file_});
  const Outcome answer = call(*client, post(body));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->body == body);
  EXPECT_TRUE(server.requests()[0].ends_with(body));
}

TEST_F(TlsTest, RefusesACertificateForAnotherHost) {
  expect_refused(ask(authority_.issue("example.test")), "ostname mismatch");
}

TEST_F(TlsTest, RefusesACertificateForTheNameWhenTheAddressWasAsked) {
  expect_refused(ask(authority_.issue("localhost"), "127.0.0.1"), "IP address mismatch");
}

TEST_F(TlsTest, RefusesACertificateOfAnUnknownRoot) {
  expect_refused(ask(test::TestAuthority().issue("localhost")), "certificate");
}

TEST_F(TlsTest, RefusesAnExpiredCertificate) {
  expect_refused(ask(authority_.issue("localhost", -7000, -60)), "certificate has expired");
}

TEST_F(TlsTest, RefusesACertificateThatIsNotYetValid) {
  expect_refused(ask(authority_.issue("localhost", 3600, 7000)), "certificate is not yet valid");
}

TEST_F(TlsTest, RefusesOurRootWhereOnlyTheSystemsAreTrusted) {
  ScriptedServer server(always(http_answer(200, "secret")), authority_.issue("localhost"));
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("system's trusted roots"));
}

TEST_F(TlsTest, SendsTheServerName) {
  std::promise<std::string> hello;
  ScriptedServer listener([&](Peer& peer) { hello.set_value(peer.read(200)); });
  const auto greeting = client_for("https://localhost:" + std::to_string(listener.port()),
                                   {.connect_timeout = 2000ms, .ca_file = ca_file_});
  Started call_in_flight = start(greeting->send(get("/")));
  EXPECT_THAT(hello.get_future().get(), HasSubstr("localhost"));
  EXPECT_FALSE(call_in_flight.get()->has_value());
}

TEST_F(TlsTest, LosingTheConnectionAfterTheRequestIsAmbiguous) {
  ScriptedServer server([](Peer& peer) { peer.read_request(); }, authority_.issue("localhost"));
  const auto client = client_for(server.url(), {.ca_file = ca_file_});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
}

TEST_F(TlsTest, AServerWithoutTlsIsUnavailable) {
  ScriptedServer server([](Peer& peer) {
    peer.read(1);
    peer.write("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  const auto client = client_for("https://localhost:" + std::to_string(server.port()), {.ca_file = ca_file_});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message, StartsWith("TLS handshake with https://localhost"));
}

TEST_F(TlsTest, AMissingRootFileIsInvalidAndNamed) {
  ScriptedServer server(always(http_answer(200, "x")), authority_.issue("localhost"));
  const auto client = client_for(server.url(), {.ca_file = ca_file_ + ".missing"});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::invalid);
  EXPECT_THAT(answer.error().message, HasSubstr(ca_file_ + ".missing"));
  EXPECT_EQ(server.connections(), 0);
}

}  // namespace
}  // namespace facetheory
