#include "facetheory/service/admin.h"

#include <atomic>
#include <stdexcept>

#include <boost/asio/awaitable.hpp>
#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/http/server_request.h"
#include "facetheory/server/server_exchange.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using test::run;
using testing::HasSubstr;
using testing::Optional;

class AdminTest : public testing::Test {
 protected:
  AdminParts parts() {
    return {.metrics = [] { return std::string("m 1\n"); },
            .checks = {{"table", [this] { return check(table_); }},
                       {"bodies", [this] { return check(bodies_); }}},
            .draining = [this] { return draining_.load(); },
            .clock = &clock_};
  }
  static Task<Result<void>> check(Result<void> result) { co_return result; }

  static ServerRequest request_for(std::string method, std::string target) {
    ServerRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    return request;
  }
  ServerResponse ask(std::string method, std::string target) {
    return run(handler_(request_for(std::move(method), std::move(target))));
  }
  // Names and errors of what /readyz complains about: "table: unavailable: gone".
  std::vector<std::string> complaints() {
    const ServerResponse response = ask("GET", "/readyz");
    EXPECT_EQ(response.status, 503);
    EXPECT_THAT(response.headers.get("content-type"), Optional(std::string_view("application/json")));
    std::vector<std::string> all;
    const boost::json::value list = boost::json::parse(response.body);
    for (const boost::json::value& entry : list.as_array())
      all.push_back(std::string(entry.at("name").as_string()) + ": " +
                    std::string(entry.at("error").as_string()));
    return all;
  }

  test::ManualClock clock_;
  Result<void> table_;
  Result<void> bodies_;
  std::atomic<bool> draining_ = false;
  RequestHandler handler_ = admin_handler(parts());
};

