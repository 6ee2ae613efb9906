#include "facetheory/base/loop_thread.h"

#include <chrono>
#include <csignal>
#include <cstdint>

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace facetheory {
namespace {

constexpr int kPatientNiceness = 5;
// How long a thread runs before the scheduler looks who else wants to; a tenth of a millisecond is the shortest there is.
constexpr std::chrono::microseconds kPiece{100};

// As the kernel has it; its own header and that of the C library exclude each other.
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

// Of this thread, and of those that it starts. Since Linux 6.12 who runs in short pieces is let in sooner; kernels before
// that take no notice. A policy that an operator has chosen stays.
void run_in_short_pieces() {
  SchedulingAttributes now;
  if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER) return;
  now.flags = 0;
  now.runtime = std::chrono::nanoseconds(kPiece).count();
  syscall(SYS_sched_setattr, 0, &now, 0);
}

// The kernel looks at its clock every few milliseconds only. So this asks by itself, between two handlers, where it holds no
// lock that somebody more urgent may want.
void run_in_pieces(boost::asio::io_context& context) {
  using Clock = std::chrono::steady_clock;
  while (context.run_one() > 0) {
    auto since = Clock::now();
    while (context.poll_one() > 0) {
      if (Clock::now() - since < kPiece) continue;
      sched_yield();
      since = Clock::now();
    }
  }
}

}  // namespace

LoopThread::LoopThread(const char* name, Urgency urgency)
    : context_(1), guard_(context_.get_executor()), thread_([this, urgency] { run(urgency); }) {
  pthread_setname_np(thread_.native_handle(), name);
}

LoopThread::~LoopThread() {
  guard_.reset();
  context_.stop();
  thread_.join();
}

void LoopThread::run(Urgency urgency) {
  // Of this thread alone, on Linux. Where it is refused, all have the same.
  if (urgency == Urgency::patient) nice(kPatientNiceness);
  if (urgency != Urgency::ordinary) run_in_short_pieces();
  // A client that left is an error of sendfile(), which cannot be told to leave the signal out.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  if (urgency == Urgency::patient) {
    run_in_pieces(context_);
  } else {
    context_.run();
  }
}

}  // namespace facetheory
