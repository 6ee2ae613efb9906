// Tests which connection a call gets, and what becomes of those that wait, fail or are cancelled.
#include "facetheory/http/connection_pool.h"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "facetheory/http/client.h"
#include "facetheory/http/connection.h"
#include "facetheory/http/origin.h"

#include "tests/support/http_calls.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using namespace test;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A listener whose queue is full: whoever connects gets no answer, not even a refusal.
class DeafListener {
 public:
  DeafListener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    sockets_.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(::bind(sockets_[0], reinterpret_cast<sockaddr*>(&address), size), 0);
    ::listen(sockets_[0], 0);
    ::getsockname(sockets_[0], reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    for (int i = 0; i < 8; ++i) {
      sockets_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      [[maybe_unused]] const int begun =
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

TEST(HttpClientPool, ReusesAConnectionThatStaysOpen) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for(server.url());
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClientPool, OpensAnotherConnectionAfterConnectionClose) {
  ScriptedServer server(always(http_answer(200, "x", "Connection: close\r\n")));
  const auto client = client_for(server.url());
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 3);
}

TEST(HttpClientPool, NoticesThatThePeerClosedAnIdleConnection) {
  ScriptedServer server(once(http_answer(200, "x")));
  const auto client = client_for(server.url());
  for (int i = 1; i <= 3; ++i) {
    const Outcome answer = call(*client, post("not to be lost"));
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 0; }));
    EXPECT_EQ(server.connections(), i);
  }
}