TEST_F(AdminTest, ShowsTheMetricsAsPrometheusWantsThem) {
  const ServerResponse response = ask("GET", "/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "m 1\n");
  EXPECT_FALSE(response.body_omitted);
  EXPECT_THAT(response.headers.get("content-type"),
              Optional(std::string_view("text/plain; version=0.0.4; charset=utf-8")));
  EXPECT_THAT(response.headers.get("cache-control"), Optional(std::string_view("no-store")));
}

TEST_F(AdminTest, IsAliveWhateverIsWrong) {
  table_ = Error{ErrorCode::unavailable, "gone"};
  draining_ = true;
  const ServerResponse response = ask("GET", "/livez");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok\n");
}

TEST_F(AdminTest, IsReadyWhenAllIsWell) {
  const ServerResponse response = ask("GET", "/readyz");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok\n");
}

TEST_F(AdminTest, SaysWhatIsNotReadyAndWhy) {
  bodies_ = Error{ErrorCode::exhausted, "the disk is \"full\" \xff"};
  EXPECT_THAT(complaints(), testing::ElementsAre("bodies: exhausted: the disk is \"full\" \xef\xbf\xbd"));
  table_ = Error{ErrorCode::unavailable, "gone"};
  draining_ = true;
  EXPECT_THAT(complaints(), testing::ElementsAre("table: unavailable: gone", HasSubstr("bodies: exhausted"),
                                                 HasSubstr("draining: ")));
  table_ = bodies_ = {};
  EXPECT_THAT(complaints(), testing::ElementsAre(HasSubstr("draining: ")));
  draining_ = false;
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
}

TEST_F(AdminTest, ACheckThatThrowsIsNotReady) {
  AdminParts broken = parts();
  broken.checks[0].check = []() -> Task<Result<void>> {
    throw std::runtime_error("surprise");
    co_return Result<void>();
  };
  handler_ = admin_handler(std::move(broken));
  EXPECT_THAT(complaints(), testing::ElementsAre("table: internal: surprise"));
  EXPECT_THAT(complaints(), testing::ElementsAre("table: internal: surprise"));
}

TEST_F(AdminTest, ACheckThatHangsIsNotReadyAndIsNotBegunAgain) {
  std::atomic<int> begun = 0;
  AdminParts slow = parts();
  slow.checks[0].check = [&]() -> Task<Result<void>> {
    ++begun;
    co_await clock_.sleep_for(std::chrono::hours(1));
    co_return Result<void>();
  };
  handler_ = admin_handler(std::move(slow));
  for (int probe = 1; probe <= 2; ++probe) {
    std::optional<ServerResponse> response;
    auto asked = test::start(test::store(handler_(request_for("GET", "/readyz")), response));
    ASSERT_TRUE(clock_.wait_for_sleepers(2));  // The check, and the one who waits for it.
    clock_.advance(std::chrono::milliseconds(800));
    asked.get();
    EXPECT_EQ(response->status, 503);
    EXPECT_EQ(response->body, "[{\"name\":\"table\",\"error\":\"unavailable: no answer within 800 ms\"}]\n");
    EXPECT_EQ(begun, 1);
  }
  // Once it has ended there is a new one.
  clock_.advance_on_sleep();
  clock_.advance(std::chrono::hours(1));
  int status = 503;
  for (int i = 0; i < 1000 && (begun == 1 || status != 200); ++i)
    status = ask("GET", "/readyz").status;
  EXPECT_EQ(status, 200);
  EXPECT_GE(begun, 2);
}

TEST_F(AdminTest, HeadIsLikeGetWithoutABody) {
  for (const char* target : {"/", "/metrics", "/livez", "/readyz"}) {
    const ServerResponse get = ask("GET", target);
    const ServerResponse head = ask("HEAD", target);
    EXPECT_TRUE(head.body_omitted) << target;
    EXPECT_EQ(head.body, get.body) << target;
    EXPECT_EQ(head.headers, get.headers) << target;
  }
}

TEST_F(AdminTest, AnswersToNoNameButItsOwn) {
  AdminParts named = parts();
  named.hosts = {"ops.example.com", "*.internal.example"};
  handler_ = admin_handler(std::move(named));
  const auto status_for = [&](std::string host) {
    ServerRequest request = request_for("GET", "/metrics");
    request.headers.add("Host", std::move(host));
    return run(handler_(std::move(request))).status;
  };
  for (const char* own : {"127.0.0.1", "127.0.0.1:9080", "10.1.2.3:9080", "[::1]:9080", "[fd00::1]",
                          "localhost", "LOCALHOST:9080", "localhost.", "gateway.localhost", "ops.example.com",
                          "OPS.example.com:80", "a.internal.example", "a.b.internal.example", ""})
    EXPECT_EQ(status_for(own), 200) << own;
  for (const char* other : {"evil.example", "evil.example:9080", "127.0.0.1.evil.example", "127.0.0.1.nip.io",
                            "localhost.evil.example", "notlocalhost", "internal.example",
                            "evilinternal.example", "a.ops.example.com", "0x7f.1", "2130706433", "[::1"})
    EXPECT_EQ(status_for(other), 421) << other;
  ServerRequest rebound = request_for("GET", "/readyz");
  rebound.headers.add("Host", "evil.example");
  EXPECT_THAT(std::string(run(handler_(std::move(rebound))).body), HasSubstr("admin_hosts"));
}

TEST_F(AdminTest, ListsWhatThereIs) {
  EXPECT_THAT(std::string(ask("GET", "/").body), HasSubstr("/metrics"));
  EXPECT_EQ(ask("GET", "/metrics?name[]=x").body, "m 1\n");
}

TEST_F(AdminTest, RefusesOtherMethodsAndOtherPaths) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get"}) {
    const ServerResponse response = ask(method, "/metrics");
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_THAT(response.headers.get("allow"), Optional(std::string_view("GET, HEAD")));
  }
  for (const char* target : {"/other", "", "*", "/metrics/", "//metrics", "http://x/metrics"})
    EXPECT_EQ(ask("GET", target).status, 404) << target;
  EXPECT_EQ(ask("POST", "/other").status, 404);
}

}  // namespace
}  // namespace facetheory
