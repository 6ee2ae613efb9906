#include "facetheory/base/loop_bound.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include "facetheory/base/loop_thread.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;

bool is_here_on(const asio::any_io_executor& executor, const LoopBound& bound) {
  return asio::post(executor, asio::use_future([&] { return bound.is_here(); })).get();
}

TEST(LoopBound, IsHereOnItsOwnLoopAndNowhereElse) {
  LoopThread loop("bound");
  LoopThread other("other");
  const LoopBound bound = LoopBound::to_loop(loop.executor(), "a thing");
  EXPECT_TRUE(is_here_on(loop.executor(), bound));
  EXPECT_FALSE(is_here_on(other.executor(), bound));
  EXPECT_FALSE(bound.is_here());
}

TEST(LoopBound, IsHereOnItsStrandAndNotBesideItOnTheSameThread) {
  LoopThread loop("bound");
  const LoopBound bound = LoopBound::to_strand(loop.executor(), "a thing");
  EXPECT_TRUE(is_here_on(bound.executor(), bound));
  EXPECT_FALSE(is_here_on(loop.executor(), bound));
}

// Several threads may run it: only a strand keeps them apart.
TEST(LoopBound, GivesAStrandToWhatIsNoLoop) {
  asio::thread_pool pool(2);
  const LoopBound bound = LoopBound::to_loop(pool.get_executor(), "a thing");
  EXPECT_TRUE(is_here_on(bound.executor(), bound));
  EXPECT_FALSE(is_here_on(pool.get_executor(), bound));
}

TEST(LoopBound, PassesTheCheckOnItsLoop) {
  LoopThread loop("bound");
  const LoopBound bound = LoopBound::to_loop(loop.executor(), "a thing");
  asio::post(loop.executor(), asio::use_future([&] { bound.check(); })).get();
}

TEST(LoopBoundDeathTest, EndsTheProgramWhenSomethingIsUsedOnAnotherThread) {
  asio::io_context loop;
  const LoopBound bound = LoopBound::to_loop(loop.get_executor(), "a thing");
  EXPECT_DEATH(bound.check(), "a thing was used on another thread than its own");
}

TEST(LoopBoundDeathTest, LetsWhateverWaitedOnALoopBeDestroyedOnceThatHasEnded) {
  asio::io_context loop;
  const LoopBound bound = LoopBound::to_loop(loop.get_executor(), "a thing");
  const LoopBound strand = LoopBound::to_strand(loop.get_executor(), "another");
  EXPECT_DEATH(bound.check_until_ended(), "a thing was used on another thread than its own");
  EXPECT_DEATH(strand.check_until_ended(), "another was used on another thread than its own");
  loop.stop();
  bound.check_until_ended();
  strand.check_until_ended();
}

}  // namespace
}  // namespace facetheory
