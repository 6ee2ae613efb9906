// Whose page a visitor gets while a store is away, several event loops answer, and everybody asks at once; through a
// whole gateway. tools/trial does the same with more of everything.
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "facetheory/bodies/faulty_bodies.h"
#include "facetheory/http/server_request.h"
#include "facetheory/table/faulty_table.h"

#include "tests/support/gateway_bed.h"

namespace facetheory {
namespace {

using test::RawClient;
using test::Reply;
using test::TestOrigin;

constexpr int kVisitors = 12;
constexpr int kPagesOfAVisitor = 40;

std::shared_ptr<FaultScript> always_failing() {
  auto script = std::make_shared<FaultScript>();
  script->chance(Fault::fail, 1.0);
  return script;
}

struct Answers {
  std::atomic<int> right = 0;
  std::atomic<int> refused = 0;  // 503: too many at once.
  std::atomic<int> wrong = 0;
};

// Asks for pages that nobody has asked for.
void visit(std::uint16_t port, int visitor, Answers& answers) {
  RawClient client(port);
  for (int i = 0; i < kPagesOfAVisitor && answers.wrong == 0; ++i) {
    const std::string target = "/of-" + std::to_string(visitor) + "/" + std::to_string(i);
    client.send("GET " + target + " HTTP/1.1\r\nHost: site.test\r\n\r\n");
    const Reply reply = read_reply(client);
    if (reply.status == 503) {
      ++answers.refused;
    } else if (reply.status == 200 && reply.body.starts_with(target + " ")) {
      ++answers.right;
    } else {
      ++answers.wrong;
      ADD_FAILURE() << target << " was answered " << reply.status << " with " << reply.body;
    }
  }
}

// In real time: what waits for a store or for its turn must go on by itself.
void expect_own_pages(ServiceOptions options) {
  const TestOrigin origin;
  const auto service = Service::start(test::bed_config(origin.port(), ""), std::move(options));
  ASSERT_TRUE(service);
  const std::uint16_t port = (*service)->listening().front().port;
  Answers answers;
  std::vector<std::thread> visitors;
  for (int i = 0; i < kVisitors; ++i)
    visitors.emplace_back([&, i] { visit(port, i, answers); });
  for (std::thread& visitor : visitors)
    visitor.join();
  EXPECT_EQ(answers.wrong, 0);
  EXPECT_GT(answers.right, kVisitors * kPagesOfAVisitor / 2);
}

TEST(GatewayOutages, EveryVisitorGetsTheirOwnPageWhileTheTableIsAway) {
  ServiceOptions options;
  options.wrap_table = [](std::unique_ptr<Table> table) {
    return std::make_unique<FaultyTable>(std::move(table), always_failing());
  };
  expect_own_pages(std::move(options));
}

TEST(GatewayOutages, AVisitorGetsTheirOwnVariantWhileTheTableIsAway) {
  ServiceOptions options;
  options.wrap_table = [](std::unique_ptr<Table> table) {
    return std::make_unique<FaultyTable>(std::move(table), always_failing());
  };
  test::GatewayBed bed("", std::move(options));
  bed.origin.answer("/a", [](const ServerRequest& request) {
    return test::answer_of(200, {{"Vary", "Accept-Language"}},
                           std::string(request.headers.get("accept-language").value_or("none")));
  });
  const Reply reply = bed.get("/a", {{"Accept-Language", "de"}});
  EXPECT_EQ(reply.body, "de");
  EXPECT_EQ(reply.field("x-facetheory-variant"), "");
}

// Its render was interrupted, and has no turn until the visitor has lost patience.
TEST(GatewayOutages, AVisitorWhoseRenderLostItsLeaseIsNotToldThatTheOriginGaveNoAnswer) {
  test::GatewayBed bed(
      "[limits]\nrenders = 1\n[defaults]\nwait_limit = \"60s\"\n[[routes]]\npattern = \"/a\"\nlease = "
      "\"2s\"\n[[routes]]\npattern = \"/b\"\nlease = \"1h\"\n");
  bed.origin.hold("/a");
  bed.origin.hold("/b");
  auto waiting = std::async(std::launch::async, [&] { return bed.get("/a"); });
  ASSERT_TRUE(bed.origin.wait_for("/a", 1));
  auto other = std::async(std::launch::async, [&] { return bed.get("/b"); });
  const auto one_is_queued = [&] {
    for (int i = 0; i < 2000 && bed.service->gauges().queued_renders != 1; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return bed.service->gauges().queued_renders == 1;
  };
  EXPECT_TRUE(one_is_queued());
  bed.clock.advance(std::chrono::seconds(3));
  EXPECT_TRUE(bed.origin.wait_for("/b", 1));
  EXPECT_TRUE(one_is_queued());
  bed.clock.advance(std::chrono::seconds(60));
  const Reply reply = waiting.get();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.body, "this page cannot be made at the moment\n");
  EXPECT_NE(reply.field("retry-after"), "");
  bed.origin.let_go("/a");
  bed.origin.let_go("/b");
  other.wait();
}

TEST(GatewayOutages, EveryVisitorGetsTheirOwnPageWhileNoBodyCanBeStored) {
  ServiceOptions options;
  options.wrap_bodies = [](std::unique_ptr<BodyStore> bodies) {
    return std::make_unique<FaultyBodies>(std::move(bodies), always_failing());
  };
  expect_own_pages(std::move(options));
}

}  // namespace
}  // namespace facetheory
