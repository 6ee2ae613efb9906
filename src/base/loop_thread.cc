#include "facetheory/base/loop_thread.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <utility>

#include <boost/asio/post.hpp>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace facetheory {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

// Found by measuring. A nicer background lets hits wait less, but renders fewer than 225 of the benchmark's pages a
// second on a core that hits alone would fill.
constexpr int kPatientNiceness = 10;
constexpr int kLeisurelyNiceness = 13;
// How long a thread wants to run before it is the next one's turn. A tenth of a millisecond is the shortest there is,
// and who asks for less than another is let in when it wakes up, whatever the other one is doing.
constexpr microseconds kPromptPiece{100};
constexpr microseconds kPatientPiece{200};
// The kernel itself looks at its clock every few milliseconds only. So a loop that has always more to do gives way by
// itself, after this long: what it owes to others is then paid often and not at once.
constexpr microseconds kTurn{100};
// A job that waits for an idle moment runs without one after so many handlers, which is about as many as a render has.
constexpr int kMostPassedOver = 50;

// This is the kernel's struct. It stands here because the kernel's header and the C library's exclude each other.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // Nanoseconds.
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

// Holds for this thread and those that it starts. Since Linux 6.12 who runs in short pieces is let in sooner; kernels
// before that take no notice. A policy that an operator has chosen stays.
void be_scheduled(std::uint32_t policy, microseconds piece) {
  SchedulingAttributes now;
  if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER) return;
  now.flags = 0;
  now.policy = policy;
  now.runtime = static_cast<std::uint64_t>(std::chrono::nanoseconds(piece).count());
  syscall(SYS_sched_setattr, 0, &now, 0);
}

microseconds processor_time_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + microseconds(time.tv_nsec / 1'000);
}

}  // namespace

LoopThread::LoopThread(const char* name, Urgency urgency)
    : context_(1), guard_(context_.get_executor()), urgency_(urgency), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), name);
}

LoopThread::~LoopThread() {
  end();
}

void LoopThread::end() {
  if (!thread_.joinable()) return;
  guard_.reset();
  context_.stop();
  thread_.join();
}

void LoopThread::when_idle(std::function<void()> begin) {
  if (urgency_ == Urgency::ordinary) return boost::asio::post(context_, std::move(begin));
  boost::asio::post(context_,
                    [this, begin = std::move(begin)]() mutable { later_.push_back(std::move(begin)); });
}

// False: the end.
bool LoopThread::run_next() {
  if (later_.empty()) return context_.run_one() > 0;
  if (++passed_over_ < kMostPassedOver && context_.poll_one() > 0) return true;
  if (context_.stopped()) return false;
  passed_over_ = 0;
  const std::function<void()> begin = std::move(later_.front());
  later_.pop_front();
  begin();
  return true;
}

// Gives way between two handlers, where it holds no lock that somebody more urgent may want, unless it has slept
// meanwhile.
void LoopThread::run_in_turns() {
  auto since = steady_clock::now();
  auto used = processor_time_of_this_thread();
  while (run_next()) {
    const auto now = steady_clock::now();
    if (now - since < kTurn) continue;
    const auto used_by_now = processor_time_of_this_thread();
    if (used_by_now - used >= (now - since) / 10 * 9) sched_yield();
    used = used_by_now;
    since = steady_clock::now();
  }
}

void LoopThread::run() {
  // A client that left is an error of splice(), which cannot be told to leave the signal out.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  switch (urgency_) {
    case Urgency::ordinary:
      context_.run();
      return;
    case Urgency::prompt:
      be_scheduled(SCHED_OTHER, kPromptPiece);
      run_in_turns();
      return;
    case Urgency::patient:
    case Urgency::leisurely: {
      const int more = urgency_ == Urgency::patient ? kPatientNiceness : kLeisurelyNiceness;
      [[maybe_unused]] const int niceness = nice(more);  // On Linux this changes the calling thread alone.
      // Those that wake up interrupt nobody, each other neither: that would only cost time.
      be_scheduled(SCHED_BATCH, kPatientPiece);
      run_in_turns();
      return;
    }
  }
}

}  // namespace facetheory
