#include "facetheory/base/loop_thread.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace facetheory {
namespace {

constexpr std::array kAll = {Urgency::ordinary, Urgency::prompt, Urgency::patient, Urgency::leisurely};
constexpr std::array kInTurns = {Urgency::prompt, Urgency::patient, Urgency::leisurely};

template <typename Work>
auto on(LoopThread& loop, Work work) {
  return boost::asio::post(loop.executor(), boost::asio::use_future(std::move(work))).get();
}

int niceness() {
  return getpriority(PRIO_PROCESS, 0);
}

// How long this thread runs at a time, in nanoseconds; 0: the kernel does not say.
std::uint64_t piece() {
  std::array<std::uint64_t, 6> attributes{};  // Those of sched_setattr(2); the fourth is the runtime.
  if (syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0) != 0) return 0;
  return attributes[3];
}

TEST(LoopThread, DoesWhatItIsGivenInThatOrder) {
  for (const Urgency urgency : kAll) {
    LoopThread loop("test", urgency);
    std::vector<int> done;
    for (int i = 0; i < 1'000; ++i)
      boost::asio::post(loop.executor(), [&done, i] { done.push_back(i); });
    on(loop, [] {});
    ASSERT_EQ(done.size(), 1'000U);
    EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
    EXPECT_EQ(on(loop, [] { return 7; }), 7);  // It runs what comes after a rest, too.
  }
}

TEST(LoopThread, FinishesWhatHasBegunBeforeItBeginsMore) {
  for (const Urgency urgency : kInTurns) {
    LoopThread loop("test", urgency);
    std::vector<std::string> done;
    std::promise<void> all_given, all_done;
    boost::asio::post(loop.executor(), [&] { all_given.get_future().wait(); });
    for (int i = 0; i < 3; ++i) {
      loop.when_idle([&, i] {
        done.push_back("begun " + std::to_string(i));
        boost::asio::post(loop.executor(), [&, i] {
          boost::asio::post(loop.executor(), [&, i] {
            done.push_back("finished " + std::to_string(i));
            if (i == 2) all_done.set_value();
          });
        });
      });
    }
    boost::asio::post(loop.executor(), [&] { done.emplace_back("given last"); });
    all_given.set_value();
    all_done.get_future().wait();
    EXPECT_EQ(done, (std::vector<std::string>{"given last", "begun 0", "finished 0", "begun 1", "finished 1",
                                              "begun 2", "finished 2"}));
  }
}

TEST(LoopThread, ThatIsNeverIdleBeginsMoreNowAndThen) {
  for (const Urgency urgency : kAll) {
    std::function<void()> again;
    std::promise<void> begun;
    LoopThread loop("test", urgency);
    again = [&] { boost::asio::post(loop.executor(), again); };
    on(loop, [&] { again(); });
    loop.when_idle([&] { begun.set_value(); });
    EXPECT_EQ(begun.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  }
}

TEST(LoopThread, EndsAlthoughSomethingWaitsForItToBeIdle) {
  for (const Urgency urgency : kInTurns) {
    bool run = false;
    std::promise<void> all_given, in_the_last;
    LoopThread loop("test", urgency);
    boost::asio::post(loop.executor(), [&] { all_given.get_future().wait(); });
    loop.when_idle([&] { run = true; });
    boost::asio::post(loop.executor(), [&] {
      in_the_last.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    all_given.set_value();
    in_the_last.get_future().wait();
    loop.end();
    EXPECT_FALSE(run);
  }
}

TEST(LoopThread, EndsAlthoughThereIsAlwaysMoreToDo) {
  for (const Urgency urgency : kAll) {
    std::function<void()> again;
    LoopThread loop("test", urgency);
    again = [&] { boost::asio::post(loop.executor(), again); };
    on(loop, [&] { again(); });
  }
}

TEST(LoopThread, IsNicerOnlyIfItIsPatient) {
  const int here = niceness();
  LoopThread ordinary("test"), prompt("test", Urgency::prompt), patient("test", Urgency::patient);
  EXPECT_EQ(on(ordinary, niceness), here);
  EXPECT_EQ(on(prompt, niceness), here);
  EXPECT_EQ(on(patient, niceness), std::min(19, here + 10));
  LoopThread leisurely("test", Urgency::leisurely);
  EXPECT_EQ(on(leisurely, niceness), std::min(19, here + 13));
}

TEST(LoopThread, ThatIsPatientStartsThreadsThatAreAsNice) {
  LoopThread patient("test", Urgency::patient);
  const int there = on(patient, [] { return std::async(std::launch::async, niceness).get(); });
  EXPECT_EQ(there, std::min(19, niceness() + 10));
}

TEST(LoopThread, InterruptsNobodyIfItIsPatient) {
  const auto policy = [] { return sched_getscheduler(0); };
  const int here = policy();
  LoopThread prompt("test", Urgency::prompt), patient("test", Urgency::patient);
  EXPECT_EQ(on(prompt, policy), here);
  EXPECT_EQ(on(patient, policy), here == SCHED_OTHER ? SCHED_BATCH : here);
}

TEST(LoopThread, RunsInShortPiecesUnlessItIsOrdinary) {
  LoopThread ordinary("test"), prompt("test", Urgency::prompt), patient("test", Urgency::patient);
  EXPECT_EQ(on(ordinary, piece), piece());
  // Before Linux 6.12 all threads have the same piece.
  const bool all_the_same = piece() == 0;
  EXPECT_EQ(on(prompt, piece), all_the_same ? 0U : 100'000U);
  EXPECT_EQ(on(patient, piece), all_the_same ? 0U : 200'000U);
}

TEST(LoopThread, DoesNotEndTheProgramWhenAPeerHasLeft) {
  for (const Urgency urgency : kAll) {
    LoopThread loop("test", urgency);
    const bool blocked = on(loop, [] {
      sigset_t now;
      pthread_sigmask(SIG_BLOCK, nullptr, &now);
      return sigismember(&now, SIGPIPE) == 1;
    });
    EXPECT_TRUE(blocked);
  }
}

}  // namespace
}  // namespace facetheory
