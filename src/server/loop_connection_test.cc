// A connection belongs to one loop, whatever protocol it speaks.
#include "facetheory/server/loop_connection.h"

#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "facetheory/server/server_connection.h"
#include "facetheory/server/server_loop.h"

#include "tests/support/raw_client.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using testing::ElementsAre;

// It speaks a protocol that the server has never heard of.
class OtherConnection final : public LoopConnection {
 public:
  explicit OtherConnection(std::shared_ptr<ServerLoop> loop) : LoopConnection(std::move(loop)) {}
  void check_deadlines(Moment) override {}
  void close_if_idle() override {}
  void close() override {}
};

// The test runs the loop itself, so that whatever it does besides is done elsewhere.
class LoopConnectionTest : public testing::Test {
 protected:
  LoopConnectionTest() { loop_->limits = std::make_shared<const ClientLimits>(); }

  template <typename Action>
  void on_the_loop(Action action) {
    asio::post(context_, std::move(action));
    run();
  }
  void run() {
    context_.restart();
    context_.poll();
  }

  ExchangeHandler handler() {
    return [this](ServerExchange& exchange) -> Task<void> {
      exchange_ = &exchange;
      asio::steady_timer never(context_, asio::steady_timer::time_point::max());
      co_await never.async_wait(asio::use_awaitable);
    };
  }

  asio::io_context context_;
  const std::shared_ptr<AllLoops> all_ = std::make_shared<AllLoops>();
  const std::shared_ptr<ServerLoop> loop_ =
      std::make_shared<ServerLoop>(EventLoop{context_.get_executor(), handler()}, all_);
  ServerExchange* exchange_ = nullptr;  // Once a request is being answered.
};

TEST_F(LoopConnectionTest, IsCountedByItsLoopUntilItIsGone) {
  std::vector<std::unique_ptr<OtherConnection>> made;
  on_the_loop([&] {
    for (int i = 0; i < 3; ++i)
      made.push_back(std::make_unique<OtherConnection>(loop_));
  });
  EXPECT_EQ(all_->open, 3U);
  EXPECT_THAT(loop_->connections, ElementsAre(made[0].get(), made[1].get(), made[2].get()));
  made[0].reset();
  EXPECT_THAT(loop_->connections, ElementsAre(made[2].get(), made[1].get()));
  made[2].reset();
  EXPECT_THAT(loop_->connections, ElementsAre(made[1].get()));
  EXPECT_EQ(all_->open, 1U);
}

// A connection of HTTP/1.1 whose request is being answered.
class LoopConnectionDeathTest : public LoopConnectionTest {
 protected:
  static constexpr const char* kElsewhere = "a client's connection was used on another thread than its own";

  LoopConnectionDeathTest() {
    client_.send("POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\n");
    const int socket = ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    loop_->readiness = readiness_;
    readiness_->start();
    on_the_loop([&] {
      connection_ = std::make_shared<ServerConnection>(loop_, socket, tcp::endpoint(tcp::v4(), 0));
      connection_->start();
    });
    for (int i = 0; i < 1000 && exchange_ == nullptr; ++i) {
      context_.restart();
      context_.run_for(std::chrono::milliseconds(10));
    }
  }
  ~LoopConnectionDeathTest() override {
    on_the_loop([this] { connection_->close(); });
    readiness_->close();
    run();
  }

  template <typename T>
  static Task<void> ending_in_nothing(Task<T> task) {
    [[maybe_unused]] auto outcome = co_await std::move(task);
  }
  static Task<void> ending_in_nothing(Task<void> task) { return task; }

  // Begins it on another loop.
  template <typename T>
  static void begin_elsewhere(Task<T> task) {
    asio::io_context other;
    asio::co_spawn(other, ending_in_nothing(std::move(task)), asio::detached);
    other.poll();
  }

  tcp::acceptor listener_{context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  test::RawClient client_{listener_.local_endpoint().port()};
  const std::shared_ptr<Readiness> readiness_ = *Readiness::create(loop_->bound);
  std::shared_ptr<ServerConnection> connection_;
};

TEST_F(LoopConnectionDeathTest, EndsTheProgramWhenItIsMadeElsewhere) {
  EXPECT_DEATH(std::make_unique<OtherConnection>(loop_), kElsewhere);
}

TEST_F(LoopConnectionDeathTest, EndsTheProgramWhenItIsToldOrClosedElsewhere) {
  ASSERT_NE(exchange_, nullptr);
  EXPECT_DEATH(connection_->on_change({.readable = true}), kElsewhere);
  EXPECT_DEATH(connection_->close(), kElsewhere);
}

TEST_F(LoopConnectionDeathTest, EndsTheProgramWhenItsRequestIsReadElsewhere) {
  ASSERT_NE(exchange_, nullptr);
  EXPECT_DEATH(begin_elsewhere(exchange_->read()), kElsewhere);
}

TEST_F(LoopConnectionDeathTest, EndsTheProgramWhenItsRequestIsAnsweredElsewhere) {
  ASSERT_NE(exchange_, nullptr);
  EXPECT_DEATH(begin_elsewhere(exchange_->respond(plain_response(200, "x"))), kElsewhere);
}

TEST_F(LoopConnectionDeathTest, EndsTheProgramWhenItsClientIsWatchedElsewhere) {
  ASSERT_NE(exchange_, nullptr);
  EXPECT_DEATH(begin_elsewhere(exchange_->client_left()), kElsewhere);
  EXPECT_DEATH((void)exchange_->probably_left(), kElsewhere);
}

}  // namespace
}  // namespace facetheory
