// What was lent must come as it was, however late it is read, and nothing of it may come to somebody else.
#include "facetheory/server/lending_pipe.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "facetheory/base/fixed_bytes.h"

#include "tests/support/raw_client.h"

namespace facetheory {
namespace {

// Two ends of a connection; the server's does not wait.
class Connection {
 public:
  Connection() { ::close(listener_); }
  ~Connection() { end(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // All that comes until the server's end is closed.
  std::string rest() {
    end();
    return client_.rest();
  }

 private:
  static int listening() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    return listener;
  }
  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
  }
  void end() {
    if (server >= 0) ::close(server);
    server = -1;
  }

  const int listener_ = listening();
  test::RawClient client_{port()};

 public:
  int server = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
};

std::string text(std::size_t size, std::size_t seed = 0) {
  std::string made(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    made[i] = static_cast<char>('a' + (i * 7 + i / 4096 + seed) % 26);
  return made;
}

// Leaves so many of the descriptors that a process may open, as long as this lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(int count) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = ::dup(0);
    ::close(next);
    const rlimit few{static_cast<rlim_t>(next + count), before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

class LendingPipeTest : public testing::Test {
 protected:
  void fill_one_socket_and_send_by_another();

  FixedMemory memory_{64 << 20};
  LendingPipe pipe_;
};

TEST_F(LendingPipeTest, SendsHeadAndBody) {
  const auto body = memory_.copy_of(text(100'001));
  Connection connection;
  ASSERT_EQ(pipe_.take("head, ", "added, ", body->bytes()), 13U + 100'001);
  EXPECT_EQ(pipe_.pass_on(connection.server), 13 + 100'001);
  EXPECT_EQ(connection.rest(), "head, added, " + text(100'001));
}

TEST_F(LendingPipeTest, SendsABodyFromAnywhereInItsMiddle) {
  const auto body = memory_.copy_of(text(100'001));
  Connection connection;
  ASSERT_EQ(pipe_.take("", "", body->bytes().substr(12'345)), 100'001U - 12'345);
  EXPECT_EQ(pipe_.pass_on(connection.server), 100'001 - 12'345);
  EXPECT_EQ(connection.rest(), text(100'001).substr(12'345));
}

// Pages are lent, not copied: those of another body must not come to lie in the same place too soon, nor other heads.
TEST_F(LendingPipeTest, WhatIsReadLateIsWhatWasSent) {
  constexpr std::size_t kSize = 5'000;
  Connection connection;
  std::string expected;
  for (std::size_t i = 0; i < 100; ++i) {
    const std::string head = text(2'000, 3 * i);  // The first are given up for new ones on the way.
    const auto body = memory_.copy_of(text(kSize, i));
    ASSERT_EQ(pipe_.take(head, "", body->bytes()), head.size() + kSize);
    ASSERT_EQ(pipe_.pass_on(connection.server), static_cast<ssize_t>(head.size() + kSize));
    expected += head + text(kSize, i);
  }
  EXPECT_EQ(connection.rest() == expected, true);
}

// The head of a body's last answer is not copied again when it is the same.
TEST_F(LendingPipeTest, EachAnswerHasItsOwnHead) {
  const auto body = memory_.copy_of("body");
  const auto other = memory_.copy_of("other");
  Connection connection;
  std::string expected;
  for (int i = 0; i < 2'000; ++i) {
    const std::string head = std::string(100, 'h') + std::to_string(i / 3) + ", ";
    const std::string added = i % 5 == 4 ? "added, " : "";
    const std::string_view sent = i % 7 == 6 ? other->bytes() : body->bytes();
    ASSERT_GT(pipe_.take(head, added, sent), 0U);
    ASSERT_GT(pipe_.pass_on(connection.server), 0);
    expected += head + added + std::string(sent);
  }
  EXPECT_EQ(connection.rest(), expected);
}

void LendingPipeTest::fill_one_socket_and_send_by_another() {
  const auto large = memory_.copy_of(text(16 << 20));
  const auto small = memory_.copy_of("small");
  Connection slow;
  std::size_t sent = 0;
  for (;;) {
    ASSERT_GT(pipe_.take("", "", large->bytes().substr(sent)), 0U);
    const ssize_t count = pipe_.pass_on(slow.server);
    if (count < 0) break;
    sent += static_cast<std::size_t>(count);
    ASSERT_LT(sent, large->bytes().size());
  }
  EXPECT_EQ(errno, EAGAIN);
  Connection other;
  ASSERT_EQ(pipe_.take("a ", "", small->bytes()), 7U);
  EXPECT_EQ(pipe_.pass_on(other.server), 7);
  EXPECT_EQ(other.rest(), "a small");
  EXPECT_EQ(slow.rest() == large->bytes().substr(0, sent), true);
}

TEST_F(LendingPipeTest, WhatASocketDoesNotTakeComesToNobodyElse) {
  fill_one_socket_and_send_by_another();
}

TEST_F(LendingPipeTest, NorDoesItWhereThereIsNowhereToDropIt) {
  {
    const FewDescriptors few(2);
    ASSERT_GT(pipe_.take("", "", memory_.copy_of("a")->bytes()), 0U);
  }
  Connection connection;
  EXPECT_EQ(pipe_.pass_on(connection.server), 1);
  fill_one_socket_and_send_by_another();
}

TEST_F(LendingPipeTest, AConnectionThatIsBrokenIsAnError) {
  const auto body = memory_.copy_of(text(100'000));
  Connection connection;
  ::shutdown(connection.server, SHUT_WR);
  const auto before = std::signal(SIGPIPE, SIG_IGN);  // Serving threads block it.
  ASSERT_GT(pipe_.take("head", "", body->bytes()), 0U);
  EXPECT_EQ(pipe_.pass_on(connection.server), -1);
  EXPECT_EQ(errno, EPIPE);
  std::signal(SIGPIPE, before);
}

TEST_F(LendingPipeTest, ALongHeadIsLeftToOthers) {
  const auto body = memory_.copy_of("body");
  EXPECT_EQ(pipe_.take(text(60'000), text(6'000), body->bytes()), 0U);
  EXPECT_EQ(pipe_.take(text(60'000), text(5'000), body->bytes()), 65'004U);
}

TEST_F(LendingPipeTest, WithoutDescriptorsThereIsNone) {
  const auto body = memory_.copy_of("body");
  Connection connection;
  {
    const FewDescriptors few(1);
    EXPECT_EQ(pipe_.take("", "", body->bytes()), 0U);
  }
  ASSERT_EQ(pipe_.take("", "", body->bytes()), 4U);
  EXPECT_EQ(pipe_.pass_on(connection.server), 4);
}

}  // namespace
}  // namespace facetheory
