// What was lent must come as it was, however late it is read, and nothing of it may come to somebody else.
#include "facetheory/gateway/lending_pipe.h"

#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "facetheory/base/fixed_bytes.h"

namespace facetheory {
namespace {

// Two ends of a connection; the server's does not wait.
class Connection {
 public:
  Connection() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener, generic, size), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    EXPECT_EQ(::getsockname(listener, generic, &size), 0);
    EXPECT_EQ(::connect(client, generic, size), 0);
    server = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
    ::close(listener);
  }
  ~Connection() {
    end();
    ::close(client);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void end() {
    if (server >= 0) ::close(server);
    server = -1;
  }

  // All that comes until the server's end is closed.
  std::string rest() {
    end();
    std::string all;
    std::array<char, 65536> some;
    for (ssize_t count = 0; (count = ::recv(client, some.data(), some.size(), 0)) > 0;)
      all.append(some.data(), static_cast<std::size_t>(count));
    return all;
  }

  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  int server = -1;
};

std::string text(std::size_t size, std::size_t seed = 0) {
  std::string made(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    made[i] = static_cast<char>('a' + (i * 7 + i / 4096 + seed) % 26);
  return made;
}

class LendingPipeTest : public testing::Test {
 protected:
  FixedMemory memory_{64 << 20};
  LendingPipe pipe_;
};

TEST_F(LendingPipeTest, SendsHeadAndBody) {
  const auto body = memory_.copy_of(text(100'001));
  Connection connection;
  ASSERT_TRUE(pipe_.take("head, ", "added, ", body->bytes()));
  EXPECT_EQ(pipe_.pass_on(connection.server), 13 + 100'001);
  EXPECT_EQ(connection.rest(), "head, added, " + text(100'001));
}

TEST_F(LendingPipeTest, SendsABodyFromAnywhereInItsMiddle) {
  const auto body = memory_.copy_of(text(100'001));
  Connection connection;
  ASSERT_TRUE(pipe_.take("", "", body->bytes().substr(12'345)));
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
    ASSERT_TRUE(pipe_.take(head, "", body->bytes()));
    ASSERT_EQ(pipe_.pass_on(connection.server), static_cast<ssize_t>(head.size() + kSize));
    expected += head + text(kSize, i);
  }
  EXPECT_EQ(connection.rest() == expected, true);
}

TEST_F(LendingPipeTest, WhatASocketDoesNotTakeComesToNobodyElse) {
  const auto large = memory_.copy_of(text(16 << 20));
  const auto small = memory_.copy_of("small");
  Connection slow;
  std::size_t sent = 0;
  for (;;) {
    ASSERT_TRUE(pipe_.take("", "", large->bytes().substr(sent)));
    const ssize_t count = pipe_.pass_on(slow.server);
    if (count < 0) break;
    sent += static_cast<std::size_t>(count);
    ASSERT_LT(sent, large->bytes().size());
  }
  EXPECT_EQ(errno, EAGAIN);
  Connection other;
  ASSERT_TRUE(pipe_.take("a ", "", small->bytes()));
  EXPECT_EQ(pipe_.pass_on(other.server), 7);
  EXPECT_EQ(other.rest(), "a small");
  EXPECT_EQ(slow.rest() == large->bytes().substr(0, sent), true);
}

TEST_F(LendingPipeTest, AConnectionThatIsBrokenIsAnError) {
  const auto body = memory_.copy_of(text(100'000));
  Connection connection;
  ::shutdown(connection.server, SHUT_WR);
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);  // As serving threads do.
  ASSERT_TRUE(pipe_.take("head", "", body->bytes()));
  EXPECT_EQ(pipe_.pass_on(connection.server), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(LendingPipeTest, ALongHeadIsLeftToOthers) {
  const auto body = memory_.copy_of("body");
  EXPECT_FALSE(pipe_.take(text(60'000), text(6'000), body->bytes()));
  EXPECT_TRUE(pipe_.take(text(60'000), text(5'000), body->bytes()));
}

TEST_F(LendingPipeTest, WithoutDescriptorsThereIsNone) {
  const auto body = memory_.copy_of("body");
  Connection connection;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_FALSE(pipe_.take("", "", body->bytes()));
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(pipe_.take("", "", body->bytes()));
  EXPECT_EQ(pipe_.pass_on(connection.server), 4);
}

}  // namespace
}  // namespace facetheory
