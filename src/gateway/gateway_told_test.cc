// What the access log and the metrics tell of requests that came to nothing, or to half an answer; through a whole
// gateway, in real time.
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/gateway_bed.h"
#include "tests/support/http_calls.h"
#include "tests/support/scripted_server.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::http_answer;
using test::Peer;
using test::RawClient;
using test::read_reply;
using test::Reply;
using test::ScriptedServer;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class GatewayTold : public testing::Test {
 protected:
  ~GatewayTold() override {
    service_.reset();
    ::close(log_);
  }

  void start(ScriptedServer::Script script, const std::string& lines = "") {
    origin_ = std::make_unique<ScriptedServer>(std::move(script));
    Config config = test::bed_config(origin_->port(), lines);
    config.access_log = AccessLog::text;
    config.admin = ListenAddress{"127.0.0.1", 0};
    ServiceOptions options;
    options.access_log = log_;
    auto started = Service::start(std::move(config), std::move(options));
    if (!started) throw std::runtime_error(started.error().message);
    service_ = *std::move(started);
  }
  std::uint16_t port() const { return service_->listening().front().port; }

  // The line of the access log with that text in it; empty: there was none within ten seconds.
  std::string line_with(const std::string& text) const {
    for (int i = 0; i < 1000; ++i) {
      std::ifstream log(path_);
      for (std::string line; std::getline(log, line);) {
        if (!log.eof() && line.find(text) != std::string::npos) return line;
      }
      std::this_thread::sleep_for(10ms);
    }
    return {};
  }
  std::string metrics() const {
    RawClient client(service_->admin()->port);
    client.send("GET /metrics HTTP/1.0\r\n\r\n");
    return client.rest();
  }
  std::string exchange(const std::string& request) const {
    RawClient client(port());
    client.send(request);
    return client.rest();
  }

  const test::TemporaryDirectory folder_;
  const std::string path_ = (folder_.path() / "access.log").string();
  const int log_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  test::Gate gate_;
  std::unique_ptr<ScriptedServer> origin_;
  std::unique_ptr<Service> service_;
};

void answer_all(Peer& peer) {
  while (peer.read_request())
    peer.write(http_answer(200, "page"));
}

TEST_F(GatewayTold, WhatIsRefusedBeforeItHasARouteIsNamedAndSaidToBeRefused) {
  start(answer_all, "[limits]\nheader_bytes = \"1 KiB\"\nbody_bytes = 100\nheader_timeout = \"100ms\"\n");
  const struct {
    std::string sent;
    int status;
    std::string told;
  } cases[] = {
      {"GET /hosts HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400, " GET - /hosts 400 "},
      {"GET /fields HTTP/1.1\r\nHost: x\r\nX: " + std::string(2000, 'x'), 431, " GET - /fields 431 "},
      {"POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", 413, " POST - /large 413 "},
      {"GET /late HTTP/1.1\r\nHo", 408, " GET - /late 408 "},
      {"\x16\x03\x01", 400, " - - - 400 "},
  };
  for (const auto& refused : cases) {
    RawClient client(port());
    client.send(refused.sent);
    const Reply reply = read_reply(client);
    EXPECT_EQ(reply.status, refused.status) << refused.told;
    EXPECT_EQ(reply.state(), "refused") << refused.told;
    EXPECT_EQ(reply.field("cache-control"), "no-store") << refused.told;
    const std::string line = line_with(refused.told + std::to_string(reply.body.size()) + " ");
    EXPECT_THAT(line, HasSubstr(" refused detail=")) << refused.told;
  }
  EXPECT_THAT(metrics(), HasSubstr("facetheory_requests_total{state=\"refused\"} 5\n"));
}

TEST_F(GatewayTold, AnAnswerThatCameAndCannotBeUsedIsNotCalledNone) {
  const struct {
    std::string answer, told, logged;
  } cases[] = {
      {"", "the origin gave no answer", "closed before any of it came"},
      {"SSH-2.0-OpenSSH_9.2\r\n", "the origin's answer was malformed: no HTTP version where one is expected",
       "no HTTP version where one is expected"},
      {"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", "the origin's answer was malformed: space before a field's colon",
       "space before a field's colon"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
       "the origin's answer was malformed: ", "Content-Length"},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n",
       "the origin's answer was malformed: its head is larger than allowed", "max_response_header_bytes"},
      {"HTTP/1.1 304 Not Modified\r\n\r\n",
       "the origin's answer was malformed: 304 to a request without a condition", "304 to a request"},
  };
  start([&](Peer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    const std::size_t at = request->find(" /") + 2;
    peer.write(cases[std::stoul(request->substr(at))].answer);
  });
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    for (const char* method : {"GET", "POST"}) {  // A render, and what is passed on.
      const std::string target = "/" + std::to_string(i) + "/" + method;
      RawClient client(port());
      client.send(std::string(method) + " " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
      const Reply reply = read_reply(client);
      EXPECT_EQ(reply.status, 502) << target;
      EXPECT_THAT(reply.body, StartsWith(cases[i].told)) << target;
      EXPECT_THAT(reply.body, Not(HasSubstr("127.0.0.1"))) << target;
      EXPECT_THAT(line_with(" " + target + " 502 "), HasSubstr(cases[i].logged)) << target;
    }
  }
}