TEST(HttpClientPool, DoesNotTakeAnUnaskedMessageForTheNextAnswer) {
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

TEST(HttpClientPool, DropsAConnectionWhoseAnswerIsFollowedByMore) {
  ScriptedServer server(always(http_answer(200, "a") + "surplus"));
  const auto client = client_for(server.url());
  ASSERT_TRUE(call(*client, get("/")));
  ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClientPool, ClosesAConnectionThatIsIdleTooLong) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for(server.url(), {.idle_timeout = 50ms});
  ASSERT_TRUE(call(*client, get("/")));
  EXPECT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 0; }));
  ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClientPool, NeverOpensMoreConnectionsThanItMay) {
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

TEST(HttpClientPool, ServesWaitingCallsInTheOrderTheyCame) {
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

TEST(HttpClientPool, AFailedCallFreesItsConnectionForTheNext) {
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

TEST(HttpClientPool, ARefusedConnectionIsUnavailable) {
  const std::string url = "http://127.0.0.1:" + std::to_string(test::closed_port());
  const auto client = client_for(url);
  const Outcome answer = call(*client, post("x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), (Error{ErrorCode::unavailable, "connect to " + url + ": Connection refused"}));
}

TEST(HttpClientPool, AnUnknownHostIsUnavailable) {
  const auto client = client_for("http://no-such-host.invalid:8000");
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message, StartsWith("look up the host of http://no-such-host.invalid:8000: "));
}

TEST(HttpClientPool, FindsAHostByName) {
  ScriptedServer server(always(http_answer(200, "x")));
  const auto client = client_for("http://localhost:" + std::to_string(server.port()));
  EXPECT_TRUE(call(*client, get("/")));
}

TEST(HttpClientPool, AConnectThatTakesTooLongIsUnavailable) {
  const DeafListener deaf;
  const auto client = client_for(deaf.url(), {.connect_timeout = 100ms});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(),
            (Error{ErrorCode::unavailable,
                   "connect to " + deaf.url() + ": not done within 100 ms (connect_timeout)"}));
}

TEST(HttpClientPool, TheTotalTimeoutCountsTheWaitForAConnection) {
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

TEST(HttpClientPool, ACallThatWaitsTooLongForAConnectionSaysSo) {
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

TEST(HttpClientPool, CancellingACallClosesItsConnectionAndFreesItsPlace) {
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

TEST(HttpClientPool, CancellingAWaitingCallLeavesTheQueueInOrder) {
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

TEST(HttpClientPool, CancellingWhileConnectingEndsTheCall) {
  const DeafListener deaf;
  const auto client = client_for(deaf.url(), {.connect_timeout = 30s});
  Cancellable connecting(client->send(get("/")));
  EXPECT_TRUE(connecting.cancel());
}

TEST(HttpClientPool, CallsInFlightFinishAfterTheClientIsGoneAndIdleConnectionsClose) {
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

TEST(HttpClientPool, ServesCallersOnManyThreads) {
  ScriptedServer server(always(http_answer(200, "x")));
  boost::asio::thread_pool loop(2);
  boost::asio::thread_pool callers(4);
  {
    HttpClient client(loop.get_executor(), *parse_origin(server.url()), {.max_connections = 5});
    std::vector<Started> calls;
    for (int i = 0; i < 300; ++i) {
      calls.push_back(
          boost::asio::co_spawn(callers, as_optional(client.send(get("/"))), boost::asio::use_future));
    }
    for (Started& one : calls)
      EXPECT_TRUE(one.get()->has_value());
  }
  EXPECT_EQ(server.requests().size(), 300U);
  EXPECT_LE(server.connections(), 5);
  callers.join();
  loop.join();
}

// The page of one visitor must not reach another because of who asked from where: answers name what was asked for.
TEST(HttpClientPool, OfOneLoopGivesCallersOnOtherThreadsTheirOwnAnswers) {
  ScriptedServer server([](Peer& peer) {
    while (const auto request = peer.read_request())
      peer.write(http_answer(200, request->substr(4, request->find(' ', 4) - 4)));
  });
  boost::asio::thread_pool callers(4);
  const auto client = client_for(server.url(), {.max_connections = 3, .one_thread = true});
  std::vector<Started> calls;
  for (int i = 0; i < 500; ++i) {
    calls.push_back(boost::asio::co_spawn(callers, as_optional(client->send(get("/" + std::to_string(i)))),
                                          boost::asio::use_future));
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto answer = calls[i].get();
    ASSERT_TRUE(answer && *answer);
    EXPECT_EQ((*answer)->body, "/" + std::to_string(i));
  }
  EXPECT_LE(server.connections(), 3);
  callers.join();
}

TEST(HttpClientPool, OfOneLoopCanBeLeftOnAnotherThread) {
  ScriptedServer server(always(http_answer(200, "x")));
  auto client = client_for(server.url(), {.one_thread = true});
  ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.open_connections(), 1);
  client.reset();
  EXPECT_TRUE(server.wait_until([](const ScriptedServer& s) { return s.open_connections() == 0; }));
}

// No more files and sockets can be opened than there are now.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Asio tells of it as if the call had been cancelled, and whoever waits for a call that was cancelled may wait for
// ever.
TEST(HttpClientPool, WithoutADescriptorACallHasFailedAndWasNotCancelled) {
  const auto client = client_for("http://127.0.0.1:9");  // The call fails before it asks that server.
  const NoMoreDescriptors none;
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("Too many open files"));
}

TEST(ConnectionDeathTest, EndsTheProgramWhenASecondExchangeTouchesIt) {
  Connection connection(executor(), nullptr);
  connection.lend(7);
  EXPECT_EQ(connection.buffered(7), "");
  EXPECT_DEATH(connection.lend(8), "touched by an exchange that does not have it");
  EXPECT_DEATH(connection.lend(7), "touched by an exchange that does not have it");
  EXPECT_DEATH((void)connection.buffered(8), "touched by an exchange that does not have it");
  EXPECT_DEATH(connection.take_back(8), "touched by an exchange that does not have it");
  connection.take_back(7);
  EXPECT_DEATH((void)connection.buffered(7), "touched by an exchange that does not have it");
  EXPECT_DEATH((void)connection.buffered(0), "touched by an exchange that does not have it");
  connection.lend(8);
}

// What it would do there is to change the list of those that wait while the loop does.
TEST(ConnectionPoolDeathTest, EndsTheProgramWhenAPlaceIsGivenBackOnAnotherThread) {
  const auto give_back_elsewhere = [] {
    boost::asio::io_context loop;
    const auto pool = std::make_shared<ConnectionPool>(
        loop.get_executor(), *parse_origin("http://127.0.0.1:9"), HttpClientOptions{.one_thread = true});
    std::optional<ConnectionPool::Slot> slot;
    const auto guard = boost::asio::make_work_guard(loop);
    boost::asio::post(loop, [&] { slot.emplace(pool, Moment::max()); });
    loop.run_one();
    slot.reset();
  };
  EXPECT_DEATH(give_back_elsewhere(), "a connection to an origin or a store was used on another thread");
}

TEST(HttpClientPool, CancellationFromManyThreadsLosesNoPlace) {
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

}  // namespace
}  // namespace facetheory
