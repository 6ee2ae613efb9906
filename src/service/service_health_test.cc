// What /readyz says of a whole gateway in which something hangs that no limit of a store or an origin can end.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/event.h"
#include "facetheory/table/forwarding_table.h"

#include "tests/support/gateway_bed.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::RawClient;
using test::Reply;
using testing::HasSubstr;

// How the next read of a page's row goes wrong.
struct Hang {
  std::atomic<bool> armed = false;
  // The thread itself waits.
  bool of_the_thread = false;
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  // The reader alone waits, whoever cancels it.
  Event event;
};

class HangingTable final : public ForwardingTable {
 public:
  HangingTable(std::shared_ptr<Table> inner, Hang& hang) : ForwardingTable(std::move(inner)), hang_(hang) {}

 protected:
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override {
    const bool hangs = hang_.of_the_thread || consistency == Consistency::strong;
    if (hangs && hang_.armed.exchange(false)) {
      if (hang_.of_the_thread) {
        hang_.opened.wait();
      } else {
        co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
        co_await hang_.event.wait(system_clock(), 60s);
      }
    }
    co_return co_await ForwardingTable::do_get_all(std::move(keys), consistency);
  }

 private:
  Hang& hang_;
};

class ServiceHealth : public testing::Test {
 protected:
  ~ServiceHealth() override { open(); }

  void start(bool hang_the_thread) {
    hang_.of_the_thread = hang_the_thread;
    Config config = test::bed_config(origin_.port(), "");
    config.admin = ListenAddress{"127.0.0.1", 0};
    ServiceOptions options{.clock = clock_};
    options.wrap_table = [this](std::unique_ptr<Table> table) {
      return std::make_unique<HangingTable>(std::move(table), hang_);
    };
    auto started = Service::start(std::move(config), std::move(options));
    ASSERT_TRUE(started);
    service_ = *std::move(started);
    hang_.armed = true;
  }
  void open() {
    if (std::exchange(opened_, true)) return;
    hang_.event.set();
    hang_.gate.set_value();
  }
  Reply readyz() const {
    RawClient client(service_->admin()->port);
    client.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return test::read_reply(client);
  }
  // Moves the clock in steps until /readyz has that status, while the watchdog checks in real time.
  Reply readyz_when(int status, Duration step) {
    Reply reply;
    for (int i = 0; i < 200; ++i) {
      reply = readyz();
      if (reply.status == status) break;
      clock_.advance(step);
      std::this_thread::sleep_for(50ms);
    }
    return reply;
  }

  test::ManualClock clock_;
  test::TestOrigin origin_;
  Hang hang_;
  std::unique_ptr<Service> service_;
  bool opened_ = false;
};

TEST_F(ServiceHealth, AnEventLoopThatHasStoppedIsNotReady) {
  start(true);
  EXPECT_EQ(readyz().status, 200);
  RawClient visitor(service_->listening().front().port);
  visitor.send("GET /page HTTP/1.1\r\nHost: site.test\r\n\r\n");
  const Reply stopped = readyz_when(503, 1s);
  EXPECT_EQ(stopped.status, 503);
  EXPECT_THAT(stopped.body, HasSubstr(R"("name":"loops")"));
  EXPECT_THAT(stopped.body, HasSubstr("has stopped"));
  open();
  EXPECT_EQ(test::read_reply(visitor).status, 200);
  EXPECT_EQ(readyz_when(200, 0s).status, 200);
}

TEST_F(ServiceHealth, ARenderThatHangsBeyondAllLimitsIsNotReady) {
  start(false);
  RawClient visitor(service_->listening().front().port);
  visitor.send("GET /page HTTP/1.1\r\nHost: site.test\r\n\r\n");
  while (hang_.armed)
    std::this_thread::sleep_for(1ms);
  const Reply hanging = readyz_when(503, 10s);
  EXPECT_EQ(hanging.status, 503);
  EXPECT_THAT(hanging.body, HasSubstr(R"("name":"renders")"));
  EXPECT_THAT(hanging.body, HasSubstr("has hung for"));
  open();
  EXPECT_EQ(readyz_when(200, 0s).status, 200);
}

}  // namespace
}  // namespace facetheory