TEST_F(GatewayTold, ARenderedPageThatIsNotWholeIsNotCalledNone) {
  start([](Peer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    const bool chunked = request->starts_with("GET /chunks ");
    peer.write(chunked ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n"
                       : "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  });
  const auto told = [&](const std::string& target) {
    RawClient client(port());
    client.send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n");
    return read_reply(client).body;
  };
  EXPECT_THAT(told("/chunks"), StartsWith("the origin's answer was malformed: "));
  EXPECT_THAT(told("/half"), StartsWith("the origin's answer broke off"));
}

// Sends the first half at once, and then does as told.
ScriptedServer::Script half_and(std::function<void(Peer&)> rest) {
  return [rest = std::move(rest)](Peer& peer) {
    if (!peer.read_request()) return;
    peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 22\r\n\r\nfirst half");
    rest(peer);
  };
}

const std::string kPage = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string kPassed = "GET /passed HTTP/1.1\r\nHost: x\r\nCookie: session=1\r\n\r\n";

TEST_F(GatewayTold, AnAnswerThatTheOriginBreaksOffIsSaidToBeCutOffByIt) {
  start(half_and(
      [](Peer&) { std::this_thread::sleep_for(100ms); }));  // Longer than a whole page is waited for.
  const struct {
    std::string asked, told;
  } cases[] = {{kPage, " /page 200 10 "}, {kPassed, " /passed 200 10 "}};
  for (const auto& one : cases) {
    EXPECT_THAT(exchange(one.asked), EndsWith("first half"));
    EXPECT_THAT(line_with(one.told), HasSubstr(" detail=\"cut off by the origin: "));
    EXPECT_THAT(line_with(one.told), HasSubstr("the connection was closed in the middle of it"));
  }
  EXPECT_THAT(line_with(cases[0].told), HasSubstr("ms miss "));
  EXPECT_THAT(line_with(cases[1].told), HasSubstr("ms pass "));
  EXPECT_THAT(metrics(), HasSubstr("facetheory_responses_cut_off_total{by=\"origin\"} 2\n"));
  EXPECT_THAT(metrics(),
              HasSubstr("facetheory_origin_requests_total{origin=\"default\",code=\"error\"} 2\n"));
}

TEST_F(GatewayTold, AnAnswerThatTheClientLeavesIsSaidToBeCutOffByIt) {
  start(half_and([this](Peer&) { gate_.wait(); }));
  for (const std::string& asked : {kPage, kPassed}) {
    RawClient client(port());
    client.send(asked);
    client.until("first half");
    client.reset();
  }
  EXPECT_THAT(line_with(" /page 200 10 "), HasSubstr(" detail=\"cut off by the client: "));
  EXPECT_THAT(line_with(" /passed 200 10 "), HasSubstr(" detail=\"cut off by the client: "));
  EXPECT_THAT(metrics(), HasSubstr("facetheory_responses_cut_off_total{by=\"client\"} 2\n"));
  gate_.open();
}

TEST_F(GatewayTold, AnAnswerThatTheEndOfTheGatewayBreaksOffIsSaidToBeCutOffByIt) {
  start(half_and([this](Peer&) { gate_.wait(); }), "[limits]\ndrain_timeout = \"100ms\"\n");
  RawClient page(port());
  RawClient passed(port());
  page.send(kPage);
  passed.send(kPassed);
  page.until("first half");
  passed.until("first half");
  EXPECT_EQ(service_->stop().connections_cut, 2U);
  const char* const why = " detail=\"cut off by the gateway: limits.drain_timeout was over";
  EXPECT_THAT(line_with(" /page 200 10 "), HasSubstr(why));
  EXPECT_THAT(line_with(" /passed 200 10 "), HasSubstr(why));
  gate_.open();
}

TEST_F(GatewayTold, AClientThatIsLetGoSinceItReadsSlowlyIsSaidToBeCutOffByTheGateway) {
  const std::string large(std::size_t{15} << 20, 'x');
  start(
      [&large](Peer& peer) {
        while (peer.read_request()) {
          peer.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 15728640\r\n\r\n");
          std::this_thread::sleep_for(100ms);
          peer.write(large);
        }
      },
      "memory = \"64 MiB\"\n");  // The limit is what one page may have: 16 MiB.
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  EXPECT_THAT(line_with("cut off by the gateway: the client read too slowly"), HasSubstr("ms miss "));
  EXPECT_THAT(metrics(), HasSubstr("facetheory_responses_cut_off_total{by=\"client\"} 0\n"));
}

TEST_F(GatewayTold, ARequestThatBreaksWhileItIsPassedOnIsRefused) {
  start([](Peer& peer) { peer.wait_for_close(); });
  RawClient client(port());
  client.send("POST /broken HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n");
  const Reply reply = read_reply(client);
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.state(), "refused");
  EXPECT_EQ(reply.field("cache-control"), "no-store");
  EXPECT_THAT(line_with(" POST x /broken 400 "), HasSubstr(" refused "));
}

TEST_F(GatewayTold, ARequestThatBreaksAfterItsAnswerHasBegunCutsTheAnswerOff) {
  start([](Peer& peer) {
    peer.read(10);
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\nfirst half");
    peer.wait_for_close();
  });
  RawClient client(port());
  client.send("POST /broken HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.until("first half");
  client.send("no size\r\n");
  EXPECT_EQ(client.rest(), "");
  EXPECT_THAT(line_with(" POST x /broken 200 10 "), HasSubstr(" detail=\"cut off by the client: "));
}

TEST_F(GatewayTold, WhatIsWholeIsNotSaidToBeCutOff) {
  start(answer_all);
  for (const std::string& asked : {kPage, kPage, kPassed}) {
    RawClient client(port());
    client.send(asked);
    EXPECT_EQ(read_reply(client).body, "page");
  }
  RawClient head(port());
  head.send("HEAD /not-stored HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(read_reply(head, "HEAD").status, 200);
  EXPECT_THAT(line_with("ms miss "), Not(HasSubstr("detail")));
  EXPECT_THAT(line_with("ms hit "), Not(HasSubstr("detail")));
  EXPECT_THAT(line_with(" /passed 200 4 "), Not(HasSubstr("cut off")));
  EXPECT_THAT(line_with("HEAD x /not-stored 200 0 "), Not(HasSubstr("cut off")));
  for (const char* by : {"origin", "client", "gateway"})
    EXPECT_THAT(metrics(),
                HasSubstr("facetheory_responses_cut_off_total{by=\"" + std::string(by) + "\"} 0\n"));
}

// A client that has only ended its own side may still read, and gets its page.
TEST_F(GatewayTold, WhoBreaksItsConnectionWaitsForNothingAndWhoEndsItsOwnSideStillDoes) {
  start([this](Peer& peer) {
    while (peer.read_request()) {
      gate_.wait();
      peer.write(http_answer(200, "page"));
    }
  });
  const auto waiters_become = [this](std::size_t count) {
    for (int i = 0; i < 500 && service_->gauges().waiters != count; ++i)
      std::this_thread::sleep_for(10ms);
    return service_->gauges().waiters == count;
  };
  RawClient breaking(port());
  RawClient ending(port());
  breaking.send(kPage);
  ending.send(kPage);
  EXPECT_TRUE(waiters_become(2));
  ending.shut_down_sending();
  breaking.reset();
  EXPECT_TRUE(waiters_become(1));
  EXPECT_THAT(line_with(" /page 0 0 "), HasSubstr(" other "));
  std::this_thread::sleep_for(1s);  // Longer than it takes to find out who has left.
  EXPECT_EQ(service_->gauges().waiters, 1U);
  gate_.open();
  EXPECT_EQ(read_reply(ending).body, "page");
  EXPECT_EQ(origin_->requests().size(), 1U);
}

}  // namespace
}  // namespace facetheory
